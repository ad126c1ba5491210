"""Every fault of a model server, through the real client library, becomes one of our errors."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import httpx
import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.embeddings.ollama import OllamaEmbedding
from llama_index.llms.ollama import Ollama
from ollama_server import Fault, OllamaServer

from brain_pipeline.errors import (
    ConfigError,
    ModelBadResponse,
    ModelError,
    ModelMissing,
    ModelOverloaded,
    ModelTimeout,
    ModelUnreachable,
)
from brain_pipeline.models import build_embedder, build_llm, default_prefixes
from brain_pipeline.models.endpoint import AsyncClient, Endpoint
from brain_pipeline.models.ollama import OllamaEmbedder, OllamaLLM, check_server, warm_up
from brain_pipeline.settings import Settings
from brain_pipeline.testing import ScriptedLLM

QUESTION = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="What do they need?")]


async def joined(llm: OllamaLLM) -> str:
    return "".join([part.delta async for part in await llm.astream_chat(QUESTION)])


EMBED: dict[str, Callable[[OllamaEmbedder], Any]] = {
    "query": lambda model: model.get_query_embedding("a question"),
    "batch": lambda model: model.get_text_embedding_batch(["one", "two"]),
    "async-query": lambda model: asyncio.run(model.aget_query_embedding("a question")),
    "async-batch": lambda model: asyncio.run(model.aget_text_embedding_batch(["one", "two"])),
}
CHAT: dict[str, Callable[[OllamaLLM], Any]] = {
    "chat": lambda model: model.chat(QUESTION).message.content,
    "achat": lambda model: asyncio.run(model.achat(QUESTION)).message.content,
    "stream": lambda model: "".join(part.delta for part in model.stream_chat(QUESTION)),
    "astream": lambda model: asyncio.run(joined(model)),
    "complete": lambda model: model.complete("What do they need?").text,
}
embed_calls = pytest.mark.parametrize("call", EMBED.values(), ids=EMBED)
chat_calls = pytest.mark.parametrize("call", CHAT.values(), ids=CHAT)

FAULTS = [
    (Fault.SILENT, ModelTimeout, "fell silent"),
    (Fault.DRIP, ModelTimeout, "fell silent"),
    (Fault.SLOW, ModelTimeout, "read timeout"),
    (Fault.CUT, ModelBadResponse, "broke off"),
    (Fault.MALFORMED, ModelBadResponse, "Is it Ollama?"),
    (Fault.NOT_AN_OBJECT, ModelBadResponse, "Is it Ollama?"),
    (Fault.HTML, ModelBadResponse, "Is it Ollama?"),
    (Fault.HTML_404, ModelBadResponse, "status 404"),
    (Fault.MISSING, ModelMissing, "ollama pull"),
    (Fault.BROKEN, ModelBadResponse, "llama runner process has terminated"),
    (Fault.BUSY, ModelOverloaded, "busy"),
    (Fault.REDIRECT, ModelBadResponse, "elsewhere"),
]
every_fault = pytest.mark.parametrize("case", FAULTS, ids=lambda case: case[0].name)


IMPATIENT = {"embed_read_timeout": 0.2, "llm_read_timeout": 0.2}


def settings(url: str, **overrides: Any) -> Settings:
    return Settings.load(**{"OLLAMA_BASE_URL": url, "LLM_URL": url, **overrides})


def models(url: str, **overrides: Any) -> tuple[OllamaEmbedder, OllamaLLM]:
    embedder, llm = build_embedder(settings(url, **overrides)), build_llm(settings(url, **overrides))
    assert isinstance(embedder, OllamaEmbedder)
    assert isinstance(llm, OllamaLLM)
    return embedder, llm


@pytest.fixture
def embedder(ollama: OllamaServer):
    model = models(ollama.url)[0]
    yield model
    model.close()


@pytest.fixture
def llm(ollama: OllamaServer):
    model = models(ollama.url)[1]
    yield model
    model.close()


def test_the_models_are_llama_indexs(embedder, llm):
    assert isinstance(embedder, OllamaEmbedding)
    assert isinstance(llm, Ollama)


@chat_calls
def test_a_working_server_answers(ollama, llm, call):
    assert call(llm) == ollama.reply


@every_fault
@embed_calls
def test_a_fault_while_embedding(ollama, call, case):
    fault, error, words = case
    ollama.fail(fault)
    embedder, _ = models(ollama.url, **(IMPATIENT if error is ModelTimeout else {}))
    with pytest.raises(error, match=words) as raised:
        call(embedder)
    embedder.close()
    assert type(raised.value) is error
    assert ollama.url in str(raised.value)


@every_fault
@chat_calls
def test_a_fault_while_answering(ollama, call, case):
    fault, error, words = case
    ollama.fail(fault)
    _, llm = models(ollama.url, **(IMPATIENT if error is ModelTimeout else {}))
    with pytest.raises(error, match=words) as raised:
        call(llm)
    llm.close()
    assert type(raised.value) is error
    assert ollama.url in str(raised.value)


@pytest.mark.parametrize(
    "fault", [Fault.NAN, Fault.NULL, Fault.ZERO, Fault.NO_NUMBERS, Fault.WRONG_COUNT], ids=lambda fault: fault.name
)
@embed_calls
def test_unusable_vectors(ollama, embedder, call, fault):
    ollama.fail(fault)
    with pytest.raises(ModelBadResponse):
        call(embedder)


def test_vectors_of_two_lengths(ollama, embedder):
    ollama.fail(Fault.RAGGED)
    with pytest.raises(ModelBadResponse, match="another length"):
        embedder.get_text_embedding_batch(["one", "two"])


@chat_calls
def test_an_empty_answer(ollama, llm, call):
    ollama.fail(Fault.EMPTY)
    with pytest.raises(ModelBadResponse, match="empty answer"):
        call(llm)


@pytest.mark.parametrize("fault", [Fault.UNFINISHED, Fault.STREAM_ERROR], ids=lambda fault: fault.name)
@pytest.mark.parametrize("call", [CHAT["achat"], CHAT["stream"], CHAT["astream"]], ids=["achat", "stream", "astream"])
def test_a_stream_that_ends_too_early(ollama, llm, call, fault):
    ollama.fail(fault)
    with pytest.raises(ModelBadResponse, match=r"in the middle|llama runner"):
        call(llm)


def test_an_answer_that_does_not_end(monkeypatch, ollama, llm):
    monkeypatch.setattr("brain_pipeline.models.ollama._LONGEST_ANSWER", 5)
    with pytest.raises(ModelBadResponse, match="come to an end"):
        CHAT["achat"](llm)


def test_a_line_that_does_not_end(monkeypatch):
    async def drip() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" "
        pytest.fail("read to its end")

    async def ask() -> None:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, content=drip()))
        async for _ in AsyncClient("http://127.0.0.1", transport=transport).replies("/api/chat", {}):
            pass

    monkeypatch.setattr("brain_pipeline.models.endpoint._LONGEST_LINE", 50)
    with pytest.raises(ValueError, match="without an end"):
        asyncio.run(ask())


@pytest.mark.parametrize("call", [EMBED["query"], EMBED["async-query"]], ids=["sync", "async"])
def test_a_refused_connection(nobody, call):
    embedder, _ = models(nobody)
    with pytest.raises(ModelUnreachable, match="Check that Ollama runs") as raised:
        call(embedder)
    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("call", [CHAT["chat"], CHAT["achat"], CHAT["astream"]], ids=["chat", "achat", "astream"])
def test_a_black_hole_costs_the_connect_timeout(black_hole, call):
    _, llm = models(black_hole, llm_connect_timeout=0.25)
    start = time.monotonic()
    with pytest.raises(ModelUnreachable):
        call(llm)
    assert time.monotonic() - start < 0.25 + 1


@pytest.mark.parametrize("call", [EMBED["query"], EMBED["async-query"]], ids=["sync", "async"])
def test_a_name_without_an_address(monkeypatch, call):
    def unknown(*_: Any, **__: Any) -> None:
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", unknown)
    embedder, _ = models("http://gaming-pc:11434")
    with pytest.raises(ModelUnreachable, match="gaming-pc"):
        call(embedder)


def test_a_server_that_stops_and_comes_back(ollama, embedder):
    embedder.get_query_embedding("a question")
    ollama.refuse()
    with pytest.raises(ModelUnreachable):
        embedder.get_query_embedding("a question")
    ollama.listen()
    assert len(embedder.get_query_embedding("a question")) == ollama.dimension


@pytest.mark.parametrize(("header", "seconds"), [("7", 7), (None, 15), ("Wed, 21 Oct 2026 07:28:00 GMT", 15)])
def test_how_long_a_busy_server_asks_to_wait(ollama, llm, header, seconds):
    ollama.retry_after = header
    ollama.fail(Fault.BUSY)
    with pytest.raises(ModelOverloaded) as raised:
        llm.chat(QUESTION)
    assert raised.value.retry_after == seconds


def test_more_calls_than_connections(ollama):
    _, llm = models(ollama.url, llm_connect_timeout=0.1, llm_read_timeout=30)
    llm.client._client._transport._pool._max_connections = 1
    ollama.delay = 1.0
    ollama.fail(Fault.SLOW)
    first = threading.Thread(target=llm.chat, args=(QUESTION,))
    first.start()
    eventually(lambda: ollama.calls("/api/chat") == 1)
    with pytest.raises(ModelOverloaded, match="Too many requests"):
        llm.chat(QUESTION)
    first.join()
    llm.close()


@pytest.mark.parametrize("url", ["http://host:port", "http://[::1", "http://a:99999999"])
def test_an_address_that_is_none(url):
    with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:11434"):
        Endpoint(url, "qwen2.5-coder:7b", 1, 1)


def test_what_is_sent_to_embed(ollama):
    model = build_embedder(settings(ollama.url), query_prefix="search_query: ", document_prefix="search_document: ")
    model.get_query_embedding(" two  words ")
    asyncio.run(model.aget_text_embedding_batch(["one\n", "two"]))
    model.close()
    first, second = (request.body for request in ollama.requests)
    assert first["input"] == ["search_query:  two  words "]
    assert second["input"] == ["search_document: one\n", "search_document: two"]
    assert first["model"] == "nomic-embed-text"
    assert first["keep_alive"] == "60m"


def test_a_prefix_is_not_given_a_space(ollama):
    model = build_embedder(settings(ollama.url), query_prefix="Q:")
    model.get_query_embedding("word")
    model.close()
    assert ollama.requests[0].body["input"] == ["Q:word"]


@chat_calls
def test_what_is_sent_to_chat(ollama, llm, call):
    call(llm)
    (request,) = ollama.requests
    assert request.path == "/api/chat"
    assert request.body["options"] == {"temperature": 0.0, "num_ctx": 8192, "num_predict": 400}
    assert request.body["keep_alive"] == "60m"
    assert request.body["think"] is False


def test_another_format_may_be_asked_for(ollama, llm):
    assert asyncio.run(llm.achat(QUESTION, format="json")).message.content
    assert ollama.requests[0].body["format"] == "json"


def test_what_llama_index_is_told(llm):
    assert (llm.metadata.context_window, llm.metadata.num_output) == (8192, 400)


def test_nothing_goes_through_a_proxy(monkeypatch, ollama):
    with OllamaServer() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        embedder, llm = models(ollama.url)
        EMBED["query"](embedder)
        EMBED["async-query"](embedder)
        CHAT["chat"](llm)
        CHAT["astream"](llm)
        check_server(ollama.url, "nomic-embed-text", 1, 1)
        embedder.close()
        llm.close()
        assert proxy.connections == 0
    assert len(ollama.requests) == 5


@chat_calls
def test_a_redirect_is_not_followed(ollama, llm, call):
    with OllamaServer() as elsewhere:
        ollama.location = f"{elsewhere.url}/api/chat"
        ollama.fail(Fault.REDIRECT)
        with pytest.raises(ModelBadResponse):
            call(llm)
        assert elsewhere.connections == 0


def test_no_key_is_sent(monkeypatch, ollama):
    monkeypatch.setenv("OLLAMA_API_KEY", "secret")
    embedder, llm = models(ollama.url)
    EMBED["query"](embedder)
    CHAT["astream"](llm)
    embedder.close()
    llm.close()
    assert not any("authorization" in request.headers for request in ollama.requests)


@pytest.mark.parametrize(
    "reply",
    [
        "<think>Hm.\nThe slip?</think>\n\nA slip and $5.",
        "\n<think>\n</think>A slip <think>really?</think>and $5.",
        "Hm. The slip?\n</think>\n\nA slip and $5.",
    ],
)
@chat_calls
def test_reasoning_is_left_out(ollama, llm, call, reply):
    ollama.reply = reply
    if "<think>" in reply or call not in (CHAT["stream"], CHAT["astream"]):
        assert call(llm) == "A slip and $5."
    else:  # what was already said can't be unsaid, but the last message is right
        assert list(llm.stream_chat(QUESTION))[-1].message.content == "A slip and $5."


@chat_calls
def test_reasoning_that_never_ends_is_no_answer(ollama, llm, call):
    ollama.reply = "<think>Hm. The slip? Or the $5? Or"
    with pytest.raises(ModelBadResponse, match="empty answer"):
        call(llm)


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("path", "start"),
    [
        ("/api/embed", lambda embedder, _: embedder.aget_query_embedding("a question")),
        ("/api/chat", lambda _, llm: llm.achat(QUESTION)),
        ("/api/chat", lambda _, llm: joined(llm)),
    ],
    ids=["embed", "achat", "astream"],
)
@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.DRIP], ids=["silent", "drip"])
def test_a_cancelled_call_hangs_up(ollama, path, start, fault):
    ollama.drip_seconds = 0.02
    ollama.fail(fault)
    embedder, llm = models(ollama.url)

    async def cancel() -> None:
        task = asyncio.ensure_future(start(embedder, llm))
        await asyncio.to_thread(eventually, lambda: ollama.calls(path) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(eventually, lambda: ollama.hang_ups == 1)

    asyncio.run(cancel())


def test_a_deadline_over_a_server_that_drips(ollama):
    ollama.drip_seconds = 0.05
    ollama.fail(Fault.DRIP)
    _, llm = models(ollama.url)

    async def ask() -> None:
        async with asyncio.timeout(0.5):
            await llm.achat(QUESTION)

    with pytest.raises(TimeoutError):
        asyncio.run(ask())
    eventually(lambda: ollama.hang_ups == 1)


@pytest.mark.parametrize("close", [True, False], ids=["closed", "abandoned"])
def test_a_stream_left_early_hangs_up(ollama, close):
    ollama.drip_seconds = 0.002
    ollama.fail(Fault.DRIP)
    _, llm = models(ollama.url)

    async def leave() -> None:
        stream = await llm.astream_chat(QUESTION)
        assert (await anext(stream)).delta
        if close:
            await stream.aclose()
            await asyncio.to_thread(eventually, lambda: ollama.hang_ups == 1)

    asyncio.run(leave())
    eventually(lambda: ollama.hang_ups == 1)


def runners() -> list[Callable[[Coroutine[Any, Any, Any]], Any]]:
    uvloop = pytest.importorskip("uvloop")
    return [asyncio.run, uvloop.run]


@pytest.mark.parametrize("run", range(2), ids=["asyncio", "uvloop"])
def test_one_connection_serves_a_loop_and_none_outlives_it(ollama, embedder, llm, run):
    async def several() -> None:
        for _ in range(3):
            await embedder.aget_query_embedding("a question")
            await llm.achat(QUESTION)

    for loops in range(1, 4):
        runners()[run](several())
        assert len({request.connection for request in ollama.requests}) == 2 * loops
        assert not embedder._endpoint._by_loop


def test_loops_at_the_same_time(ollama, embedder):
    async def several() -> None:
        await asyncio.gather(*(embedder.aget_query_embedding("a question") for _ in range(4)))

    threads = [threading.Thread(target=run, args=(several(),)) for run in runners() * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ollama.calls("/api/embed") == 16
    assert not embedder._endpoint._by_loop


def test_aclose_within_a_loop_may_be_followed_by_more_calls(ollama, embedder):
    async def close_between() -> None:
        await embedder.aget_query_embedding("a question")
        await embedder.aclose()
        assert not embedder._endpoint._by_loop
        await embedder.aget_query_embedding("a question")

    asyncio.run(close_between())
    assert ollama.connections == 2
    asyncio.run(embedder.aclose())  # nothing is open


@pytest.mark.parametrize("name", ["nomic-embed-text", "nomic-embed-text:latest", "qwen2.5-coder:7b"])
def test_a_server_that_has_the_model(ollama, name):
    check_server(ollama.url, name, 1, 1)
    assert not ollama.calls("/api/embed")


@pytest.mark.parametrize("name", ["qwen2.5-coder", "llama3:8b"])
def test_a_server_without_the_model(ollama, name):
    with pytest.raises(ModelMissing, match=f"ollama pull {name}"):
        check_server(ollama.url, name, 1, 1)


@every_fault
def test_a_fault_while_checking(ollama, case):
    fault, error, words = case
    ollama.fail(fault)
    with pytest.raises(error, match=words):
        check_server(ollama.url, "nomic-embed-text", 3, 0.2 if error is ModelTimeout else 20)


def test_checking_nobody(nobody):
    with pytest.raises(ModelUnreachable):
        check_server(nobody, "nomic-embed-text", 0.25, 0.25)


def test_warming_up_loads_without_generating(ollama, embedder, llm):
    warm_up(embedder)
    warm_up(llm)
    embed, chat = ollama.requests
    assert embed.path == "/api/embed"
    assert chat.body["messages"] == []
    assert chat.body["options"]["num_ctx"] == 8192


def test_a_model_that_needs_no_warming():
    llm = ScriptedLLM()
    warm_up(llm)
    assert llm.calls == 0


def test_warming_up_raises(ollama, embedder, llm):
    ollama.fail(Fault.MISSING)
    for model in (embedder, llm):
        with pytest.raises(ModelMissing):
            warm_up(model)


def test_no_error_holds_the_text(ollama):
    embedder, llm = models(ollama.url, **IMPATIENT)
    said = []
    for fault in set(Fault) - {Fault.DRIP, Fault.SLOW}:
        ollama.fail(fault)
        for call in (lambda: embedder.get_text_embedding("swordfish"), lambda: llm.complete("swordfish")):
            try:
                call()
            except ModelError as error:
                said.append(str(error))
    embedder.close()
    llm.close()
    assert len(said) > len(FAULTS)
    assert "swordfish" not in " ".join(said)


def test_excerpts_need_no_model():
    assert build_llm(Settings.load(llm_provider="excerpts")) is None


@pytest.mark.parametrize(
    ("model", "prefixes"),
    [
        ("nomic-embed-text", ("search_query: ", "search_document: ")),
        ("nomic-embed-text:v1.5", ("search_query: ", "search_document: ")),
        ("all-minilm", ("", "")),
    ],
)
def test_default_prefixes(model, prefixes):
    assert default_prefixes(model) == prefixes
