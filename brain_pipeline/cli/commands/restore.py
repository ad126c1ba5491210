"""A backup put back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from brain_pipeline.cli.app import Environment, app, load_settings, out


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="What `brain backup` wrote.")], environment: Environment = None
) -> None:
    """Put a backup in the database's place; what was there is kept beside it."""
    from brain_pipeline.backup import restore as put_back
    from brain_pipeline.brain import open_brain

    settings = load_settings(environment)
    before = put_back(settings, file)
    if before is not None:
        out.print(f"what was there before is in {before}", markup=False)
    with open_brain(settings) as brain:
        held = brain.stats()
    out.print(f"restored {held.total_documents} emails in {held.total_chunks} chunks", markup=False)
