"""What was worked out lately, for when the same is asked again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """The last ``most`` values, by what they were worked out from; none when it is 0. For several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()
        self._changing = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """The value that is kept under ``key``, None when none is."""
        with self._changing:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def keep(self, key: Hashable, value: Value) -> None:
        """Keeps a value, in place of the one that was not asked for longest."""
        with self._changing:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
