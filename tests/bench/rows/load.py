"""Requests a second of many clients."""

from __future__ import annotations

from contextlib import ExitStack

from bench.figures import Goal, Line, interleaved
from bench.processes import Failed, brain, chroma_server, model_server, peer, run_module
from bench.run import Run

CLIENTS = 32
THINK = 20  # milliseconds that a model takes for each request, any number at once
AT_LEAST = Goal(0.85, at_least=True)
# Models that serve everybody at once; by default the brain asks one that serves two.
SETTINGS = {"BRAIN_LLM_CONCURRENCY": str(CLIENTS), "BRAIN_LLM_QUEUE": str(CLIENTS)}


def load(run: Run, *, server: bool = False) -> Line:
    """``CLIENTS`` clients against each contender in turn: two processes of it where a Chroma server lets them."""
    with ExitStack() as running:
        models = running.enter_context(model_server(think=THINK))
        where = run.database(run.small)
        if server:
            where = running.enter_context(chroma_server(where)).url
        urls: dict[str, list[str]] = {}
        for _ in range(2 if server else 1):
            ours = running.enter_context(brain(where, models, **run.surroundings, **SETTINGS))
            urls.setdefault("brain", []).append(ours.url)
            for name in ("floor", "stock"):
                urls.setdefault(name, []).append(running.enter_context(peer(name, where, models)).url)

        def rate(name: str, turn: int) -> float:
            told = run_module(
                "bench.load_clients", str(run.seconds), str(CLIENTS), str(run.small), str(turn), *urls[name]
            )
            if told["failed"]:
                raise Failed(f"{name} did not answer {told['failed']} questions under load.")
            return float(told["a_second"])

        contenders = {name: (lambda turn, name=name: rate(name, turn)) for name in urls}
        samples = interleaved(contenders, range(run.turns + 1), warm_up=1)
    where = ", Chroma server, two workers" if server else ""
    what = f"{CLIENTS} clients, models at {THINK} ms, {run.small:,} chunks{where}"
    return Line.of(what, "a second", samples, {"floor": AT_LEAST}, brain_settings=SETTINGS)
