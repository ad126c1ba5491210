"""Why a question got its sources: every candidate is there, with the figures and the reasons of the product itself."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from household import BAKE, HOUSEHOLD, SLIP, WEEKLY, fill, mail
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from brain_pipeline import Settings
from brain_pipeline.ask.pipeline import Pipeline
from brain_pipeline.brain import Brain
from brain_pipeline.errors import ConfigError, InvalidRequest
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

QUESTION = "What do we need for the zoo field trip?"


def brain_of(folder, mails=HOUSEHOLD, **more):
    settings = Settings.load(data_dir=folder, timezone="UTC", **more)
    return fill(Brain(settings, embedder=HashedTokenEmbedder(), llm=ScriptedLLM("A slip and $5.")), mails)


@pytest.fixture
def brain(tmp_path):
    with brain_of(tmp_path) as made:
        yield made


def removed(explanation):
    return {each.source.subject: each.removed for each in explanation.candidates}


def test_every_candidate_is_there_best_first_with_its_figures(brain):
    explanation = brain.explain(f" {QUESTION} ")
    assert explanation.question == QUESTION
    assert {each.source.subject for each in explanation.candidates} == {each.subject for each in HOUSEHOLD}
    scores = [each.source.score for each in explanation.candidates]
    assert scores == sorted(scores, reverse=True)
    asked = np.array(brain.embedder.get_query_embedding(QUESTION))
    for each in explanation.candidates:
        (row,) = brain.catalog.store.get([each.source.id])
        stored = np.array(brain.catalog.store.collection().get(ids=[row.id], include=["embeddings"])["embeddings"][0])
        assert each.cosine == pytest.approx(asked @ stored / np.linalg.norm(stored), abs=1e-4)
        assert 0 <= each.keywords <= 1
    assert explanation.candidates[0].keywords > explanation.candidates[-1].keywords


def test_what_is_not_removed_is_what_is_answered_from(brain):
    for question in (QUESTION, "When is the piano recital?", "Who won the chess olympiad?"):
        kept = [each.source for each in brain.explain(question).candidates if not each.removed]
        assert tuple(kept) == brain.query(question).sources, question


def test_the_prompt_is_the_one_that_is_sent(brain):
    explanation = brain.explain(QUESTION)
    assert brain.llm.calls == 0
    brain.query(QUESTION)
    (sent,) = brain.llm.conversations

    def without_boundary(text):
        boundary = text.partition("<<")[2].partition(" ")[0]
        return text.replace(boundary, "") if boundary else text

    told = [(role, without_boundary(text)) for role, text in explanation.prompt]
    assert told == [(message.role.value, without_boundary(message.content)) for message in sent]


def test_without_a_source_there_is_no_prompt(brain):
    explanation = brain.explain("Who won the chess olympiad?")
    assert explanation.prompt == ()
    assert {each.removed for each in explanation.candidates} == {"below 0.3", "beyond the cap of 3"}


def test_a_weaker_source_and_one_beyond_the_cap(tmp_path):
    trips = [
        mail(f"Zoo field trip group {n}", f"Group {n} needs boots for the zoo field trip.", day=n) for n in (1, 2, 3)
    ]
    with brain_of(tmp_path, [*trips, BAKE], context_chunks=2) as brain:
        reasons = list(removed(brain.explain("What does group 2 need for the zoo field trip?")).values())
        assert "beyond the cap of 2" in reasons
        assert any(reason.startswith("below") or not reason for reason in reasons)
        assert list(removed(brain.explain("zoo field trip boots", top_k=1)).values()).count("beyond the cap of 1") >= 1


def test_a_copy_names_what_it_copies(tmp_path):
    forward = mail("Fwd: Field Trip Permission Slip", SLIP.text, day=16)
    with brain_of(tmp_path, [*HOUSEHOLD, forward]) as brain:
        reasons = removed(brain.explain(QUESTION))
    both = {reasons["Field Trip Permission Slip"], reasons["Fwd: Field Trip Permission Slip"]}
    assert "" in both
    assert any(reason.startswith("copy of ") and "Field Trip Permission Slip, 2025-09-1" in reason for reason in both)


def test_one_email_of_many_passages(tmp_path):
    long = mail(
        "Zoo field trip", "\n\n".join(f"Zoo field trip, part {n}. " + "Bring boots and a coat. " * 40 for n in range(6))
    )
    with brain_of(tmp_path, [long, BAKE]) as brain:
        explanation = brain.explain("zoo field trip boots")
    reasons = [each.removed for each in explanation.candidates if each.source.subject == "Zoo field trip"]
    assert reasons.count("") == 1
    assert "not among the best passages of its email" in reasons
    assert {"copy of Zoo field trip, 2025-09-15", "not the best passage of its email"} & set(reasons)


def test_mail_of_another_kind_is_shown_as_such(brain):
    reasons = removed(brain.explain("When are library books due?", source="email"))
    assert reasons[WEEKLY.subject] == "is newsletter, which is not asked for"
    assert removed(brain.explain("When are library books due?", source="newsletter"))[WEEKLY.subject] == ""
    assert removed(brain.explain("When are library books due?"))[WEEKLY.subject] == ""


class NoTrips(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):  # noqa: ARG002  (the base class's signature)
        return [node for node in nodes if "zoo" not in node.text]


def test_a_postprocessor_of_one_s_own_is_named(brain, monkeypatch):
    ours = Pipeline.postprocessors
    monkeypatch.setattr(Pipeline, "postprocessors", lambda self, limit=None: [NoTrips(), *ours(self, limit)])
    assert removed(brain.explain(QUESTION))[SLIP.subject] == "removed by NoTrips"


def test_an_empty_brain_has_no_candidates(tmp_path):
    with Brain(Settings.load(data_dir=tmp_path / "none"), embedder=HashedTokenEmbedder()) as brain:
        assert brain.explain(QUESTION).candidates == ()
    assert not (tmp_path / "none").exists()


def test_what_cannot_be_asked_cannot_be_explained(brain):
    with pytest.raises(InvalidRequest):
        brain.explain("  ")


def test_as_text(brain):
    text = str(brain.explain(QUESTION))
    assert text.startswith(f"{QUESTION}\n\nscore  cosine  words  email\n")
    assert "Field Trip Permission Slip, 2025-09-15\n" in text
    assert "--- system ---\nYou help a family" in text


def test_as_a_data_frame(brain):
    frame = brain.explain(QUESTION).to_frame()
    assert len(frame) == 4
    assert list(frame.columns[:6]) == ["score", "cosine", "keywords", "subject", "day", "removed"]
    assert frame.subject[0] == SLIP.subject
    assert frame[frame.removed == ""].subject.tolist() == [SLIP.subject]


def test_without_pandas_it_says_what_to_install(brain, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match="pandas"):
        brain.explain(QUESTION).to_frame()
