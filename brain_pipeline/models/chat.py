"""The part that models in this process share: everything LlamaIndex asks of an LLM, from two methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.generic_utils import chat_to_completion_decorator, stream_chat_to_completion_decorator
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseGen,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from typing_extensions import override


class ChatOnlyLLM(CustomLLM):
    """A model that only chats: completions are chats of one message.

    LlamaIndex's ``CustomLLM`` goes the other way and flattens messages to one prompt, which loses their roles.
    """

    @abstractmethod
    def _chat(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        """The whole answer."""

    @abstractmethod
    def _stream_chat(self, messages: Sequence[ChatMessage]) -> ChatResponseGen:
        """The answer so far, again and again, each with its newest piece as ``delta``."""

    @override
    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._chat(messages)

    @override
    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        return self._stream_chat(messages)

    @override
    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return chat_to_completion_decorator(self.chat)(prompt, **kwargs)

    @override
    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        return stream_chat_to_completion_decorator(self.stream_chat)(prompt, **kwargs)
