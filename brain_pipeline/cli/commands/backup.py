"""The database as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from brain_pipeline.cli.app import Environment, app, load_settings, out


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="Where to; it must not exist yet.")], environment: Environment = None
) -> None:
    """Copy the database into one file, checked."""
    from brain_pipeline.backup import back_up

    manifest = back_up(load_settings(environment), file)
    out.print(f"backed up {len(manifest.files)} files, read back and compared, to {file}", markup=False)
