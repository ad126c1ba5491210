"""The old names: thin functions over one brain."""

from __future__ import annotations

import asyncio

import pytest
from household import fill

from api.schemas import AnswerBody, StatsBody
from brain_pipeline import Settings, legacy
from brain_pipeline.brain import Brain
from brain_pipeline.errors import InvalidRequest
from brain_pipeline.records import NOT_FOUND
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

QUESTION = "What do we need for the zoo field trip?"


@pytest.fixture
def brain(tmp_path):
    settings = Settings.load(data_dir=tmp_path, timezone="UTC")
    made = fill(Brain(settings, embedder=HashedTokenEmbedder(), llm=ScriptedLLM("A slip and $5.")))
    legacy.use(made)
    yield made
    legacy.close()


def test_a_question_gives_what_the_http_contract_gives(brain):
    for question in (QUESTION, "Who won the chess olympiad?"):
        got, told = legacy.query(question), AnswerBody.of(brain.query(question)).model_dump(mode="json")
        assert {**got, "query_time_ms": 0} == {**told, "query_time_ms": 0}
    assert len(legacy.query("field trip, field day", top_k=1)["sources"]) == 1
    assert legacy.query("When are library books due?", source="email")["sources"] == []
    with pytest.raises(InvalidRequest):
        legacy.query(" ")


def test_an_answer_is_text_with_its_sources(brain):
    assert legacy.answer(QUESTION) == str(brain.query(QUESTION))
    assert legacy.answer(QUESTION).endswith("Found in: Field Trip Permission Slip, 2025-09-15")
    assert legacy.answer("Who won the chess olympiad?") == NOT_FOUND


def test_mail_is_brought_in(brain):
    message = b"Subject: Chess olympiad\nFrom: club@example.org\nMessage-ID: <1@x>\n\nHazel won the chess olympiad."
    assert legacy.ingest_email(message).new == 1
    assert legacy.ingest_newsletter("<p>The boats sail at four.</p>", subject="Harbour news").new == 1
    assert [source["subject"] for source in legacy.query("Who won the chess olympiad?")["sources"]] == [
        "Chess olympiad"
    ]
    assert legacy.query("When do the boats sail?", source="newsletter")["sources"][0]["source_type"] == "newsletter"


def test_stats_are_those_of_the_http_contract(brain):
    assert StatsBody.model_validate(legacy.stats(), strict=False) == StatsBody.of(brain.stats())
    assert list(legacy.stats()) == list(StatsBody.model_fields)


def test_embeddings(brain):
    vector = brain.embedder.get_text_embedding("zoo")
    assert legacy.get_embedding("zoo") == vector
    assert asyncio.run(legacy.get_embedding_async("zoo")) == vector


def test_without_another_it_is_the_environment_s_brain_opened_once(tmp_path, monkeypatch):
    monkeypatch.setenv("CHROMA_DB_PATH", str(tmp_path / "none"))
    legacy.close()
    assert legacy.stats()["db_path"] == str(tmp_path / "none")
    assert legacy._brain() is legacy._brain()
    legacy.close()
    assert not (tmp_path / "none").exists()


def test_another_brain_takes_its_place_and_the_first_is_closed(brain, tmp_path):
    other = Brain(Settings.load(data_dir=tmp_path / "other"), embedder=HashedTokenEmbedder(), llm=ScriptedLLM("x"))
    assert legacy.stats()["total_documents"] == 4
    legacy.use(other)
    assert legacy.stats()["total_documents"] == 0
    assert not brain.catalog.store.ownership._lock.is_locked
    legacy.use(other)
    assert legacy._brain() is other


def test_members_are_learned_and_looked_up(brain):
    legacy.learn_assignment("domain:gulls.example", "Hazel")
    (found,) = legacy.lookup_assignment(sender="Coach <coach@gulls.example>", subject="Practice")
    assert (found["member"], found["why"]) == ("Hazel", "sender @gulls.example was Hazel's 1 of 1 times")
    assert legacy.lookup_assignment(text="nothing is known of this") == []
