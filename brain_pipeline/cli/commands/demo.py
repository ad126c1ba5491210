"""The sample mailbox, asked and served: what ``make run`` shows."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from brain_pipeline.cli.app import app, load_settings, out
from brain_pipeline.cli.commands.serve import run
from brain_pipeline.cli.show import answer_lines, show_report

FIRST_QUESTION = "What do the kids need for the field trip?"
SECOND_QUESTION = "How much did the water heater cost?"


@app.command()
def demo(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
) -> None:
    """Ingest the sample mailbox, ask it a question, and serve it."""
    from brain_pipeline.brain import open_brain
    from brain_pipeline.mail.mailboxes import iter_messages
    from brain_pipeline.sample import sample_calendar, sample_mail

    settings = load_settings(os.environ.get("BRAIN_ENV") or "embedded", host=host, port=port)
    if not settings.calendars and find_spec("icalendar"):
        settings = settings.model_copy(update={"calendars": (sample_calendar(),)})
    with open_brain(settings) as brain:
        show_report(brain.ingest(iter_messages([sample_mail()])))
        out.print(f"\n> {FIRST_QUESTION}", markup=False)
        out.print(answer_lines(brain.query(FIRST_QUESTION)))
        again = f"BRAIN_ENV={settings.environment} {sys.argv[0]} ask '{SECOND_QUESTION}'"
        out.print(f"\nTry another, in another terminal:\n  {again}\n", markup=False)
        run(brain)
