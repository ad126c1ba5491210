"""Show what is read of mail."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from brain_pipeline.cli.app import Environment, app, load_settings


@app.command()
def parse(
    paths: Annotated[list[Path], typer.Argument(help="Mail, as for ingest.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    environment: Environment = None,
) -> None:
    """Show what would be read of mail, without storing anything."""
    from brain_pipeline.mail.reading import read_all
    from brain_pipeline.mail.show import as_json_line, as_text

    show = as_json_line if as_json else as_text
    for origin, mail in read_all(paths, load_settings(environment)):
        sys.stdout.write(show(origin, mail) + "\n")
