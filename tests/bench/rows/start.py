"""From the start of the process to its first answer."""

from __future__ import annotations

import subprocess
import sys
import time

from bench.figures import Goal, Line, interleaved
from bench.processes import brain_environment, environment, model_server, service
from bench.run import Run

IMPORTS = "import chromadb, llama_index.core, fastapi"
LEAST = Goal(1.6)


def start(run: Run) -> Line:
    """``brain serve`` until it has answered a question, and ``brain ask``, against importing what both stand on."""
    database = run.database(run.small)
    asked = iter(run.questions_of(run.small, seed=6))
    with model_server() as models:
        surroundings = brain_environment(database, models)

        def serving(_: int) -> float:
            began = time.perf_counter()
            with service(["-m", "brain_pipeline.cli", "serve"], surroundings) as running:
                running.asked(next(asked))
                return (time.perf_counter() - began) * 1000

        contenders = {
            "brain": serving,
            f"`{IMPORTS}`": lambda _: _whole_process(["-c", IMPORTS], {}),
            "`brain ask`": lambda _: _whole_process(["-m", "brain_pipeline.cli", "ask", next(asked)], surroundings),
        }
        samples = interleaved(contenders, range(run.turns + 1), warm_up=1)
    what = f"start of `brain serve` to its first answer, {run.small:,} chunks"
    return Line.of(what, "ms", samples, {f"`{IMPORTS}`": LEAST})


def _whole_process(command: list[str], surroundings: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, env=environment(surroundings), stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000
