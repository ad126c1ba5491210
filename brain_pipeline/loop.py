"""An event loop in a thread of its own, for callers that can't await."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines on a loop in a daemon thread, which keeps no interpreter from ending.

    The caller may be inside a running loop itself, as in a notebook.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="brain-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of ``work``; it is cancelled when the caller is interrupted."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Waits for what is running, and ends the thread."""

        async def finish() -> None:
            running = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*running, return_exceptions=True)

        self.call(finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
