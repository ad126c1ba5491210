"""What the brain holds, over HTTP."""

from __future__ import annotations

from bench.figures import Comparison, Goal, Line, Spread, interleaved
from bench.processes import model_server
from bench.rows.query import on
from bench.run import WARM_UP, Run

MOST = 10.0  # milliseconds


def stats(run: Run, *, server: bool = False) -> Line:
    """``/brain/stats`` against Chroma's count, and against what it may take at most."""
    with model_server() as models, run.contenders(run.large, models, server=server, peers=("floor",)) as running:
        asking = {
            "brain": lambda _: running["brain"].timed("/brain/stats"),
            "`collection.count()` over HTTP": lambda _: running["floor"].timed("/count"),
        }
        samples = interleaved(asking, range(WARM_UP + run.rounds), warm_up=WARM_UP)
    line = Line.of(f"`/brain/stats`, {run.large:,} chunks{on(server)}", "ms", samples, {})
    limit = Comparison(f"{MOST:g} ms", Spread.of([MOST]), line.brain.median / MOST, Goal(1.0))
    return Line(line.what, line.unit, line.brain, (limit, *line.comparisons))
