"""Candidates from both indexes, scored as one list."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from math import ceil
from operator import itemgetter

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeWithScore, QueryBundle
from typing_extensions import override

from brain_pipeline.ask.copies import is_quoted, without_copies
from brain_pipeline.ask.question import NO_QUESTION, Floats, Question, read_question
from brain_pipeline.ask.recent import Recent
from brain_pipeline.ask.score import MINILM, Calibration, features, logits, score
from brain_pipeline.ask.whose import Whose
from brain_pipeline.family.when import Window
from brain_pipeline.index.catalog import Catalog
from brain_pipeline.index.keywords import KeywordIndex, Passage
from brain_pipeline.index.store import Vectors
from brain_pipeline.index.vectors import as_node
from brain_pipeline.records import Kind

FEWEST = 40  # candidates asked of each index
DATED = 12  # candidates asked of the keyword index for the days that a question is about
MATCHING = 8  # of those that only words find, the best, whose vectors are read
SPARE = 1.3  # times as many, where only some are wanted
MOST = 3_200  # beyond it, the rows of one kind are looked up by their ids instead of over-fetched
PAGE = 1_000  # rows looked up by id at once
KEPT, KEPT_OF_ONE = 12, 2  # chunks that become nodes, in all and of one email


@dataclass(frozen=True, slots=True)
class Trace:
    """How a retriever came to its nodes.

    Attributes:
        asked: the question as it was read.
        cosines: of every candidate with the question, by row id.
        passages: what the keyword index knows of them.
        scores: their scores, in [0, 1].
        best: the few candidates that became nodes, best first.
        nodes: those of them that are left without copies.
    """

    asked: Question
    cosines: dict[str, float]
    passages: dict[str, Passage]
    scores: dict[str, float]
    best: list[NodeWithScore]
    nodes: list[NodeWithScore]


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known before any text is read.

    Attributes:
        asked: the question as it was read.
        vector: the question's.
        near: the cosines of the nearest rows, best first, by row id.
        scores: of these.
        matching: the rows that its words find.
        passages: what the keyword index knows of both.
    """

    asked: Question
    vector: Vectors
    near: dict[str, float]
    scores: dict[str, float]
    matching: dict[str, Passage]
    passages: dict[str, Passage]


class HybridRetriever(BaseRetriever):
    """Chunks that may answer a question, from vectors and keywords, each with one relevance score in [0, 1].

    It fetches until ``emails`` distinct emails are among the candidates or the collection is exhausted, so that one
    long email can't crowd out the others. Chunks that score below ``worth`` times the best one's are left out, and as
    little as possible is read of them.
    """

    def __init__(
        self,
        catalog: Catalog,
        embedder: BaseEmbedding,
        *,
        emails: int = 3,
        kind: Kind | None = None,
        calibration: Calibration = MINILM,
        today: date | None = None,
        worth: float = 0.0,
        window: Window | None = None,
        whose: Whose | None = None,
        vectors: Recent[list[float]] | None = None,
    ) -> None:
        super().__init__()
        self._catalog = catalog
        self._embedder = embedder
        self._emails = emails
        self._kind = kind
        self._calibration = calibration
        self._today = today
        self._worth = worth
        self._window = window
        self._whose = whose
        self._vectors = vectors or Recent(0)

    @override
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        asked, matching = self._matching(query_bundle.query_str)
        vector = query_bundle.embedding or self._embedder.get_query_embedding(query_bundle.query_str)
        return self._select(asked, matching, np.asarray(vector, dtype=np.float32)).nodes

    @override
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return (await self.trace(query_bundle)).nodes

    async def trace(self, query_bundle: QueryBundle) -> Trace:
        """What ``aretrieve`` gives, and how it came about."""
        # Chroma and SQLite block; threads keep the event loop free for other requests. Words are looked up meanwhile.
        matching = asyncio.ensure_future(asyncio.to_thread(self._matching, query_bundle.query_str))
        try:
            vector = query_bundle.embedding or await self._vector(query_bundle.query_str)
        except BaseException:
            matching.cancel()
            raise
        return await asyncio.to_thread(self._select, *await matching, np.asarray(vector, dtype=np.float32))

    async def _vector(self, question: str) -> list[float]:
        vector = self._vectors.get(question)
        if vector is None:
            vector = await self._embedder.aget_query_embedding(question)
            self._vectors.keep(question, vector)
        return vector

    def _matching(self, question: str) -> tuple[Question, dict[str, Passage]]:
        """The question as it is read, and the chunks that its words find, best first."""
        keywords = self._catalog.keywords()
        if keywords is None:
            return NO_QUESTION, {}
        asked = read_question(question, keywords, self._today, self._window)
        found = keywords.search(asked.words, FEWEST if self._only is None else MOST, self._kind)
        if asked.when and asked.when.days:  # apart, so that a day in figures takes no word's place
            found |= keywords.search(sorted(asked.when.days), DATED, self._kind)
        return asked, self._wanted(found)

    def _select(self, asked: Question, matching: dict[str, Passage], vector: Vectors) -> Trace:
        known = self._known(asked, matching, vector)
        if self._worth:
            few = self._chosen(known, few=True)
            if len(few.nodes) == len(few.best) and not any(map(is_quoted, few.best)):
                return few
        return self._chosen(known)

    def _known(self, asked: Question, matching: dict[str, Passage], vector: Vectors) -> _Known:
        near, passages = self._near(vector)
        return _Known(asked, vector, near, self._scores(asked, near, passages), matching, passages | matching)

    def _chosen(self, known: _Known, *, few: bool = False) -> Trace:
        """The best candidates that are worth it.

        With ``few``, it is the best chunk of each of the best ``emails``, and nothing is read of the others: enough
        unless some are copies or quotes, which have to give way. Rows that only words find are then taken to be no
        nearer than the farthest of the nearest.
        """
        each = 1 if few else KEPT_OF_ONE
        least = self._least(_best_of_each_email(known.scores, known.passages, each), few=few)
        bound = (min if few and self._catalog.store.in_order else max)(known.near.values(), default=1.0)
        cosines = self._catalog.store.cosines(known.vector, self._hopeful(known, bound, least))
        scores = known.scores | self._scores(known.asked, cosines, known.passages)
        best = _best_of_each_email(scores, known.passages, each)
        least = self._least(best, few=few)
        nodes = self._look_up({id_: value for id_, value in best.items() if value >= least})
        if not few and any(map(is_quoted, nodes)):  # what a reply quotes takes its place, at its own score
            nodes = self._look_up(best)
        kept = without_copies(nodes, self._catalog.reader)
        return Trace(known.asked, known.near | cosines, known.passages, scores, best=nodes, nodes=kept)

    def _least(self, best: dict[str, float], *, few: bool) -> float:
        """What a chunk must score to be wanted; ``best`` are the best so far, best first."""
        values = list(best.values())
        worth = self._worth * max(values, default=0.0)
        return max(worth, values[self._emails - 1]) if few and len(values) >= self._emails else worth

    def _look_up(self, scores: dict[str, float]) -> list[NodeWithScore]:
        rows = {row.id: row for row in self._catalog.store.get(list(scores))}
        return [NodeWithScore(node=as_node(rows[id_]), score=value) for id_, value in scores.items() if id_ in rows]

    def evidence(self, question: str) -> dict[str, Floats]:
        """What the score is made from, by email: the features of its best chunk, to learn a calibration from."""
        asked, matching = self._matching(question)
        vector = np.asarray(self._embedder.get_query_embedding(question), dtype=np.float32)
        known = self._known(asked, matching, vector)
        hopeful = self._hopeful(known, max(known.near.values(), default=1.0), 0.0)
        cosines, passages = known.near | self._catalog.store.cosines(vector, hopeful), known.passages
        found = features(asked, list(cosines.values()), [passages[id_] for id_ in cosines])
        worst_first = np.argsort(logits(found, self._calibration), kind="stable")
        emails = [passages[id_].email for id_ in cosines]
        return {emails[i]: found[i] for i in worst_first if emails[i]}

    def _scores(self, asked: Question, cosines: dict[str, float], passages: dict[str, Passage]) -> dict[str, float]:
        candidates = [passages[id_] for id_ in cosines]
        emails = [passage.email for passage in candidates]
        preferences = self._whose.preferences(emails) if self._whose else {}
        preferred = [preferences.get(email, 0.0) for email in emails] if preferences else None
        found = score(asked, list(cosines.values()), candidates, self._calibration, preferred)
        return dict(zip(cosines, found.tolist(), strict=True))

    def _hopeful(self, known: _Known, bound: float, least: float) -> list[str]:
        """Of rows that only words find, those whose vectors are worth reading, which takes long.

        That are the ``MATCHING`` rows that score best as far as words tell, without those that would not reach
        ``least`` even if their cosine were the ``bound``.
        """
        others = [id_ for id_ in known.matching if id_ not in known.near]
        at_best = self._scores(known.asked, dict.fromkeys(others, bound), known.passages)
        first = sorted(others, key=at_best.__getitem__, reverse=True)[:MATCHING]
        return [id_ for id_ in first if at_best[id_] >= least]

    @property
    def _only(self) -> frozenset[str] | None:
        return self._whose.only if self._whose else None

    def _near(self, vector: Vectors) -> tuple[dict[str, float], dict[str, Passage]]:
        """The nearest rows of the wanted kind and member, and what the keyword index knows of them.

        There are as many as a search without filter would look at, so that what is found is what Chroma's ``where``
        finds, which takes a hundred times as long.
        """
        keywords = self._catalog.keywords()
        if keywords is None:
            return {}, {}
        limit = self._first_limit(keywords)
        while limit <= MOST:
            cosines = self._catalog.store.nearest(vector, limit)
            passages = self._wanted(keywords.passages(cosines, self._kind))
            wanted = [id_ for id_ in cosines if id_ in passages]
            enough = len(wanted) >= FEWEST and self._hold_enough(wanted, passages)
            if enough or len(cosines) < limit:
                first = wanted[:FEWEST]
                near = first if self._hold_enough(first, passages) else wanted
                return {id_: cosines[id_] for id_ in near}, {id_: passages[id_] for id_ in near}
            limit *= 4
        return self._all_wanted(vector, keywords)

    def _hold_enough(self, ids: Iterable[str], passages: dict[str, Passage]) -> bool:
        return len({passages[id_].email for id_ in ids} - {""}) >= self._emails

    def _first_limit(self, keywords: KeywordIndex) -> int:
        """How many rows hold ``FEWEST`` wanted ones, if these are spread evenly, and some more."""
        share = 1.0
        if self._kind is not None:
            share *= keywords.count(self._kind) / max(keywords.count(), 1)
        if self._only is not None:
            share *= len(self._only) / max(keywords.emails(), 1)
        spare = SPARE if share < 1 else 1.0
        return ceil(FEWEST * spare / share) if share else MOST + 1

    def _all_wanted(self, vector: Vectors, keywords: KeywordIndex) -> tuple[dict[str, float], dict[str, Passage]]:
        """The rows of a rare kind or member: over-fetching would read the whole collection to find three of them."""
        ids = keywords.ids(kind=self._kind) if self._only is None else {*keywords.passages_of(self._only)}
        passages = self._wanted(keywords.passages(ids, self._kind))
        rows = sorted(passages)
        cosines: dict[str, float] = {}
        for start in range(0, len(rows), PAGE):
            cosines |= self._catalog.store.cosines(vector, rows[start : start + PAGE])
            cosines = dict(sorted(cosines.items(), key=itemgetter(1), reverse=True)[:FEWEST])
        return cosines, {id_: passages[id_] for id_ in cosines}

    def _wanted(self, passages: dict[str, Passage]) -> dict[str, Passage]:
        if self._only is None:
            return passages
        return {id_: passage for id_, passage in passages.items() if passage.email in self._only}


def _best_of_each_email(scores: dict[str, float], passages: dict[str, Passage], each: int) -> dict[str, float]:
    """The best ``KEPT`` chunks, best first, no more than ``each`` of an email and none that belongs to none."""
    best: dict[str, float] = {}
    counts: Counter[str] = Counter()
    for id_, value in sorted(scores.items(), key=itemgetter(1), reverse=True):
        email = passages[id_].email
        if email and counts[email] < each and len(best) < KEPT:
            best[id_] = value
            counts[email] += 1
    return best
