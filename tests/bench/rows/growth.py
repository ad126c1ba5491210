"""What a collection costs as it grows: the time of a question, and memory."""

from __future__ import annotations

from bench.figures import Comparison, Goal, Line, Spread, interleaved
from bench.processes import make_keyword_index, model_server
from bench.rows.query import asking_of, require_answers
from bench.run import WARM_UP, Run

CONTENDERS = ("floor", "stock")


def growth(run: Run) -> list[Line]:
    """A question over the largest collection against one over the smallest, and the memory of a chunk."""
    points = [_at(run, size) for size in run.sizes]
    first, last = points[0], points[-1]
    slower = Line.of(
        f"a question over {last['size']:,} chunks",
        "ms",
        {"brain": last["samples"]["brain"], f"over {first['size']:,}": first["samples"]["brain"]},
        {f"over {first['size']:,}": Goal(2.0)},
        points=[_medians(point) for point in points],
    )
    each = {name: _bytes_a_chunk(first, last, name) for name in ("brain", "floor")}
    memory = Line(
        "memory of a chunk",
        "kB",
        Spread.of([each["brain"]]),
        (Comparison("Chroma's own", Spread.of([each["floor"]]), each["brain"] / each["floor"], Goal(1.3)),),
    )
    return [slower, memory]


def _at(run: Run, size: int) -> dict:
    make_keyword_index(run.database(size))  # which leaves memory behind that a service started later does not have
    with model_server() as models, run.contenders(size, models, peers=CONTENDERS) as running:
        asked = run.questions_of(size, seed=5)
        require_answers(running, asked[0])
        samples = interleaved({name: asking_of(each) for name, each in running.items()}, asked, warm_up=WARM_UP)
        memory = {name: each.memory() for name, each in running.items()}
    return {"size": size, "samples": samples, "memory": memory}


def _medians(point: dict) -> dict:
    medians = {name: Spread.of(values).median for name, values in point["samples"].items()}
    return {"chunks": point["size"], "ms": medians, "memory_mb": {n: m / 1e6 for n, m in point["memory"].items()}}


def _bytes_a_chunk(first: dict, last: dict, name: str) -> float:
    return (last["memory"][name] - first["memory"][name]) / (last["size"] - first["size"]) / 1000
