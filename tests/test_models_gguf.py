"""A GGUF model: with a stand-in for the engine everywhere, with the engine where it and a model are at hand."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from llama_index.core.base.llms.types import ChatMessage

from brain_pipeline.doctor import diagnose
from brain_pipeline.errors import ConfigError, ModelBadResponse, ModelError, ModelMissing
from brain_pipeline.models import build_llm
from brain_pipeline.models.gguf import GgufLLM
from brain_pipeline.settings import Settings

ASK = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="When is the trip?")]
GGUF = os.environ.get("BRAIN_TEST_GGUF", "")


class Engine:
    """Speaks to its callback as xllamacpp's server does: dicts of chunks, until the callback says to stop."""

    def __init__(self, parameters: SimpleNamespace) -> None:
        if Path(parameters.model.path).read_bytes() == b"garbage":
            raise RuntimeError("Failed to init server, please check the input params.")
        self.parameters = parameters
        self.bodies: list[dict] = []
        self.pieces = ["<think>", "Hm", "</think>", "On ", "Friday", "."]
        self.endless = False
        self.failure = ""
        self.started = threading.Event()

    def handle_chat_completions(self, body, callback) -> None:
        self.bodies.append(body)
        self.started.set()
        if self.failure:
            callback({"error": {"code": 400, "message": self.failure}})
            return
        callback({"choices": [{"finish_reason": None, "delta": {"role": "assistant", "content": None}}]})
        for piece in self.pieces:
            if callback({"choices": [{"finish_reason": None, "delta": {"content": piece}}]}):
                return
        while self.endless and not callback([{"choices": [{"finish_reason": None, "delta": {"content": " and"}}]}]):
            pass
        callback({"choices": [{"finish_reason": "stop", "delta": {}}]})


@pytest.fixture
def engine(monkeypatch, tmp_path) -> tuple[GgufLLM, Engine]:
    stand_in = ModuleType("xllamacpp")
    stand_in.CommonParams = lambda: SimpleNamespace(model=SimpleNamespace())
    stand_in.Server = Engine
    monkeypatch.setitem(sys.modules, "xllamacpp", stand_in)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    llm = build_llm(Settings.load(llm_provider="gguf", llm_model_path=tmp_path / "model.gguf", llm_context_window=2048))
    llm.load()
    return llm, llm._engine


def answers_at_work() -> int:
    return sum(thread.name == "gguf-answer" for thread in threading.enumerate())


def wait_for_answers() -> None:
    for thread in threading.enumerate():
        if thread.name == "gguf-answer":
            thread.join(10)
    assert not answers_at_work()


async def streamed(llm: GgufLLM) -> list[str]:
    return [part.delta async for part in await llm.astream_chat(ASK)]


def test_all_ways_to_ask(engine):
    llm, _ = engine
    assert llm.chat(ASK).message.content == "On Friday."
    assert asyncio.run(llm.achat(ASK)).message.content == "On Friday."
    assert "".join(part.delta for part in llm.stream_chat(ASK)) == "On Friday."
    assert "".join(asyncio.run(streamed(llm))) == "On Friday."
    assert llm.complete("When?").text == "On Friday."


def test_what_the_engine_is_told(engine):
    llm, made = engine
    llm.chat(ASK)
    assert made.bodies == [
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "When is the trip?"},
            ],
            "temperature": 0,
            "max_tokens": 400,
            "stream": True,
        }
    ]
    assert made.parameters.n_ctx == 2048
    assert len(made.parameters.api_keys[0]) == 32
    assert (llm.metadata.context_window, llm.metadata.num_output) == (2048, 400)


def test_the_file_is_loaded_once(engine):
    llm, made = engine
    llm.chat(ASK)
    llm.load()
    assert llm._engine is made


def test_a_prompt_that_is_too_long(engine):
    llm, made = engine
    made.failure = "request (3031 tokens) exceeds the available context size (1024 tokens)"
    with pytest.raises(ModelBadResponse, match="exceeds the available context"):
        llm.chat(ASK)
    with pytest.raises(ModelBadResponse, match="exceeds the available context"):
        asyncio.run(llm.achat(ASK))


def test_an_empty_answer(engine):
    llm, made = engine
    made.pieces = ["<think>", "Hm"]
    with pytest.raises(ModelBadResponse, match="empty answer"):
        llm.chat(ASK)


def test_a_cancelled_answer_stops(engine):
    llm, made = engine
    made.endless = True

    async def cancel() -> None:
        task = asyncio.ensure_future(llm.achat(ASK))
        await asyncio.to_thread(made.started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    wait_for_answers()


def test_a_stream_left_early_stops(engine):
    llm, made = engine
    made.endless = True
    stream = llm.stream_chat(ASK)
    next(stream)
    stream.close()
    wait_for_answers()


def test_no_file_is_named():
    with pytest.raises(ConfigError, match="BRAIN_LLM_MODEL_PATH"):
        build_llm(Settings.load(llm_provider="gguf"))


def test_a_file_that_is_not_there(engine, tmp_path):
    with pytest.raises(ModelMissing, match="BRAIN_LLM_MODEL_PATH"):
        GgufLLM(tmp_path / "none.gguf", context_window=2048, max_tokens=400).chat(ASK)


def test_a_file_that_is_no_model(engine, tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"garbage")
    with pytest.raises(ModelError, match="can't be loaded"):
        GgufLLM(tmp_path / "model.gguf", context_window=2048, max_tokens=400).chat(ASK)


@pytest.mark.parametrize(
    ("name", "said"),
    [(None, "names no file"), ("none.gguf", "is not there"), ("garbage.gguf", "can't be loaded"), ("model.gguf", "")],
)
def test_the_doctor_looks_at_the_file(name, said, engine, tmp_path):
    (tmp_path / "garbage.gguf").write_bytes(b"garbage")
    path = tmp_path / name if name else None
    settings = Settings.load(
        environment="embedded", chroma_db_path=tmp_path, llm_provider="gguf", llm_model_path=path, warm_up=False
    )
    *_, found = diagnose(settings)
    assert found.ok == (not said)
    assert said in found.remedy


def test_the_package_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelMissing, match=r"pip install 'family-brain\[gguf\]'"):
        GgufLLM(tmp_path / "model.gguf", context_window=2048, max_tokens=400).chat(ASK)


@pytest.mark.skipif(not GGUF, reason="no BRAIN_TEST_GGUF")
def test_the_real_engine_refuses_what_is_too_long_and_what_is_no_model(tmp_path):
    pytest.importorskip("xllamacpp")
    llm = GgufLLM(Path(GGUF), context_window=1024, max_tokens=16)
    with pytest.raises(ModelBadResponse, match="context size"):
        llm.complete("word " * 3000)
    (tmp_path / "model.gguf").write_bytes(b"garbage")
    with pytest.raises(ModelError, match="can't be loaded"):
        GgufLLM(tmp_path / "model.gguf", context_window=1024, max_tokens=16).complete("x")
