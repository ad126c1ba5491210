"""What is kept in memory of questions: only where that is wanted, and only while nothing has changed."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from household import CENTRAL, SLIP, fill, mail

from brain_pipeline.ask.recent import Recent
from brain_pipeline.brain import Brain
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

QUESTION = "What does the zoo field trip need?"
MORE = mail("Zoo field trip: hats", "For the zoo field trip every child needs a red hat and a signed slip.", day=16)


class CountingEmbedder(HashedTokenEmbedder):
    questions: int = 0

    async def _aget_query_embedding(self, query):
        self.questions += 1
        return self._get_query_embedding(query)


@pytest.fixture
def asked(tmp_path):
    """Counts what the models are asked, and opens a brain that keeps so many questions."""
    prompts = []

    def llm(messages):
        prompts.append(messages)
        return "Every child needs a signed permission slip and $5."

    def opened(cache):
        settings = Settings.load(chroma_db_path=tmp_path, timezone="America/Chicago", question_cache=cache)
        brain = Brain(settings, embedder=CountingEmbedder(), llm=ScriptedLLM(llm), clock=lambda: clock[0])
        return fill(brain)

    clock = [datetime(2025, 9, 20, tzinfo=CENTRAL)]
    opened.prompts, opened.clock = prompts, clock
    return opened


def test_a_question_that_is_asked_again_is_answered_from_memory(asked):
    with asked(10) as brain:
        first, again = brain.query(QUESTION), brain.query(QUESTION)
        assert (again.text, again.sources, again.confidence) == (first.text, first.sources, first.confidence)
        assert len(asked.prompts) == brain.embedder.questions == 1
        brain.query(f"{QUESTION} Please.")
        assert len(asked.prompts) == brain.embedder.questions == 2


def test_another_day_and_other_mail_are_asked_about_anew(asked):
    with asked(10) as brain:
        brain.query(QUESTION)
        asked.clock[0] += timedelta(days=1)
        brain.query(QUESTION)
        assert len(asked.prompts) == 2
        fill(brain, [MORE])
        assert MORE.subject in {source.subject for source in brain.query(QUESTION).sources}
        assert len(asked.prompts) == 3
        brain.forget(MORE.message_id)
        brain.forget(SLIP.message_id)
        assert brain.query(QUESTION).sources == ()
        assert brain.embedder.questions == 1


def test_by_default_nothing_is_kept(asked):
    assert Settings.load().question_cache == 0
    with asked(0) as brain:
        brain.query(QUESTION)
        brain.query(QUESTION)
        assert len(asked.prompts) == brain.embedder.questions == 2


def test_the_longest_unused_goes_first():
    recent = Recent(2)
    for key in "ab":
        recent.keep(key, key.upper())
    assert recent.get("a") == "A"
    recent.keep("c", "C")
    assert [recent.get(key) for key in "abc"] == ["A", None, "C"]
