"""Bring mail in from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from brain_pipeline.cli.app import Environment, app, brain_of, err, load_settings
from brain_pipeline.cli.show import show_report


@app.command()
def ingest(
    paths: Annotated[
        list[Path], typer.Argument(help="Mail: .eml, .mbox, Maildir, .zip, folders of them; - reads stdin.")
    ],
    environment: Environment = None,
) -> None:
    """Bring mail into the brain; what it holds already is left alone."""
    from brain_pipeline.mail.mailboxes import iter_messages
    from brain_pipeline.progress import Watch

    with brain_of(load_settings(environment)) as brain, Watch(err, iter_messages(paths), paths) as watch:
        report = brain.ingest(watch, on_progress=watch.show)
    show_report(report)
    if report.total == len(report.skipped):
        raise typer.Exit(1)
