"""The days that a phrase means, and what the calendars have on them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from brain_pipeline.cli.app import Environment, Now, app, brain_of, load_settings, out

if TYPE_CHECKING:
    from brain_pipeline.family.when import Window

NO_TIME = "That names no day. Try: this Friday, next week, January 9, before spring break, or: when is piano?"


@app.command()
def events(
    when: Annotated[list[str], typer.Argument(help="Words for a time, as: this weekend.", metavar="WHEN")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    now: Now = None,
    zone: Annotated[str | None, typer.Option(help="Time zone, as Europe/Berlin; default the household's.")] = None,
    environment: Environment = None,
) -> None:
    """Show the days that a phrase means, and what the calendars have on them."""
    with brain_of(load_settings(environment, now=now, timezone=zone)) as brain:
        window, found = brain.whats_on(" ".join(when))
    if as_json:
        days = None if window is None else [window.first.isoformat(), window.last.isoformat()]
        sys.stdout.write(json.dumps({"window": days, "events": [event.title for event in found]}) + "\n")
        return
    from brain_pipeline.ask.events import line

    if window is None and not found:
        out.print(NO_TIME, markup=False)
        return
    if window is not None:
        out.print(_days(window), style="bold", markup=False)
    for event in found:
        out.print(f"  {line(event)}", markup=False)
    if not found:
        out.print("  nothing in the calendars", markup=False)


def _days(window: Window) -> str:
    first, last = (f"{day:%A} {day.day} {day:%B %Y}" for day in (window.first, window.last))
    return first if window.first == window.last else f"{first} to {last}"
