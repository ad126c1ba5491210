"""Candidates from both indexes, scored as one list."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeWithScore, QueryBundle
from typing_extensions import override

from brain_pipeline.ask.question import read_question
from brain_pipeline.ask.score import MINILM, Calibration, score
from brain_pipeline.index.catalog import Catalog
from brain_pipeline.index.keywords import KeywordIndex
from brain_pipeline.index.metadata import PART, EmailFields, MetadataReader
from brain_pipeline.index.store import Candidate, Vectors
from brain_pipeline.index.vectors import as_node
from brain_pipeline.records import Kind

FEWEST = 50  # candidates asked of each index
MOST = 3_200  # beyond it, the rows of one kind are looked up by their ids instead of over-fetched
PAGE = 1_000  # rows looked up by id at once
LOOKED_AT = 20  # of the best candidates, for copies of one text
COPIED, COPIED_IN_THREAD = 0.85, 0.5  # of the words of the shorter text, to be a copy

_ANSWERED = re.compile(r"^(?:\s*(?:re|fwd?|aw|wg|rv|tr|sv|vs)\s*(?:\[\d+\])?:)+\s*", re.IGNORECASE)


class HybridRetriever(BaseRetriever):
    """Chunks that may answer a question, from vectors and keywords, each with one relevance score in [0, 1].

    It fetches until ``emails`` distinct emails are among the candidates or the collection is exhausted, so that one
    long email can't crowd out the others.
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
    ) -> None:
        super().__init__()
        self._catalog = catalog
        self._embedder = embedder
        self._emails = emails
        self._kind = kind
        self._calibration = calibration
        self._today = today

    @override
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        vector = query_bundle.embedding or self._embedder.get_query_embedding(query_bundle.query_str)
        return self._select(query_bundle.query_str, np.asarray(vector, dtype=np.float32))

    @override
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        vector = query_bundle.embedding or await self._embedder.aget_query_embedding(query_bundle.query_str)
        # Chroma and SQLite block; a thread keeps the event loop free for other requests.
        return await asyncio.to_thread(self._select, query_bundle.query_str, np.asarray(vector, dtype=np.float32))

    def _select(self, question: str, vector: Vectors) -> list[NodeWithScore]:
        keywords = self._catalog.keywords()
        if keywords is None:
            return []
        asked = read_question(question, keywords, self._today)
        found = {candidate.row.id: candidate for candidate in self._nearest(vector, keywords)}
        matching = [id_ for id_ in keywords.search(asked.words, FEWEST) if id_ not in found]
        found |= {c.row.id: c for c in self._of_kind(self._catalog.store.candidates(vector, matching))}
        candidates = list(found.values())
        passages = keywords.passages(found)
        scores = score(
            asked,
            [candidate.cosine for candidate in candidates],
            [passages.get(candidate.row.id) for candidate in candidates],
            self._calibration,
        )
        nodes = [
            NodeWithScore(node=as_node(candidate.row), score=float(value))
            for candidate, value in zip(candidates, scores, strict=True)
        ]
        return without_copies(sorted(nodes, key=NodeWithScore.get_score, reverse=True), self._catalog.reader)

    def _nearest(self, vector: Vectors, keywords: KeywordIndex) -> list[Candidate]:
        limit = FEWEST
        while True:
            nearest = self._catalog.store.nearest(vector, limit)
            wanted = self._of_kind(nearest)
            if self._count_emails(wanted) >= self._emails or len(nearest) < limit:
                return wanted
            if limit >= MOST:
                return self._look_up(vector, keywords)
            limit *= 4

    def _look_up(self, vector: Vectors, keywords: KeywordIndex) -> list[Candidate]:
        ids = sorted(keywords.ids(kind=self._kind))
        best: list[Candidate] = []
        for start in range(0, len(ids), PAGE):
            best += self._catalog.store.candidates(vector, ids[start : start + PAGE])
            best = sorted(best, key=lambda candidate: -candidate.cosine)[:FEWEST]
        return best

    def _of_kind(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return [c for c in candidates if self._kind in (None, self._fields(c).kind)]

    def _count_emails(self, candidates: Iterable[Candidate]) -> int:
        return len({self._fields(c).key for c in candidates} - {""})

    def _fields(self, candidate: Candidate) -> EmailFields:
        row = candidate.row
        return self._catalog.reader.read(row.metadata, row.text, row.id)


@dataclass(frozen=True, slots=True)
class _Statement:
    """What a node says, to tell whether another says the same."""

    node: NodeWithScore
    subject: str
    words: frozenset[str]
    figures: frozenset[str]

    @classmethod
    def of(cls, node: NodeWithScore, reader: MetadataReader) -> _Statement:
        words = frozenset(node.text.split())
        subject = _ANSWERED.sub("", reader.read(node.metadata, node.text, node.node_id).subject).casefold()
        return cls(node, subject, words, frozenset(word for word in words if any(map(str.isdigit, word))))

    @property
    def quoted(self) -> bool:
        """Whether it is the history below somebody's reply."""
        return bool(self.node.metadata.get(PART) == "quoted")

    def repeats(self, other: _Statement) -> bool:
        """Whether it is a copy: of most words, and of most figures, since this year's notice has last year's words."""
        needed = COPIED_IN_THREAD if self.subject == other.subject else COPIED
        return _shared(self.words, other.words) >= needed and _shared(self.figures, other.figures) >= COPIED_IN_THREAD


def _shared(some: frozenset[str], others: frozenset[str]) -> float:
    fewer = min(len(some), len(others))
    return len(some & others) / fewer if fewer else float(len(some) == len(others))


def without_copies(nodes: list[NodeWithScore], reader: MetadataReader) -> list[NodeWithScore]:
    """``nodes``, best first, without those that say what a better one says: forwards, quoting replies, second copies.

    Of a reply's quote and what it quotes, the latter is kept. Only the first ``LOOKED_AT`` are compared: the others do
    not reach an answer.
    """
    kept: list[_Statement] = []
    for node in nodes[:LOOKED_AT]:
        said = _Statement.of(node, reader)
        place = next((i for i, other in enumerate(kept) if said.repeats(other)), None)
        if place is None:
            kept.append(said)
        elif kept[place].quoted and not said.quoted:
            kept[place] = said
    return [*(statement.node for statement in kept), *nodes[LOOKED_AT:]]
