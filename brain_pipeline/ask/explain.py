"""Why a question got the sources it got: every candidate, its scores, and what removed it."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from brain_pipeline import cells
from brain_pipeline.ask.answer import LOW, WORTH
from brain_pipeline.ask.copies import says_the_same
from brain_pipeline.ask.events import merged
from brain_pipeline.ask.pipeline import Pipeline, kind_of
from brain_pipeline.ask.postprocess import Cap, OnePerEmail
from brain_pipeline.ask.prompt import build_messages
from brain_pipeline.ask.retrieve import KEPT, KEPT_OF_ONE, Trace
from brain_pipeline.ask.score import features
from brain_pipeline.errors import ConfigError
from brain_pipeline.index.vectors import as_node
from brain_pipeline.records import Source

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that was considered.

    Attributes:
        source: the passage, its email, and the final score in [0, 1].
        cosine: between the question's vector and the passage's, in [-1, 1].
        keywords: the share of the question's words that the passage holds, by their weight, in [0, 1].
        removed: what kept it from the language model; empty when it reads it.
    """

    source: Source
    cosine: float
    keywords: float
    removed: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every candidate of a question, best first, and what would be sent to the language model.

    Attributes:
        question: as it was asked.
        candidates: best first.
        prompt: role and text of each message; empty when no candidate is worth asking a model about.
    """

    question: str
    candidates: tuple[Candidate, ...]
    prompt: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        table = [f"{'score':>5}  {'cosine':>6}  {'words':>5}  email"]
        for each in self.candidates:
            figures = f"{each.source.score:5.2f}  {each.cosine:6.2f}  {each.keywords:5.2f}"
            why = f"  ({each.removed})" if each.removed else ""
            table.append(
                f"{figures}  {each.source.subject or '(no subject)'}, {each.source.day or 'unknown date'}{why}"
            )
        messages = [f"--- {role} ---\n{text}" for role, text in self.prompt]
        return "\n".join([self.question, "", *table, "", *messages]).rstrip()

    def _repr_html_(self) -> str:
        head = ("score", "cosine", "words", "email", "date", "removed", "passage")
        return cells.explanation(self.question, head, [_row(each) for each in self.candidates], self.prompt)

    def to_frame(self) -> pd.DataFrame:
        """One row for each candidate, best first.

        Raises:
            ConfigError: pandas is not installed.
        """
        try:
            import pandas as pd  # noqa: PLC0415  (never a dependency)
        except ImportError as error:
            raise ConfigError("A data frame needs pandas: pip install 'family-brain[notebook]'.") from error
        names = ["score", "cosine", "keywords", "subject", "day", "removed", "source_type", "sender", "id", "passage"]
        return pd.DataFrame([_fields(each) for each in self.candidates], columns=names)


def _fields(candidate: Candidate) -> tuple[object, ...]:
    source = candidate.source
    about = (source.subject, source.day, candidate.removed, source.source_type, source.sender, source.id)
    return (source.score, candidate.cosine, candidate.keywords, *about, source.passage)


def _row(candidate: Candidate) -> tuple[str, ...]:
    source = candidate.source
    figures = (f"{number:.2f}" for number in (source.score, candidate.cosine, candidate.keywords))
    day = source.day.isoformat() if source.day else "unknown date"
    return (*figures, source.subject or "(no subject)", day, candidate.removed, source.passage)


async def explain(
    pipeline: Pipeline, question: str, *, top_k: int | None = None, source: str = "all", now: datetime | None = None
) -> Explanation:
    """What ``pipeline`` considers for a question, and why it sends what it sends; no language model is asked.

    Arguments and errors are those of ``Brain.aquery``.
    """
    question, limit = pipeline.checked(question, top_k)
    if await asyncio.to_thread(pipeline.catalog.store.count) == 0:
        return Explanation(question, (), ())
    now = now or pipeline.clock()
    window = await asyncio.to_thread(pipeline.agenda.window, question, now)
    events = await asyncio.to_thread(pipeline.events, question, source, now, window)
    kind = kind_of(source)
    retriever = await asyncio.to_thread(pipeline.retriever, kind, now, window=window)
    trace = await retriever.trace(QueryBundle(question))
    traces = [trace]
    if kind is not None:
        everything = await asyncio.to_thread(pipeline.retriever, now=now, window=window)
        traces.append(await everything.trace(QueryBundle(question)))
    return await asyncio.to_thread(_explained, pipeline, question, limit, traces, events=events, now=now)


def _explained(
    pipeline: Pipeline, question: str, limit: int, traces: list[Trace], *, events: Sequence[Source], now: datetime
) -> Explanation:
    trace, reader = traces[0], pipeline.catalog.reader
    removed: dict[str, str] = dict(_before_nodes(trace))
    left = {node.node_id for node in trace.nodes}
    for node in (node for node in trace.best if node.node_id not in left):
        originals = [kept for kept in trace.nodes if says_the_same(node, kept, reader)]
        removed[node.node_id] = f"copy of {_name(pipeline.source_of(originals[0]))}" if originals else "copy"
    nodes = trace.nodes
    for postprocessor in pipeline.postprocessors(limit):
        before = {node.node_id for node in nodes}
        nodes = postprocessor.postprocess_nodes(nodes)
        removed |= dict.fromkeys(before - {node.node_id for node in nodes}, _reason(postprocessor))
    mails = tuple(map(pipeline.source_of, nodes))
    found = merged(events, mails, limit)
    removed |= {mail.id: f"beyond the cap of {limit}, after events" for mail in mails if mail.id not in _ids(found)}
    sources = pipeline.readable(question, found)
    removed |= {source.id: _below(found[0].score) for source in found if source.id not in _ids(sources)}
    messages = build_messages(question, sources, now=now, boundary=secrets.token_hex(8)) if sources else ()
    prompt = tuple((str(message.role.value), message.content or "") for message in messages)
    return Explanation(question, tuple(_candidates(pipeline, traces, removed)), prompt)


def _ids(sources: Sequence[Source]) -> set[str]:
    return {source.id for source in sources}


def _before_nodes(trace: Trace) -> Iterator[tuple[str, str]]:
    """Why candidates did not even become nodes."""
    became = {node.node_id for node in trace.best}
    counts: Counter[str] = Counter()
    for id_, _ in sorted(trace.scores.items(), key=itemgetter(1), reverse=True):
        email = trace.passages[id_].email
        counts[email] += 1
        if id_ in became:
            continue
        if not email:
            yield id_, "belongs to no email"
        elif counts[email] > KEPT_OF_ONE:
            yield id_, "not among the best passages of its email"
        else:
            yield id_, f"not among the best {KEPT}"


def _name(source: Source) -> str:
    return source.attribution.removeprefix("Found in: ")


def _reason(postprocessor: BaseNodePostprocessor) -> str:
    match postprocessor:
        case OnePerEmail():
            return "not the best passage of its email"
        case Cap(limit=limit):
            return f"beyond the cap of {limit}"
    return f"removed by {type(postprocessor).__name__}"


def _below(best: float) -> str:
    return f"below {LOW}" if best < LOW else f"below {WORTH} of the best score, {WORTH * best:.2f}"


def _candidates(pipeline: Pipeline, traces: list[Trace], removed: dict[str, str]) -> Iterator[Candidate]:
    wanted = traces[0]
    known = {id_: trace for trace in reversed(traces) for id_ in trace.scores}  # the wanted kind's own figures count
    rows = {row.id: row for row in pipeline.catalog.store.get(list(known))}
    for id_ in sorted(rows, key=lambda id_: known[id_].scores[id_], reverse=True):
        trace = known[id_]
        node = NodeWithScore(node=as_node(rows[id_]), score=trace.scores[id_])
        [evidence] = features(trace.asked, [trace.cosines[id_]], [trace.passages[id_]])
        why = removed.get(id_, "") if id_ in wanted.scores else f"is {trace.passages[id_].kind}, which is not asked for"
        yield Candidate(pipeline.source_of(node), float(evidence[0]), min(float(evidence[1]), 1.0), why)
