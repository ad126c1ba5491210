"""That nothing is won by leaving work out: the fast way finds what the plain way finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from llama_index.core.schema import QueryBundle

from bench.corpus import place, vector_at
from brain_pipeline.ask.retrieve import HybridRetriever
from brain_pipeline.brain import Brain
from brain_pipeline.records import Kind
from brain_pipeline.settings import Settings


def share_same_as_where(database: str, questions: Sequence[str], kind: Kind) -> float:
    """The share of questions whose best three emails of a kind are those that Chroma's ``where`` leads to."""
    settings = Settings.load(chroma_db_path=database, embed_model="nomic-embed-text")
    with Brain(settings) as brain:
        ours = [best_emails(brain, question, kind) for question in questions]
        with only(brain, kind):
            plain = [best_emails(brain, question, kind) for question in questions]
    return sum(map(list.__eq__, ours, plain)) / len(questions)


def best_emails(brain: Brain, question: str, kind: Kind) -> list[str]:
    """The emails that an answer would be made from, best first."""
    retriever = HybridRetriever(brain.catalog, brain.embedder, kind=kind, calibration=brain.calibration)
    found = retriever.retrieve(QueryBundle(question, embedding=vector_at(*place(question)).tolist()))
    emails = dict.fromkeys(node.metadata["message_id"] for node in found)
    return list(emails)[: brain.settings.context_chunks]


@contextmanager
def only(brain: Brain, kind: Kind) -> Iterator[None]:
    """Every search of the collection is one with ``where``, so that over-fetching has nothing left to do."""
    collection = brain.catalog.store.collection()
    assert collection is not None
    search = collection.query
    collection.query = partial(search, where={"source_type": kind})
    try:
        yield
    finally:
        collection.query = search
