"""Delete an email."""

from __future__ import annotations

from typing import Annotated

import typer

from brain_pipeline.cli.app import Environment, app, brain_of, err, load_settings, out


@app.command()
def forget(
    message_id: Annotated[
        str, typer.Argument(help="The email's Message-ID, in quotes; `brain parse --json` shows it.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask first.")] = False,
    environment: Environment = None,
) -> None:
    """Delete an email from the brain; the mail file stays."""
    if not yes:
        typer.confirm(f"Delete {message_id} from the brain?", abort=True, err=True)
    with brain_of(load_settings(environment)) as brain:
        deleted = brain.forget(message_id)
    if not deleted:
        err.print(f"There is no email {message_id} in the brain; `brain parse --json` shows Message-IDs.", markup=False)
        raise typer.Exit(1)
    out.print(f"deleted {message_id}, {deleted} passage{'s' if deleted > 1 else ''}", markup=False)
