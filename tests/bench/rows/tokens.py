"""How much the language model has to read, and whether the answer is in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bench.figures import Goal, Line
from bench.processes import TESTS, run_module
from bench.run import Run
from brain_pipeline.sample import sample_mail

SHARED = Path(os.environ.get("BRAIN_SHARED", TESTS.parents[1] / "shared"))
STOCK = "stock, `compact`, best 3 of 1,024"
NO_LOSS = Goal(1.0, at_least=True)


def tokens(run: Run) -> list[Line]:
    """Of the evaluation set where it is at hand, and of the questions about the sample mailbox."""
    sets = {"family mail": (sample_mail(), TESTS / "data" / "family_questions.jsonl")}
    if (SHARED / "eval").is_dir() and run.questions is None:
        sets["business mail"] = SHARED / "eval" / "emails", SHARED / "eval" / "qa.jsonl"
    return [line for name, (mail, questions) in sets.items() for line in _of_set(run, name, mail, questions)]


def _of_set(run: Run, name: str, mail: Path, questions: Path) -> list[Line]:
    folder = run.cache / f"prompts-{name.replace(' ', '-')}"
    limit = [str(run.questions)] if run.questions else []
    told = run_module("bench.prompts", str(mail), str(questions), str(folder), *limit)
    asked = len(told["brain"])
    read = {who: [prompt["tokens"] for prompt in prompts if prompt["tokens"]] for who, prompts in told.items()}
    figures = [("tokens", f"prompt tokens of a question, {name}", read, Goal(0.5))]
    for what, said in (("gold", "the answering mail"), ("answer", "the answer's own words")):
        figures.append(("of questions", f"{said} in the prompt, {name}", _share(told, what), NO_LOSS))
    return [
        Line.of(title, unit, {"brain": samples["brain"], STOCK: samples["stock"]}, {STOCK: goal}, questions=asked)
        for unit, title, samples, goal in figures
    ]


def _share(told: dict[str, list[dict[str, Any]]], what: str) -> dict[str, list[float]]:
    return {who: [sum(prompt[what] for prompt in prompts) / len(prompts)] for who, prompts in told.items()}
