"""What a brain does when the application that holds it starts and ends."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from brain_pipeline.brain import Brain
from brain_pipeline.errors import BrainError

log = logging.getLogger(__name__)

LONGEST_FAREWELL = 5.0  # seconds

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


def closing(brain: Brain) -> Lifespan:
    """A lifespan that gives the database up at its end."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(brain.close)

    return lifespan


def warming(brain: Brain) -> Lifespan:
    """A lifespan that warms the brain up and, at its end, waits for that: it would open the database again."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=_warm_up, args=(brain, ended), name="warm-up", daemon=True)
        thread.start()
        yield
        ended.set()
        # A model that loads in this process must not be torn away; a server that loads its own may be left waiting.
        await asyncio.to_thread(thread.join, LONGEST_FAREWELL)

    return lifespan


def _warm_up(brain: Brain, ended: threading.Event) -> None:
    try:
        brain.warm_up()
    except BrainError as error:
        log.warning("not ready yet: %s", error)
    finally:
        if ended.is_set():  # whoever ended may not have waited for this
            brain.close()
