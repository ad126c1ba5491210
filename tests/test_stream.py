"""Answers as they are written: what may be shown already, and the events of a streamed answer."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from household import SLIP, fill, settings_for
from hypothesis import given
from hypothesis import strategies as st
from ollama_server import Fault

from brain_pipeline.ask.answer import read_reply, settled
from brain_pipeline.ask.prompt import NO_ANSWER
from brain_pipeline.brain import Brain
from brain_pipeline.errors import BrainUnavailable, InvalidRequest, ModelBadResponse, ModelTimeout
from brain_pipeline.records import NOT_FOUND, Found, Piece

QUESTION = "What do we need for the zoo field trip?"

# Replies made of what can be taken back and of what looks like it.
CLAIMS = ("Found in: Forged, 2020-01-01", "**Sources:** none", "found", "source", "\n", "\r\n", "- ", " ")
WORDS = ("The trip is on Friday.", "Sorry, ", "The emails do not contain", "The ", "not in", "😀", "Bring $5")
replies = st.lists(st.sampled_from((*CLAIMS, *WORDS)), max_size=8).map("".join) | st.text()


@pytest.fixture
def brain(ollama):
    with fill(Brain(settings_for(ollama.url))) as filled:
        yield filled


async def listen(brain, question=QUESTION, **options):
    return [event async for event in brain.astream(question, **options)]


async def until(happened):
    while not happened():  # noqa: ASYNC110  (what is waited for happens in another thread)
        await asyncio.sleep(0.01)


def versions(reply):
    return [settled(reply[:end]) for end in range(len(reply) + 1)]


@given(replies)
def test_what_is_shown_is_never_taken_back(reply):
    try:
        answer = read_reply(reply)
    except ModelBadResponse:
        answer = ""
    if answer is not None:
        assert all(answer.startswith(shown) for shown in versions(reply))


@pytest.mark.parametrize(
    "reply",
    [NO_ANSWER, NOT_FOUND, "The sources do not contain the date.", "Unfortunately, the emails don't mention it"],
)
def test_of_a_refusal_nothing_is_shown(reply):
    assert set(versions(reply)) == {""}


def test_of_a_claim_of_provenance_nothing_is_shown():
    assert versions("Bring $5.\n\n**Found in:** Forged, 2020")[-1] == "Bring $5."


def test_words_are_shown_as_soon_as_they_can_t_be_a_refusal():
    shown = versions("The trip is on Friday, not in the rain.")
    assert shown[5] == "The t"
    assert shown.index("The trip is on Friday") < shown.index("The trip is on Friday, not in the r")


def test_what_was_found_comes_first_and_the_answer_last(brain, ollama):
    found, *pieces, answer = asyncio.run(listen(brain))
    assert isinstance(found, Found)
    assert (found.sources[0].subject, found.sources) == (SLIP.subject, answer.sources)
    assert found.confidence == answer.confidence
    assert len(pieces) > 1
    assert "".join(piece.text for piece in pieces) == answer.text == ollama.reply


def test_the_plain_answer_is_the_streamed_one(brain):
    *_, streamed = asyncio.run(listen(brain, top_k=1))
    plain = brain.query(QUESTION, top_k=1)
    assert (streamed.text, streamed.sources, streamed.confidence) == (plain.text, plain.sources, plain.confidence)


def test_a_refusal_streams_no_words(brain, ollama):
    ollama.reply = f"{NO_ANSWER}."
    found, answer = asyncio.run(listen(brain))
    assert found.sources
    assert (answer.text, answer.sources, answer.confidence) == (NOT_FOUND, (), "low")


def test_an_answer_taken_back_late_is_an_abstention(brain, ollama):
    ollama.reply = f"The trip is on Friday. No: {NO_ANSWER}"
    *_, piece, answer = asyncio.run(listen(brain))
    assert isinstance(piece, Piece)
    assert answer.text == NOT_FOUND


def test_nothing_found_is_said_at_once(brain):
    found, answer = asyncio.run(listen(brain, "xylophone quantum zebra"))
    assert (found.sources, found.confidence) == ((), "low")
    assert answer.text == NOT_FOUND


def test_excerpts_come_in_one_piece(ollama):
    with fill(Brain(settings_for(ollama.url, llm_provider="excerpts"))) as brain:
        _, piece, answer = asyncio.run(listen(brain))
    assert piece.text == answer.text


def test_a_failure_comes_after_what_was_found(brain, ollama):
    ollama.fail(Fault.BROKEN, "/api/chat")

    async def collect():
        events = brain.astream(QUESTION)
        found = await anext(events)
        with pytest.raises(BrainUnavailable) as caught:
            await anext(events)
        return found, caught.value

    found, error = asyncio.run(collect())
    assert error.sources == found.sources != ()


def test_an_unusable_question_is_refused(brain):
    with pytest.raises(InvalidRequest):
        asyncio.run(listen(brain, " "))


def test_the_whole_answer_has_a_time_limit(ollama):
    ollama.drip_seconds = 0.2
    with fill(Brain(settings_for(ollama.url, request_timeout=0.6))) as brain:
        ollama.fail(Fault.DRIP, "/api/chat")
        with pytest.raises(ModelTimeout) as caught:
            asyncio.run(listen(brain))
    assert caught.value.sources


def test_the_time_limit_never_cuts_into_the_caller(ollama):
    async def slow_reader(brain):
        async with aclosing(brain.astream(QUESTION)) as events:
            await anext(events)
            await asyncio.sleep(0.4)
            return "not cut"

    with fill(Brain(settings_for(ollama.url, request_timeout=0.3))) as brain:
        assert asyncio.run(slow_reader(brain)) == "not cut"


def test_leaving_hangs_up_on_the_model(brain, ollama):
    ollama.fail(Fault.SILENT, "/api/chat")

    async def leave():
        events = brain.astream(QUESTION)
        await anext(events)
        waiting = asyncio.ensure_future(anext(events))
        await until(lambda: ollama.calls("/api/chat"))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await until(lambda: ollama.hang_ups)

    asyncio.run(asyncio.wait_for(leave(), 5))
    assert ollama.hang_ups == 1
