"""Answers as they are written: what may be shown already, and the events of a streamed answer."""

from __future__ import annotations

import asyncio
import io
import json
import time
from contextlib import aclosing
from urllib.parse import quote

import fastapi.routing
import httpx
import pytest
import rich.live
from household import SLIP, fill, settings_for
from hypothesis import given
from hypothesis import strategies as st
from live import served
from ollama_server import Fault
from rich.console import Console

from api import create_app
from brain_pipeline.ask.answer import read_reply, settled
from brain_pipeline.ask.prompt import NO_ANSWER
from brain_pipeline.brain import Brain
from brain_pipeline.cli.commands import ask
from brain_pipeline.errors import BrainUnavailable, InvalidRequest, ModelBadResponse, ModelTimeout
from brain_pipeline.records import NOT_FOUND, Found, Piece
from brain_pipeline.remote import RemoteBrain

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
    shown = versions("The trip is on Friday, not in the rain, so bring boots.")
    assert shown[len("The trip is ")].startswith("The trip")
    assert shown[len("The trip is on Friday, not in the ")] == "The trip is on Friday,"
    assert shown[-1].startswith("The trip is on Friday, not in the rain")


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


# Over HTTP.


@pytest.fixture
def url(brain):
    with served(create_app(brain.settings, brain)) as url:
        yield url


def stream(url, **params):
    """The events of an answer, as pairs of their name and data, and the comments between them."""
    response = httpx.get(f"{url}/brain/query/stream", params={"q": QUESTION, **params}, timeout=10)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-cache"
    return [parsed(block) for block in response.text.split("\n\n") if block]


def parsed(block):
    fields = dict(line.split(": ", 1) for line in block.splitlines())
    return fields.get("event", ""), json.loads(fields.get("data", "null"))


def test_the_events_of_an_answer(url, ollama):
    (first, found), *pieces, (last, answer) = stream(url)
    assert (first, last) == ("sources", "answer")
    assert {name for name, _ in pieces} == {"text"}
    assert "".join(data["text"] for _, data in pieces) == answer["answer"] == ollama.reply
    contract = answer["sources"][0].keys()
    assert [{key: source[key] for key in contract} for source in found["sources"]] == answer["sources"]
    assert found["confidence"] == answer["confidence"]


@pytest.mark.parametrize("reply", ["You need a slip.\nSources: none", NO_ANSWER, "No.\r\n\r\nBring 5 € – für Zoë 🦒."])
@pytest.mark.parametrize("params", [{}, {"top_k": 1}, {"source": "newsletter"}, {"q": "xylophone quantum"}])
def test_the_last_event_is_the_body_of_the_plain_endpoint(url, ollama, reply, params):
    ollama.reply = reply
    plain = httpx.get(f"{url}/brain/query", params={"q": QUESTION, **params}).json()
    _, streamed = stream(url, **params)[-1]
    assert list(streamed) == list(plain)
    took = plain.pop("query_time_ms"), streamed.pop("query_time_ms")
    assert min(took) >= 0
    assert streamed == plain


@pytest.mark.parametrize("path", ["/api/embed", "/api/chat"])
@pytest.mark.parametrize("fault", [Fault.BROKEN, Fault.CUT, Fault.SILENT, Fault.BUSY])
def test_a_failure_is_the_last_event(url, ollama, path, fault):
    ollama.fail(fault, path)
    *before, (name, error) = stream(url)
    plain = httpx.get(f"{url}/brain/query", params={"q": QUESTION}, timeout=10)
    assert (name, error["status"]) == ("error", plain.status_code)
    assert error["retry_after"] == int(plain.headers["retry-after"])
    for key in ("answer", "detail", "sources", "confidence"):
        assert error[key] == plain.json()[key]
    assert [name for name, _ in before][:1] == (["sources"] if path == "/api/chat" else [])


@pytest.mark.parametrize("params", [{"q": "  "}, {"q": "x" * 2001}, {"top_k": 0}])
def test_an_unusable_request_is_told_what_to_send(url, params):
    plain = httpx.get(f"{url}/brain/query", params={"q": QUESTION, **params})
    assert stream(url, **params) == [("error", {"status": 422, **plain.json()})]


def test_a_malformed_request_is_refused_before_the_stream(url):
    assert httpx.get(f"{url}/brain/query/stream", params={"q": QUESTION, "top_k": "many"}).status_code == 422


def test_sources_arrive_while_the_model_is_still_silent(url, ollama):
    ollama.fail(Fault.SLOW, "/api/chat")
    ollama.delay = 0.8
    with httpx.stream("GET", f"{url}/brain/query/stream", params={"q": QUESTION}) as response:
        received = response.iter_text()  # forgetting it would hang up
        name, found = parsed(next(received).strip())
        assert (name, found["sources"][0]["subject"]) == ("sources", SLIP.subject)


def test_silence_is_filled_while_the_model_loads(url, ollama, monkeypatch):
    monkeypatch.setattr(fastapi.routing, "_PING_INTERVAL", 0.05)
    ollama.fail(Fault.SLOW, "/api/chat")
    ollama.delay = 0.5
    events = stream(url)
    assert ("", None) in events
    assert events[-1][0] == "answer"


def test_hanging_up_frees_the_model(url, ollama):
    ollama.fail(Fault.SILENT, "/api/chat")
    with httpx.stream("GET", f"{url}/brain/query/stream", params={"q": QUESTION}) as response:
        received = response.iter_text()
        next(received)
        while not ollama.calls("/api/chat"):
            time.sleep(0.01)
    left = time.monotonic()
    while not ollama.hang_ups:
        assert time.monotonic() - left < 0.9
        time.sleep(0.01)


def test_an_event_source_that_connects_again_is_told_to_stop(url, ollama):
    ollama.requests.clear()
    again = httpx.get(f"{url}/brain/query/stream", params={"q": QUESTION}, headers={"Last-Event-ID": "last"})
    assert (again.status_code, ollama.requests) == (204, [])


# The passages.


def test_a_passage_has_the_mail_s_text_and_headers(url):
    [(_, found), *_] = stream(url)
    id_ = found["sources"][0]["id"]
    body = httpx.get(f"{url}/brain/source/{id_}", params={"q": QUESTION}).json()
    assert body == {
        "id": id_,
        "attribution": "Found in: Field Trip Permission Slip, 2025-09-15",
        "subject": SLIP.subject,
        "date": "2025-09-15",
        "sender": SLIP.sender,
        "source_type": "email",
        "passage": SLIP.text,
        "members": [],
        "matches": ["zoo", "field", "trip"],
    }


def test_a_passage_without_a_question_has_no_matches(url):
    [(_, found), *_] = stream(url)
    assert httpx.get(f"{url}/brain/source/{found['sources'][0]['id']}").json()["matches"] == []


@pytest.mark.parametrize("id_", ["none", "a/b/c", "%3Cx@y%3E%230", "..%2F..%2Fetc%2Fpasswd", "%F0%9F%A6%92"])
def test_an_unknown_passage_is_not_found(url, id_):
    response = httpx.get(f"{url}/brain/source/{id_}")
    assert (response.status_code, list(response.json())) == (404, ["detail"])


def test_ids_of_other_programs_are_found(brain, url):
    vector = [1.0] + [0.0] * (brain.catalog.store.dimension() - 1)
    id_ = "<a/b@c.example>#0?x=1 é"
    brain.catalog.store.collection().add(
        ids=[id_, "nameless"],
        documents=["Hi.", "Hi."],
        metadatas=[{"subject": "Hi"}, {"x": 1}],
        embeddings=[vector] * 2,
    )
    assert httpx.get(f"{url}/brain/source/{quote(id_, safe='')}").json()["passage"] == "Hi."
    assert httpx.get(f"{url}/brain/source/nameless").status_code == 404


# In the terminal, by the brain itself and through the process that serves it.


def test_the_process_that_serves_streams_too(brain, url):
    async def listen_there():
        with RemoteBrain(brain.settings, url) as remote:
            return [event async for event in remote.astream(QUESTION, top_k=2)]

    here, there = asyncio.run(listen(brain, top_k=2)), asyncio.run(listen_there())
    assert isinstance(there[0], Found)
    # Where the pieces are cut is a matter of timing.
    shown = ["".join(event.text for event in events if isinstance(event, Piece)) for events in (here, there)]
    assert shown[0] == shown[1] != ""
    assert str(there[-1]) == str(here[-1])
    assert [source.attribution for source in there[0].sources] == [source.attribution for source in here[0].sources]


@pytest.mark.parametrize(
    ("question", "fault", "error"),
    [(" ", None, InvalidRequest), (QUESTION, Fault.BROKEN, BrainUnavailable)],
)
def test_the_process_that_serves_tells_what_is_wrong(brain, url, ollama, question, fault, error):
    async def listen_there():
        with RemoteBrain(brain.settings, url) as remote:
            return [event async for event in remote.astream(question)]

    if fault:
        ollama.fail(fault, "/api/embed")
    with pytest.raises(error, match="says"):
        asyncio.run(listen_there())


def test_a_process_that_does_not_answer(brain, nobody):
    async def listen_there():
        with RemoteBrain(brain.settings, nobody) as remote:
            return [event async for event in remote.astream(QUESTION)]

    with pytest.raises(BrainUnavailable, match="does not answer"):
        asyncio.run(listen_there())


@pytest.fixture
def screens(monkeypatch):
    """What was on the terminal's screen, state by state."""
    seen = []

    class Recorded(rich.live.Live):
        def update(self, renderable, *, refresh=False):
            seen.append(renderable.plain)
            super().update(renderable, refresh=refresh)

    monkeypatch.setattr(rich.live, "Live", Recorded)
    monkeypatch.setattr(ask, "screen", Console(file=io.StringIO(), force_terminal=True, width=80))
    return seen


def test_a_terminal_shows_sources_first_and_words_as_they_come(brain, ollama, screens):
    asyncio.run(ask.watch(brain.astream(QUESTION)))
    assert screens[0].startswith("…\n  Found in: Field Trip Permission Slip, 2025-09-15")
    words = [screen.split("\n")[0] for screen in screens]
    assert len(set(words)) > 2
    assert words[-1] == ollama.reply
    assert "confidence" in screens[-1]
    assert ollama.reply in ask.screen.file.getvalue()


def test_a_terminal_wraps_a_long_answer(brain, ollama, screens):
    ollama.reply = "You need a signed slip and five dollars and a very good mood, " * 3 + "and a hat."
    asyncio.run(ask.watch(brain.astream(QUESTION)))
    assert "and a hat." in ask.screen.file.getvalue()


def test_a_terminal_takes_back_the_sources_of_an_abstention(brain, ollama, screens):
    ollama.reply = NO_ANSWER
    asyncio.run(ask.watch(brain.astream(QUESTION)))
    assert "Found in" in screens[0]
    assert screens[-1] == NOT_FOUND
