"""LlamaIndex's Ollama classes, with deadlines, checked answers and errors of ours."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import aclosing
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.llms.llm import LLM
from llama_index.embeddings.ollama import OllamaEmbedding
from llama_index.llms.ollama import Ollama
from typing_extensions import override

from brain_pipeline.errors import ModelBadResponse
from brain_pipeline.models.endpoint import AsyncClient, Endpoint
from brain_pipeline.models.thinking import SpokenAnswer

_LONGEST_ANSWER = 100_000  # characters


class OllamaEmbedder(OllamaEmbedding):
    """An embedding model on an Ollama server.

    What is sent is exactly the prefix and the text; LlamaIndex's class strips both and joins them with a space. Every
    method that embeds raises the errors of ``Endpoint.errors``; ``ModelBadResponse`` also when the server sends another
    number of vectors than of texts, or one that is empty, all zeros or not finite.
    """

    _endpoint: Endpoint = PrivateAttr()

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        keep_alive: str,
        query_prefix: str = "",
        document_prefix: str = "",
        embed_batch_size: int = 32,
    ) -> None:
        super().__init__(
            model_name=endpoint.model,
            base_url=endpoint.url,
            embed_batch_size=embed_batch_size,
            query_instruction=query_prefix,
            text_instruction=document_prefix,
            keep_alive=keep_alive,
            client_kwargs=endpoint.http_options,
        )
        self._endpoint = endpoint

    @override
    def get_general_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        with self._endpoint.errors():
            reply = self._endpoint.client.embed(self.model_name, texts, keep_alive=self.keep_alive)
            return _checked(reply.embeddings, len(texts))

    @override
    async def aget_general_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        with self._endpoint.errors():
            asked = {"model": self.model_name, "input": texts, "keep_alive": self.keep_alive}
            reply = await self._endpoint.async_client.reply("/api/embed", asked)
            return _checked(reply["embeddings"], len(texts))

    @override
    def get_general_text_embedding(self, texts: str) -> list[float]:
        return self.get_general_text_embeddings([texts])[0]

    @override
    async def aget_general_text_embedding(self, prompt: str) -> list[float]:
        return (await self.aget_general_text_embeddings([prompt]))[0]

    @override
    def _format_query(self, query: str) -> str:
        return f"{self.query_instruction}{query}"

    @override
    def _format_text(self, text: str) -> str:
        return f"{self.text_instruction}{text}"

    def close(self) -> None:
        """Close the idle connections of synchronous calls."""
        self._endpoint.close()

    async def aclose(self) -> None:
        """Close the idle connections of synchronous calls and of the running event loop."""
        await self._endpoint.aclose()


def _checked(vectors: Sequence[Sequence[float]], count: int) -> list[list[float]]:
    if len(vectors) != count:
        raise ModelBadResponse(
            f"The model server sent {len(vectors)} vectors for {count} texts. See that server's log."
        )
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1 or not all(np.isfinite(row).all() and row.any() for row in np.array(vectors, dtype=np.float64)):
        raise ModelBadResponse(
            "The model server sent a vector that is empty, all zeros, of another length or not finite. Load the model "
            "again, or use another."
        )
    return [list(vector) for vector in vectors]


class OllamaLLM(Ollama):
    """A language model on an Ollama server.

    Answers come without the reasoning of reasoning models, which are asked not to reason. Every method raises the
    errors of ``Endpoint.errors``; ``ModelBadResponse`` also when an answer is empty or its stream ends early.

    Args:
        endpoint: the server and the model.
        keep_alive: how long the server keeps the model loaded.
        context_window: tokens; sent as it is, so that the server neither is asked first nor loads the model anew.
        max_tokens: tokens an answer may have at most.
    """

    _endpoint: Endpoint = PrivateAttr()

    def __init__(self, endpoint: Endpoint, *, keep_alive: str, context_window: int, max_tokens: int) -> None:
        super().__init__(
            model=endpoint.model,
            base_url=endpoint.url,
            temperature=0.0,
            context_window=context_window,
            additional_kwargs={"num_predict": max_tokens},
            client=endpoint.client,
            is_function_calling_model=False,
            keep_alive=keep_alive,
            thinking=False,  # harmless where unsupported; left out, reasoning would use up `num_predict`
        )
        self._endpoint = endpoint

    @property
    @override
    def metadata(self) -> LLMMetadata:
        return super().metadata.model_copy(update={"num_output": self.additional_kwargs["num_predict"]})

    @property
    @override
    def async_client(self) -> AsyncClient:
        return self._endpoint.async_client

    @override
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        with self._endpoint.errors():
            response = super().chat(messages, **kwargs)
        return SpokenAnswer().whole(response)

    @override
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        if kwargs:  # tools, or another format
            with self._endpoint.errors():
                return SpokenAnswer().whole(await super().achat(messages, **kwargs))
        gathered: ChatResponse = await self._gathered(messages)
        return gathered

    @llm_chat_callback()
    async def _gathered(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        """The whole answer, which is sent piece by piece nevertheless: so a server that falls silent is noticed."""
        asked = {
            "model": self.model,
            "messages": self._convert_to_ollama_messages(messages),
            "stream": True,
            "think": self.thinking,
            "options": self._model_kwargs,
            "keep_alive": self.keep_alive,
        }
        said, reply = "", {}
        with self._endpoint.errors():
            async with aclosing(self.async_client.replies("/api/chat", asked)) as replies:
                async for reply in replies:
                    said += reply["message"]["content"] or ""
                    if len(said) > _LONGEST_ANSWER:
                        raise ModelBadResponse("The model does not come to an end. Ask again, or use another model.")
        whole = ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=said), raw=reply)
        answer = SpokenAnswer()
        spoken = answer.so_far(whole, finished=_is_last(whole))
        answer.check()
        return spoken

    @override
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        responses = super().stream_chat(messages, **kwargs)

        def spoken() -> ChatResponseGen:
            answer = SpokenAnswer()
            with self._endpoint.errors():
                for response in responses:
                    yield answer.so_far(response, finished=_is_last(response))
            answer.check()

        return spoken()

    @override
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        responses = await super().astream_chat(messages, **kwargs)

        async def spoken() -> ChatResponseAsyncGen:
            answer = SpokenAnswer()
            with self._endpoint.errors():
                async for response in responses:
                    yield answer.so_far(response, finished=_is_last(response))
            answer.check()

        return spoken()

    def load(self) -> None:
        """Have the server load the model, with the context window that questions will ask for."""
        with self._endpoint.errors():
            self.client.chat(self.model, [], stream=False, options=self._model_kwargs, keep_alive=self.keep_alive)

    def close(self) -> None:
        """Close the idle connections of synchronous calls."""
        self._endpoint.close()

    async def aclose(self) -> None:
        """Close the idle connections of synchronous calls and of the running event loop."""
        await self._endpoint.aclose()


def _is_last(response: ChatResponse) -> bool:
    return bool(response.raw and response.raw.get("done"))


def check_server(
    url: str, model: str, connect_timeout: float, read_timeout: float, public: Collection[str] = ()
) -> None:
    """Ask the server at ``url`` whether it has ``model``, without loading it.

    Timeouts are in seconds; ``public`` are hosts outside the household that may be connected to.

    Raises:
        ConfigError: ``url`` is not an address.
        ModelMissing: it has not.
        ModelError: the server does not answer, or not as Ollama does.
    """
    endpoint = Endpoint(url, model, connect_timeout, read_timeout, public)
    with endpoint.errors(), endpoint.client as client:
        names = {listed.model for listed in client.list().models}
    if not names & {model, f"{model}:latest"}:
        raise endpoint.missing()


def warm_up(model: BaseEmbedding | LLM) -> None:
    """Load ``model``, so that the first question does not wait for it: one word is embedded, no text is generated.

    Raises:
        ModelError: it can't be loaded.
    """
    if isinstance(model, BaseEmbedding):
        model.get_query_embedding("warm")
    elif load := getattr(model, "load", None):
        load()
