"""A second language model server for when the first one can't be asked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import aclosing, closing
from typing import Any

from llama_index.core.base.llms.generic_utils import (
    achat_to_completion_decorator,
    astream_chat_to_completion_decorator,
)
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    LLMMetadata,
)
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from typing_extensions import override

from brain_pipeline.errors import ModelOverloaded, ModelUnreachable
from brain_pipeline.models.chat import ChatOnlyLLM
from brain_pipeline.models.ollama import OllamaLLM

log = logging.getLogger(__name__)

_ELSEWHERE = (ModelUnreachable, ModelOverloaded)  # a server that is slow or wrong may be working on the question


class FallbackLLM(ChatOnlyLLM):
    """Asks ``first``, and ``second`` once when ``first`` is unreachable or overloaded before it said a word.

    What ``second`` raises is raised. A deadline over both is the caller's, as with one.
    """

    _first: OllamaLLM = PrivateAttr()
    _second: OllamaLLM = PrivateAttr()

    def __init__(self, first: OllamaLLM, second: OllamaLLM) -> None:
        super().__init__()
        self._first, self._second = first, second

    @property
    @override
    def metadata(self) -> LLMMetadata:
        return self._first.metadata

    @override
    def _chat(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        try:
            return self._first.chat(messages)
        except _ELSEWHERE as error:
            self._note(error)
            return self._second.chat(messages)

    @override
    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        try:
            return await self._first.achat(messages)
        except _ELSEWHERE as error:
            self._note(error)
            return await self._second.achat(messages)

    @override
    def _stream_chat(self, messages: Sequence[ChatMessage]) -> ChatResponseGen:
        begun = False
        try:
            with closing(self._first.stream_chat(messages)) as responses:
                for response in responses:
                    begun = True
                    yield response
        except _ELSEWHERE as error:
            if begun:
                raise
            self._note(error)
            yield from self._second.stream_chat(messages)

    @override
    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        return self._astream_chat(messages)

    async def _astream_chat(self, messages: Sequence[ChatMessage]) -> ChatResponseAsyncGen:
        begun = False
        try:
            async with aclosing(await self._first.astream_chat(messages)) as responses:
                async for response in responses:
                    begun = True
                    yield response
        except _ELSEWHERE as error:
            if begun:
                raise
            self._note(error)
            async with aclosing(await self._second.astream_chat(messages)) as responses:
                async for response in responses:
                    yield response

    @override
    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return await achat_to_completion_decorator(self.achat)(prompt, **kwargs)

    @override
    @llm_completion_callback()
    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseAsyncGen:
        return await astream_chat_to_completion_decorator(self.astream_chat)(prompt, **kwargs)

    def _note(self, error: Exception) -> None:
        log.warning("asking the fallback model: %s", error)

    def load(self) -> None:
        """Have the first server load its model; the second's is loaded when it is needed."""
        self._first.load()

    def close(self) -> None:
        """Close the idle connections of synchronous calls."""
        self._first.close()
        self._second.close()
