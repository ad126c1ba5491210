"""A second model server for when the first can't be asked, and who waits for a place."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from household import SLIP, fill, settings_for
from llama_index.core.base.llms.types import ChatMessage
from ollama_server import Fault, OllamaServer

from brain_pipeline.brain import Brain
from brain_pipeline.errors import ModelBadResponse, ModelMissing, ModelOverloaded, ModelTimeout
from brain_pipeline.models import build_llm
from brain_pipeline.models.gate import Gate

QUESTION = "What do we need for the zoo field trip?"
ASKED = [ChatMessage(role="user", content=QUESTION)]


@pytest.fixture
def second():
    with OllamaServer(models=("small:1b",), reply="The second server says $5.") as server:
        yield server


def both(ollama, second, **more):
    return settings_for(ollama.url, llm_fallback_url=second.url, llm_fallback_model="small:1b", **more)


async def streamed(llm):
    return [part async for part in await llm.astream_chat(ASKED)]


WAYS = {
    "chat": lambda llm: llm.chat(ASKED).message.content,
    "achat": lambda llm: asyncio.run(llm.achat(ASKED)).message.content,
    "stream_chat": lambda llm: [*llm.stream_chat(ASKED)][-1].message.content,
    "astream_chat": lambda llm: asyncio.run(streamed(llm))[-1].message.content,
    "complete": lambda llm: llm.complete(QUESTION).text,
    "acomplete": lambda llm: asyncio.run(llm.acomplete(QUESTION)).text,
}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


def test_the_second_is_not_asked_while_the_first_answers(ollama, second, way):
    llm = build_llm(both(ollama, second))
    assert way(llm) == ollama.reply
    assert second.requests == []
    llm.close()


def test_the_second_is_asked_once_when_the_first_is_overloaded(ollama, second, way, caplog):
    ollama.fail(Fault.BUSY)
    llm = build_llm(both(ollama, second))
    assert way(llm) == second.reply
    assert (ollama.calls("/api/chat"), second.calls("/api/chat")) == (1, 1)
    assert "asking the fallback model" in caplog.text
    assert second.requests[-1].body["model"] == "small:1b"
    llm.close()


def test_the_second_is_asked_when_the_first_is_unreachable(ollama, nobody, way):
    llm = build_llm(settings_for(ollama.url, llm_url=nobody, llm_fallback_url=ollama.url))
    assert way(llm) == ollama.reply
    llm.close()


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.SILENT, ModelTimeout),
        (Fault.MISSING, ModelMissing),
        (Fault.HTML, ModelBadResponse),
        (Fault.BROKEN, ModelBadResponse),
    ],
)
def test_a_first_server_that_may_be_at_work_is_not_given_up(ollama, second, fault, error):
    ollama.fail(fault)
    llm = build_llm(both(ollama, second))
    with pytest.raises(error):
        llm.chat(ASKED)
    assert second.requests == []
    llm.close()


def test_what_was_said_already_is_not_said_again(ollama, second, way):
    ollama.fail(Fault.STREAM_ERROR)
    llm = build_llm(both(ollama, second))
    if way in (WAYS["stream_chat"], WAYS["astream_chat"]):
        with pytest.raises(ModelBadResponse):
            way(llm)
    assert second.requests == []
    llm.close()


def test_both_within_one_limit(second, ollama):
    ollama.fail(Fault.BUSY, "/api/chat")
    second.fail(Fault.SILENT)
    with fill(Brain(both(ollama, second, llm_read_timeout=30, request_timeout=0.7))) as brain:
        began = time.monotonic()
        with pytest.raises(ModelTimeout, match=r"0\.7 seconds") as caught:
            brain.query(QUESTION)
        assert time.monotonic() - began < 1.5
        assert caught.value.sources


def test_when_both_fail_the_second_s_error_counts(ollama, second):
    ollama.fail(Fault.BUSY, "/api/chat")
    second.fail(Fault.MISSING)
    with fill(Brain(both(ollama, second))) as brain, pytest.raises(ModelMissing, match="small:1b"):
        brain.query(QUESTION)


def test_without_a_second_server_nothing_else_is_asked(ollama):
    ollama.fail(Fault.BUSY, "/api/chat")
    with fill(Brain(settings_for(ollama.url))) as brain, pytest.raises(ModelOverloaded):
        brain.query(QUESTION)


def test_no_more_than_its_places_work_at_once_and_nobody_is_lost():
    gate = Gate(3, 100)
    inside = most = 0

    async def visit():
        nonlocal inside, most
        async with gate.place():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1

    async def everybody():
        await asyncio.gather(*(visit() for _ in range(100)))

    asyncio.run(everybody())
    assert most == 3


def test_one_gate_for_every_loop():
    gate = Gate(2, 100)
    lock, inside, seen = threading.Lock(), [], []

    async def visit():
        async with gate.place():
            with lock:
                inside.append(1)
                seen.append(len(inside))
            await asyncio.sleep(0.001)
            with lock:
                inside.pop()

    async def everybody():
        await asyncio.gather(*(visit() for _ in range(20)))

    threads = [threading.Thread(target=asyncio.run, args=(everybody(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 80
    assert max(seen) == 2


def test_first_come_first_served_and_the_rest_turned_away_at_once():
    async def scene():
        gate, order = Gate(1, 2), []

        async def visit(name):
            async with gate.place():
                order.append(name)
                await asyncio.sleep(0.01)

        tasks = [asyncio.create_task(visit(name)) for name in "abcd"]
        results = await asyncio.gather(*tasks, return_exceptions=True)
        return order, results

    order, results = asyncio.run(scene())
    assert order == ["a", "b", "c"]
    assert isinstance(results[3], ModelOverloaded)
    assert results[3].retry_after > 0


@pytest.mark.parametrize("moment", range(6))
def test_who_is_cancelled_gives_up_place_and_turn(moment):
    async def scene():
        gate, served = Gate(1, 2), []
        hold = asyncio.Event()

        async def visit(name):
            async with gate.place():
                served.append(name)
                await hold.wait()

        first = asyncio.create_task(visit("first"))
        await asyncio.sleep(0)
        second = asyncio.create_task(visit("second"))
        third = asyncio.create_task(visit("third"))
        await asyncio.sleep(0)
        first.cancel()
        for _ in range(moment):
            await asyncio.sleep(0)
        second.cancel()
        hold.set()
        await asyncio.gather(first, second, third, return_exceptions=True)
        async with asyncio.timeout(1), gate.place():  # all is free again
            served.append("last")
        return served

    served = asyncio.run(scene())
    assert served[0] == "first"
    assert served[-2:] == ["third", "last"]


def test_the_brain_keeps_to_its_places(ollama):
    ollama.fail(Fault.SLOW, "/api/chat")
    ollama.delay = 0.3
    with fill(Brain(settings_for(ollama.url, llm_concurrency=1, llm_queue=1))) as brain:

        async def ask():
            try:
                return (await brain.aquery(QUESTION)).text
            except ModelOverloaded as error:
                return f"busy, found {error.sources[0].subject}"

        async def three():
            return await asyncio.gather(ask(), ask(), ask())

        assert sorted(asyncio.run(three())) == [ollama.reply, ollama.reply, f"busy, found {SLIP.subject}"]
    assert ollama.calls("/api/chat") == 2
