"""Waiting, but not for ever."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

import anyio

Item = TypeVar("Item")


async def until(deadline: float, items: AsyncGenerator[Item, None]) -> AsyncGenerator[Item, None]:
    """The items, as long as none is late by the event loop's clock; ``TimeoutError`` then.

    Nothing is yielded inside a timeout, which would go off in whatever the caller is doing by then (PEP 789). The
    timeout is anyio's, which cancels again and again: asyncio's does it once, and an HTTP client that just connects
    takes that for its own.
    """
    async with aclosing(items):
        while True:
            with anyio.fail_after(deadline - anyio.current_time()):
                try:
                    item = await anext(items)
                except StopAsyncIteration:
                    return
            yield item
