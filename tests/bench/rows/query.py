"""One question after another over HTTP, with model servers that take no time."""

from __future__ import annotations

from collections.abc import Callable

from bench.figures import FASTER, Goal, Line, interleaved
from bench.processes import Failed, Service, model_server, run_module
from bench.run import WARM_UP, Run
from bench.same import share_same_as_where
from brain_pipeline.records import Kind

GOALS = {"floor": Goal(1.15), "stock": FASTER, "citation": FASTER}
THINK = 20  # milliseconds of a model's request, where it takes any
KINDS: tuple[Kind, ...] = ("email", "newsletter")


def query(run: Run, size: int, *, server: bool = False) -> Line:
    """A question against the floor and both peers."""
    with model_server() as models, run.contenders(size, models, server=server) as running:
        asked = run.questions_of(size, seed=1)
        require_answers(running, asked[0])
        asking = {name: asking_of(each) for name, each in running.items()}
        asking["empty route"] = lambda _: running["floor"].timed("/empty")
        samples = interleaved(asking, asked, warm_up=WARM_UP)
    return Line.of(f"a question over HTTP, {size:,} chunks{on(server)}", "ms", samples, GOALS)


def on(server: bool) -> str:
    """What a line says of where the collection is."""
    return ", Chroma server" if server else ""


def asking_of(service: Service, **parameters: str) -> Callable[[str], float]:
    return lambda question: service.asked(question, **parameters)


def require_answers(running: dict[str, Service], question: str) -> None:
    """Everyone must have found something and let the language model answer from it, or the figures mean nothing."""
    for name, each in running.items():
        answered = each.get("/brain/query", q=question)
        if "Please be there" not in answered["answer"] or not answered["sources"]:
            raise Failed(f"{name} does not answer from the mail: {answered}")


def sources(run: Run, size: int, *, server: bool = False) -> list[Line]:
    """Questions about one kind of mail: how much longer they take than those about all, and what they find."""
    with model_server() as models, run.contenders(size, models, server=server, peers=("floor", "stock")) as running:
        asking = {"unfiltered": asking_of(running["brain"])}
        for kind in KINDS:
            asking |= {f"{name} {kind}": asking_of(each, source=kind) for name, each in running.items()}
        samples = interleaved(asking, run.questions_of(size, seed=2), warm_up=WARM_UP)
    lines = []
    for kind in KINDS:
        compared = {
            "brain": samples[f"brain {kind}"],
            "unfiltered": samples["unfiltered"],
            "the floor with Chroma's `where`": samples[f"floor {kind}"],
            "stock with its filter": samples[f"stock {kind}"],
        }
        lines.append(
            Line.of(f"only `source={kind}`, {size:,} chunks{on(server)}", "ms", compared, {"unfiltered": Goal(1.5)})
        )
    return lines if server else [*lines, *(_same(run, size, kind) for kind in KINDS)]


def _same(run: Run, size: int, kind: Kind) -> Line:
    share = share_same_as_where(run.database(size), run.questions_of(size, seed=3), kind)
    return Line.of(
        f"same emails as with `where`, `source={kind}`, {size:,} chunks",
        "of questions",
        {"brain": [share], "`where`": [1.0]},
        {"`where`": Goal(1.0, at_least=True)},
    )


def first_event(run: Run) -> Line:
    """What was found, as the first event of a stream, against finding it in one's own process."""
    with model_server(think=THINK) as models:
        numbers = str(run.small), str(run.rounds)
        samples = run_module("bench.first_event", run.database(run.small), models.url, *numbers)
    what = f"the first event of a stream, {run.small:,} chunks, models at {THINK} ms"
    return Line.of(what, "ms", samples, {"retrieval alone": Goal(1.3)})
