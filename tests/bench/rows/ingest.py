"""Bringing mail in."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.figures import Goal, Line
from bench.ingestion import write_mailbox
from bench.processes import model_server, run_module
from bench.run import Run

EMBED = 2.0  # milliseconds the embedding server takes for a text
CONTENDERS = ("brain", "floor", "pipeline")  # in this order, because the floor adds the brain's chunks
NAMES = {"brain": "brain", "floor": "floor", "pipeline": "LlamaIndex pipeline"}
ROUNDS = 3
ALL, LIMIT = "all of it", "600 MB"


def ingest(run: Run) -> list[Line]:
    """Mails a second, how busy that keeps the embedding server, and memory; each round into new databases."""
    told: dict[str, list[dict[str, Any]]] = {name: [] for name in CONTENDERS}
    with model_server(embed=EMBED) as models, tempfile.TemporaryDirectory() as folder:
        mailbox = Path(folder) / "mail.mbox"
        write_mailbox(mailbox, run.mails)
        for number in range(min(ROUNDS, run.turns)):
            place = Path(folder) / str(number)
            place.mkdir()
            for name in CONTENDERS:
                busy = models.get("/busy")["busy"]
                measured = run_module("bench.ingestion", name, str(mailbox), str(place), models.url)
                measured["server_busy"] = (models.get("/busy")["busy"] - busy) / measured["seconds"]
                told[name].append(measured)
    about = {name: runs[-1] for name, runs in told.items()}
    rate = {NAMES[name]: [each["mails"] / each["seconds"] for each in runs] for name, runs in told.items()}
    busy = {NAMES[name]: [each["server_busy"] for each in runs] for name, runs in told.items()}
    peak = {NAMES[name]: [each["peak_mb"] for each in runs] for name, runs in told.items()}
    what = f"{run.mails:,} mails ingested, embedding server at {EMBED:g} ms a text"
    return [
        Line.of(what, "a second", rate, {"floor": Goal(0.85, at_least=True)}, last_round=about),
        Line.of("the embedding server is busy", "of the time", busy | {ALL: [1.0]}, {ALL: Goal(0.9, at_least=True)}),
        Line.of("most memory", "MB", peak | {LIMIT: [600.0]}, {LIMIT: Goal(1.0)}),
    ]
