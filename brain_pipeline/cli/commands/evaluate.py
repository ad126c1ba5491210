"""Figures over questions whose answers are known."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from brain_pipeline.cli.app import Environment, app, load_settings


@app.command("eval")
def evaluate(
    sets: Annotated[list[Path], typer.Argument(help="JSONL files of questions with their right answers.")],
    mail: Annotated[Path | None, typer.Option(help="A folder of mail to measure over; default the open brain.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    answers: Annotated[bool, typer.Option("--answers", help="Ask the language model too, for the key facts.")] = False,
    baseline: Annotated[Path | None, typer.Option(help="What --json printed before, to compare with.")] = None,
    environment: Environment = None,
) -> None:
    """Measure retrieval, abstention and calibration by questions whose answers are known."""
    from brain_pipeline.brain import open_brain
    from brain_pipeline.evaluate import read_baseline, read_questions, render
    from brain_pipeline.trial import by_email, measure, throw_away_brain

    settings = load_settings(environment)
    before = read_baseline(baseline) if baseline else None
    questions = [question for path in sets for question in read_questions(path)]
    with throw_away_brain(settings, mail) if mail else open_brain(settings) as brain:
        if mail:
            questions = list(by_email(brain, mail, questions))
        measured = measure(brain, questions, answers=answers)
    sys.stdout.write((json.dumps(measured.as_json()) if as_json else render(measured, before)) + "\n")
