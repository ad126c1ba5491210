"""A chat model from a GGUF file, through llama.cpp in this process."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

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
from typing_extensions import override

from brain_pipeline.errors import ConfigError, ModelBadResponse, ModelError, ModelMissing
from brain_pipeline.models.chat import ChatOnlyLLM
from brain_pipeline.models.thinking import SpokenAnswer

_MAGIC = b"GGUF"  # what such a file begins with


class GgufLLM(ChatOnlyLLM):
    """A chat model from a GGUF file; the file brings its chat template.

    The file is loaded at first use. One answer is made at a time, others wait. An async call that is cancelled stops at
    the next word.

    Args:
        path: the file.
        context_window: tokens of question, sources and answer together.
        max_tokens: tokens an answer may have at most.

    Raises:
        ConfigError: ``path`` is None.
        ModelMissing: at first use, when the package or the file is not there.
        ModelError: at first use, when the file can't be loaded.
        ModelBadResponse: from every method that answers, when the prompt is too long or the answer is empty.
    """

    model_name: str = ""
    context_window: int = 0
    max_tokens: int = 0
    _path: Path = PrivateAttr()
    _engine: Any = PrivateAttr(default=None)
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, path: Path | None, *, context_window: int, max_tokens: int) -> None:
        path = _named(path)
        super().__init__()
        self.model_name = path.name
        self.context_window = context_window
        self.max_tokens = max_tokens
        self._path = path

    @property
    @override
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=self.context_window,
            num_output=self.max_tokens,
            model_name=self.model_name,
            is_chat_model=True,
        )

    @override
    def _chat(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        *_, last = self._stream_chat(messages)
        return last

    @override
    def _stream_chat(self, messages: Sequence[ChatMessage]) -> ChatResponseGen:
        answer = SpokenAnswer()
        with self._generation(messages) as generation:
            while not answer.finished:
                yield _response(answer, generation.next())
        answer.check()

    @override
    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return [part async for part in self._astream(messages)][-1]

    @override
    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        return self._astream(messages)

    async def _astream(self, messages: Sequence[ChatMessage]) -> ChatResponseAsyncGen:
        answer = SpokenAnswer()
        await asyncio.to_thread(self.load)
        with self._generation(messages) as generation:
            while not answer.finished:
                yield _response(answer, await asyncio.to_thread(generation.next))
        answer.check()

    def load(self) -> None:
        """Read the file into memory, unless that is done."""
        with self._lock:
            self._engine = self._engine or _open(self._path, self.context_window)

    @contextmanager
    def _generation(self, messages: Sequence[ChatMessage]) -> Iterator[_Generation]:
        self.load()
        body = {
            "messages": [{"role": message.role.value, "content": message.content or ""} for message in messages],
            "temperature": 0,
            "max_tokens": self.max_tokens,
            "stream": True,
        }
        generation = _Generation(self._engine, body)
        try:
            yield generation
        finally:
            generation.stopped.set()


def check_file(path: Path | None) -> None:
    """Makes sure that a GGUF file could be loaded, without loading it.

    Raises:
        ConfigError: ``path`` is None.
        ModelMissing: the package or the file is not there.
        ModelError: the file can't be read, or is not in the GGUF format.
    """
    path = _named(path)
    _engines(path)
    try:
        with path.open("rb") as file:
            found = file.read(len(_MAGIC))
    except OSError as error:
        raise _unloadable(path) from error
    if found != _MAGIC:
        raise _unloadable(path)


def _named(path: Path | None) -> Path:
    if path is None:
        raise ConfigError("BRAIN_LLM_PROVIDER is gguf, but BRAIN_LLM_MODEL_PATH names no file.")
    return path


def _engines(path: Path) -> Any:
    """The package, when it and the file are there."""
    try:
        xllamacpp = import_module("xllamacpp")
    except ImportError as error:
        raise ModelMissing("A GGUF model needs xllamacpp. Run `pip install 'family-brain[gguf]'`.") from error
    if not path.is_file():
        raise ModelMissing(f"{path} is not there. Check BRAIN_LLM_MODEL_PATH.")
    return xllamacpp


def _unloadable(path: Path) -> ModelError:
    return ModelError(f"{path} can't be loaded as a GGUF model. Check BRAIN_LLM_MODEL_PATH.")


def _open(path: Path, context_window: int) -> Any:
    xllamacpp = _engines(path)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = context_window
    parameters.n_parallel = 1
    parameters.verbosity = 0
    parameters.ui = False
    # The engine listens on a port of this machine, which would otherwise answer any program and any web page.
    parameters.api_keys = [secrets.token_hex(16)]
    try:
        return xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise _unloadable(path) from error


class _Generation:
    """One answer in the making, in a thread of its own, which stops at the next word once ``stopped`` is set."""

    def __init__(self, engine: Any, body: dict[str, Any]) -> None:
        self.stopped = threading.Event()
        self._text = ""
        self._texts: SimpleQueue[str | ModelBadResponse | None] = SimpleQueue()
        threading.Thread(target=self._run, args=(engine, body), name="gguf-answer").start()

    def next(self) -> tuple[str, bool]:
        """The answer so far, and whether it is finished; waits for the next word."""
        item = self._texts.get()
        if isinstance(item, ModelBadResponse):
            raise item
        if item is not None:
            self._text = item
        return self._text, item is None

    def _run(self, engine: Any, body: dict[str, Any]) -> None:
        said = ""

        def on_chunk(chunk: Any) -> bool:
            nonlocal said
            for part in chunk if isinstance(chunk, list) else [chunk]:
                if "error" in part:
                    self._texts.put(ModelBadResponse(f"The model can't answer: {part['error'].get('message', '')}."))
                for choice in part.get("choices", ()):
                    if piece := choice.get("delta", {}).get("content"):
                        said += piece
                        self._texts.put(said)
            return self.stopped.is_set()

        try:
            engine.handle_chat_completions(body, on_chunk)
        finally:
            self._texts.put(None)


def _response(answer: SpokenAnswer, text_and_end: tuple[str, bool]) -> ChatResponse:
    text, finished = text_and_end
    return answer.so_far(ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text)), finished=finished)
