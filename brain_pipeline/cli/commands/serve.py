"""Serve the brain over HTTP."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from brain_pipeline.cli.app import Environment, app, load_settings, out

if TYPE_CHECKING:
    from brain_pipeline.brain import Brain


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.")] = None,
    environment: Environment = None,
) -> None:
    """Serve the brain over HTTP."""
    from brain_pipeline.brain import open_brain

    settings = load_settings(environment, host=host, port=port)
    with open_brain(settings) as brain:
        run(brain)


def run(brain: Brain) -> None:
    """Serves until it is stopped, and prints where."""
    # The HTTP side stands above the pipeline; only this command, which starts it, knows it by name.
    with suppress(KeyboardInterrupt):  # how a person stops it
        import_module("api.serve").run(brain, announce=lambda url: out.print(f"Serving {url} (Ctrl-C stops it)"))
