"""What is wrong, and what to do about it."""

from __future__ import annotations

import typer

from brain_pipeline.cli.app import Environment, app, load_settings, out


@app.command()
def doctor(environment: Environment = None) -> None:
    """Check everything that can be wrong, and say what to do about it."""
    from brain_pipeline.doctor import diagnose

    healthy = True
    for finding in diagnose(load_settings(environment)):
        healthy &= finding.ok
        mark, style = ("ok ", "green") if finding.ok else ("BAD", "bold red")
        out.print(f"[{style}]{mark}[/] ", end="")
        out.print(finding.what + (f" {finding.remedy}" if finding.remedy else ""), markup=False)
    if not healthy:
        raise typer.Exit(1)
