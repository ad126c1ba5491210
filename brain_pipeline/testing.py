"""Test doubles that are real LlamaIndex models: no server, no weights, the same answer every time.

They are part of the package so that a host application can test against the brain without a model. Both are held to
the same contract tests as the models they stand in for.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, repeat
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.bridge.pydantic import Field, PrivateAttr

from brain_pipeline.models.chat import ChatOnlyLLM

Reply = str | BaseException
Script = Reply | Sequence[Reply] | Callable[[Sequence[ChatMessage]], str]


class ScriptedLLM(ChatOnlyLLM):
    """A language model that says what the test wrote down, and remembers what it was asked.

    Args:
        script: what it answers. A string answers every call; a sequence answers call by call, its last item also every
            call after that; a callable answers from the messages. An exception in place of a string is raised.

    Attributes:
        conversations: the messages of each call, in order.
    """

    model_name: str = "scripted"
    context_window: int = 8192
    conversations: list[list[ChatMessage]] = Field(default_factory=list)
    _reply: Callable[[Sequence[ChatMessage]], Reply] = PrivateAttr()
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, script: Script = "A scripted answer.", **fields: Any) -> None:
        super().__init__(**fields)
        self._reply = script if callable(script) else _in_turn(script)

    @property
    def metadata(self) -> LLMMetadata:
        """What LlamaIndex asks of every model."""
        return LLMMetadata(context_window=self.context_window, model_name=self.model_name, is_chat_model=True)

    @property
    def prompts(self) -> list[str]:
        """The text of each call, its messages joined by a blank line."""
        return ["\n\n".join(message.content or "" for message in messages) for messages in self.conversations]

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return len(self.conversations)

    def _chat(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=self._next(messages)))

    def _stream_chat(self, messages: Sequence[ChatMessage]) -> ChatResponseGen:
        said = ""
        for piece in re.findall(r"\s*\S+|\s+$", self._next(messages)):
            said += piece
            yield ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=said), delta=piece)

    def _next(self, messages: Sequence[ChatMessage]) -> str:
        with self._lock:
            self.conversations.append(list(messages))
            reply = self._reply(messages)
        if isinstance(reply, BaseException):
            raise reply
        return reply


def _in_turn(script: Reply | Sequence[Reply]) -> Callable[[Sequence[ChatMessage]], Reply]:
    replies = [script] if isinstance(script, str | BaseException) else list(script)
    turns: Iterator[Reply] = chain(replies, repeat(replies[-1]))
    return lambda _messages: next(turns)


class HashedTokenEmbedder(BaseEmbedding):
    """An embedder whose vectors are near when texts share words.

    A vector is the count of a text's words, each word hashed to one of ``dimension`` places (the hashing trick,
    Weinberger et al. 2009, without signs so that no text can cancel out to zero), at unit length. Words are compared
    without case and diacritics. A text without words counts as one word of its own.
    """

    model_name: str = "hashed-token"
    dimension: int = 384

    def _get_text_embedding(self, text: str) -> list[float]:
        vector = np.zeros(self.dimension)
        for token in _tokens(text):
            vector[int.from_bytes(blake2b(token.encode(), digest_size=8).digest()) % self.dimension] += 1
        unit: list[float] = (vector / np.linalg.norm(vector)).tolist()
        return unit

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def _tokens(text: str) -> list[str]:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(character for character in decomposed if not unicodedata.combining(character))
    return re.findall(r"\w+", plain) or [text]
