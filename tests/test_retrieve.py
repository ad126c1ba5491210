"""Retrieval takes short cuts that change nothing in what is found."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from brain_pipeline.ask import retrieve
from brain_pipeline.ask.answer import WORTH
from brain_pipeline.ask.check import resting
from brain_pipeline.brain import Brain
from brain_pipeline.index.store import Store
from brain_pipeline.mail.mailboxes import iter_messages
from brain_pipeline.sample import sample_mail
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder

SET = Path(__file__).with_name("data") / "family_questions.jsonl"
QUESTIONS = [json.loads(line)["question"] for line in SET.read_text().splitlines()][::4]


@pytest.fixture(scope="module")
def brain(tmp_path_factory):
    settings = Settings.load(chroma_db_path=tmp_path_factory.mktemp("chroma"), timezone="America/Chicago")
    with Brain(settings, embedder=HashedTokenEmbedder()) as filled:
        filled.ingest(iter_messages([sample_mail()]))
        yield filled


@pytest.fixture
def read(monkeypatch):
    """How many rows and vectors were read."""
    counts = Counter()
    for name in ("get", "cosines"):
        plain = getattr(Store, name)

        def counting(store, *given, name=name, plain=plain):
            counts[name] += len(given[-1])
            return plain(store, *given)

        monkeypatch.setattr(Store, name, counting)
    return counts


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("source", ["all", "email", "newsletter"])
def test_what_is_not_worth_reading_is_not_looked_up_and_nothing_else(brain, read, source, limit):
    pipeline, spared = brain._pipeline, Counter()
    for question in QUESTIONS:
        every = asyncio.run(pipeline.find(question, source=source))
        spared += read
        read.clear()
        some = asyncio.run(pipeline.find(question, source=source, limit=limit))
        spared -= read
        read.clear()
        needed = [source for source in every[:limit] if source.score >= WORTH * every[0].score > 0]
        assert [each.id for each in some[: len(needed)]] == [each.id for each in needed], question
        assert [each.score for each in some[: len(needed)]] == pytest.approx([each.score for each in needed])
    assert spared["get"] > len(QUESTIONS) * retrieve.KEPT / 2
    assert spared["cosines"] > 0 or source != "all"


def test_in_cosine_space_the_distance_tells_the_cosine(brain):
    store = brain.catalog.store
    rows, vectors = store.sample(50)
    for row, vector in zip(rows, vectors, strict=True):
        near = store.nearest(vector, 20)
        assert near[row.id] == pytest.approx(1.0, abs=1e-5)
        exact = store.cosines(vector, list(near))
        assert [near[id_] for id_ in exact] == pytest.approx(list(exact.values()), abs=1e-5)
        assert np.all(np.diff(list(near.values())) <= 0)


def test_the_index_tells_what_an_answer_rests_on_as_the_text_does(brain):
    left_out = 0
    for question in QUESTIONS:
        sources = asyncio.run(brain._pipeline.find(question, limit=3))
        indexed = brain.catalog.keywords().passages(source.id for source in sources)
        for source in sources:
            used = resting(source.passage, question, sources)
            assert resting(source.passage, question, sources, indexed) == used
            assert source in used
            left_out += len(sources) - len(used)
    assert left_out
