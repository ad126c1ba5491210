"""Figures over questions whose answers are known."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from brain_pipeline.cli.app import Environment, app, load_settings
from brain_pipeline.errors import InvalidRequest

if TYPE_CHECKING:
    from brain_pipeline.settings import Settings


@app.command("eval")
def evaluate(
    sets: Annotated[
        list[Path] | None, typer.Argument(help="JSONL files of questions with their right answers.")
    ] = None,
    mail: Annotated[Path | None, typer.Option(help="A folder of mail to measure over; default the open brain.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    answers: Annotated[bool, typer.Option("--answers", help="Ask the language model too, for the key facts.")] = False,
    baseline: Annotated[Path | None, typer.Option(help="What --json printed before, to compare with.")] = None,
    attacks: Annotated[
        bool, typer.Option("--attacks", help="Instead, how often the language model obeys hostile mail.")
    ] = False,
    members: Annotated[
        bool, typer.Option("--members", help="Instead, how well mail is assigned to the family's members.")
    ] = False,
    environment: Environment = None,
) -> None:
    """Measure retrieval, abstention and calibration by questions whose answers are known."""
    if members:
        _print_members(sets or [], as_json=as_json)
    elif attacks:
        _print_attacks(load_settings(environment), sets or [], as_json=as_json)
    elif not sets:
        raise InvalidRequest("Name a file of questions, or --members or --attacks, which bring their own.")
    else:
        _print_questions(load_settings(environment), sets, mail, baseline, as_json=as_json, answers=answers)


def _print_questions(
    settings: Settings, sets: list[Path], mail: Path | None, baseline: Path | None, *, as_json: bool, answers: bool
) -> None:
    from brain_pipeline.brain import open_brain
    from brain_pipeline.evaluate import read_baseline, read_questions, render
    from brain_pipeline.trial import by_email, measure, throw_away_brain

    before = read_baseline(baseline) if baseline else None
    questions = [question for path in sets for question in read_questions(path)]
    with throw_away_brain(settings, mail) if mail else open_brain(settings) as brain:
        if mail:
            questions = list(by_email(brain, mail, questions))
        measured = measure(brain, questions, answers=answers)
    sys.stdout.write((json.dumps(measured.as_json()) if as_json else render(measured, before)) + "\n")


def _print_members(sets: list[Path], *, as_json: bool) -> None:
    from brain_pipeline.family.measure import LABELLED, measure_members, read_members

    for path in sets or [LABELLED]:
        measured = measure_members(read_members(path))
        sys.stdout.write((json.dumps(measured.as_json()) if as_json else str(measured)) + "\n")


def _print_attacks(settings: Settings, sets: list[Path], *, as_json: bool) -> None:
    from dataclasses import asdict

    from brain_pipeline.attacks import PACKAGED, load_attacks, measure_resistance

    attacks = [attack for path in sets or [PACKAGED] for attack in load_attacks(path)]
    measured = measure_resistance(attacks, settings)
    sys.stdout.write((json.dumps(asdict(measured)) if as_json else str(measured)) + "\n")
