"""Retrieval takes short cuts that change nothing in what is found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from brain_pipeline.ask import retrieve
from brain_pipeline.ask.answer import WORTH
from brain_pipeline.brain import Brain
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


def found(brain, question, **how):
    return [(node.node_id, node.score) for node in brain._pipeline.retriever(**how).retrieve(question)]


@pytest.mark.parametrize("kind", [None, "email", "newsletter"])
def test_what_is_not_worth_reading_is_not_looked_up_and_nothing_else(brain, kind):
    read = 0
    for question in QUESTIONS:
        everything, some = found(brain, question, kind=kind), found(brain, question, kind=kind, worth=WORTH)
        best = everything[0][1]
        needed = [(id_, value) for id_, value in everything if value >= WORTH * best]
        assert some[: len(needed)] == needed, question
        read += len(some)
    assert read < len(QUESTIONS) * retrieve.KEPT / 2


def test_in_cosine_space_the_distance_tells_the_cosine(brain):
    store = brain.catalog.store
    rows, vectors = store.sample(50)
    for row, vector in zip(rows, vectors, strict=True):
        near = store.nearest(vector, 20)
        assert near[row.id] == pytest.approx(1.0, abs=1e-5)
        exact = store.cosines(vector, list(near))
        assert [near[id_] for id_ in exact] == pytest.approx(list(exact.values()), abs=1e-5)
        assert np.all(np.diff(list(near.values())) <= 0)
