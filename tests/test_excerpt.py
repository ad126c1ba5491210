"""Answers that quote the mail: what is quoted, what is named as its source, and how much is looked at."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date

import pytest
from household import PIANO, SLIP, fill, mail
from hypothesis import given
from hypothesis import strategies as st

from brain_pipeline.ask.excerpt import INTRODUCTION, LENGTH, excerpt, quote
from brain_pipeline.ask.matches import best_part
from brain_pipeline.brain import Brain
from brain_pipeline.records import Found, Source
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

QUESTION = "What do we need for the zoo field trip?"
BUS = mail("Bus to the zoo field trip", "The bus for the zoo field trip leaves at 8:15. We need two drivers.", day=18)
LUNCH = mail("Lunch on the field trip", "For the zoo field trip we need a packed lunch without nuts.", day=19)
FILLER = "Nothing of interest is told in this sentence here. "


class Counting(HashedTokenEmbedder):
    texts: int = 0

    async def _aget_text_embeddings(self, texts):
        self.texts += len(texts)
        return [self._get_text_embedding(text) for text in texts]


def source(passage):
    fields = {"subject": "Trip", "sender": "", "source_type": "email", "score": 0.8, "day": date(2025, 9, 15)}
    return Source(id="1", email="<1>", passage=passage, **fields)


@pytest.fixture
def ask(tmp_path):
    def answered(llm, **more):
        settings = Settings.load(chroma_db_path=tmp_path, timezone="America/Chicago", warm_up=False, **more)
        with fill(Brain(settings, embedder=HashedTokenEmbedder(), llm=llm), (SLIP, BUS, LUNCH, PIANO)) as brain:
            found, *_, answer = asyncio.run(_events(brain))
        assert isinstance(found, Found)
        return found, answer

    return answered


async def _events(brain):
    return [event async for event in brain.astream(QUESTION)]


def quotes(answer):
    introduction, *lines = answer.text.split("\n")
    assert introduction == INTRODUCTION
    return lines


def test_excerpts_name_each_quoted_mail_and_no_other(ask):
    found, answer = ask(None, llm_provider="excerpts")
    assert len(found.sources) > 1
    assert answer.sources == found.sources
    for text, quoted in zip(quotes(answer), answer.sources, strict=True):
        assert text.strip("“”") in quoted.passage


def test_an_invented_figure_is_answered_with_one_mail_and_its_name(ask):
    found, answer = ask(ScriptedLLM("Bring a signed permission slip and $77.77 to the zoo field trip."))
    assert len(found.sources) > 1
    assert answer.sources == found.sources[:1]
    assert len(quotes(answer)) == 1


def test_a_model_s_answer_names_what_it_rests_on(ask):
    found, answer = ask(ScriptedLLM("Every child needs a signed permission slip and $5."))
    assert len(found.sources) > 1
    assert [used.subject for used in answer.sources] == [SLIP.subject]


@pytest.mark.parametrize(
    "passage",
    [FILLER * 3_000 + "For the zoo field trip bring a red hat. " + FILLER * 3_000, "a\nb\n" * 50_000, "x" * 200_000],
)
def test_of_a_long_passage_the_best_part_is_looked_at(passage):
    embedder = Counting()
    text = asyncio.run(excerpt(QUESTION, [source(passage)], embedder))
    assert embedder.texts <= 100
    assert len(text) < len(INTRODUCTION) + 2_100
    assert ("red hat" in text) == ("red hat" in passage)


def test_a_quote_is_as_many_whole_sentences_as_fit():
    text = asyncio.run(excerpt(QUESTION, [source(FILLER * 20)], HashedTokenEmbedder()))
    quote = text.split("\n")[1].strip("“”")
    assert quote == (FILLER * (LENGTH // len(FILLER))).strip()


def test_the_best_part_has_sentences_on_both_sides_of_its_match():
    wanted = "For the zoo field trip bring a red hat. "
    text = FILLER * 50 + wanted + FILLER * 50
    part = best_part(QUESTION, text, 500)
    before, found, after = text[part].partition(wanted)
    assert found
    assert min(len(before), len(after)) > 150
    assert text[part].startswith("Nothing")


def test_a_text_that_fits_is_left_whole():
    assert best_part(QUESTION, FILLER, len(FILLER)) == slice(0, len(FILLER))
    assert best_part("hello", FILLER * 9, 100).start == 0


@given(st.text() | st.text("ab. \n", max_size=300), st.integers(0, 60))
def test_a_best_part_is_never_longer_than_asked(text, longest):
    part = best_part("a ab b", text, longest)
    assert 0 <= part.start <= part.stop <= len(text)
    assert len(text[part]) <= longest
    assert len(text[part]) == len(text) or len(text) > longest


def test_a_subject_that_tells_what_the_text_does_not_is_quoted_too():
    subject = "Zoo field trip on October 3"
    assert quote(QUESTION, replace(source("We need a red hat for the zoo field trip."), subject=subject)) == (
        f"“{subject}”: “We need a red hat for the zoo field trip.”"
    )
    told = "We need a red hat for the zoo field trip on October 3."
    assert quote(QUESTION, replace(source(told), subject=subject)) == f"“{told}”"


def test_what_a_small_model_leaves_out_is_quoted(ask):
    short = ScriptedLLM("Every child needs a signed permission slip.")
    _, answer = ask(short, llm_model="qwen2.5-coder:0.5b")
    assert answer.text == f"Every child needs a signed permission slip.\n“{SLIP.text}”"
    assert ask(short)[1].text == "Every child needs a signed permission slip."
    whole = "Every child needs a signed permission slip and $5."
    assert ask(ScriptedLLM(whole), llm_model="qwen2.5-coder:0.5b")[1].text == whole
