"""How many questions one language model works on at once, and how many wait."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import asynccontextmanager

from brain_pipeline.errors import ModelOverloaded

_RETRY_AFTER = 5  # seconds, about what one answer takes


class Gate:
    """Lets ``places`` in at once and ``queue`` wait, first come, first served; the rest are turned away at once.

    Whoever is cancelled gives up its place, or its turn. One gate serves every event loop and thread of the process.
    """

    def __init__(self, places: int, queue: int) -> None:
        self._free, self._queue = places, queue
        self._waiting: deque[Future[None]] = deque()
        self._lock = threading.Lock()

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[None]:
        """A place inside, for as long as the context lasts.

        Raises:
            ModelOverloaded: too many wait already.
        """
        await self._enter()
        try:
            yield
        finally:
            self._leave()

    async def _enter(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            if len(self._waiting) >= self._queue:
                busy = ModelOverloaded(
                    f"{self._queue} questions wait for the language model already. Try again, or raise BRAIN_LLM_QUEUE."
                )
                busy.retry_after = _RETRY_AFTER
                raise busy
            turn: Future[None] = Future()
            self._waiting.append(turn)
        try:
            await asyncio.wrap_future(turn)
        except asyncio.CancelledError:
            self._forgo(turn)
            raise

    def _forgo(self, turn: Future[None]) -> None:
        if not turn.cancel():  # the turn had come in the same moment
            self._leave()
            return
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)

    def _leave(self) -> None:
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._free += 1
