"""How an ingestion is watched: a bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from brain_pipeline.records import RawMessage, Report, Skip

SECONDS_BETWEEN_LINES = 10.0


class Watch:
    """Shows count, rate and time left of an ingestion on ``console``.

    ``with Watch(console, messages, paths) as watch: brain.ingest(watch, on_progress=watch.show)``. The time left is
    judged by the bytes read of those that ``paths`` hold; it is unknown for a mailbox on standard input.
    """

    def __init__(self, console: Console, messages: Iterable[RawMessage | Skip], paths: Iterable[Path]) -> None:
        self._console = console
        self._messages = messages
        self._bytes = 0
        self._started = self._said = time.monotonic()
        self._total = sum(map(_size, paths)) or None
        self._bar = _bar(console)
        self._task = self._bar.add_task("reading mail", total=self._total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __iter__(self) -> Iterator[RawMessage | Skip]:
        for message in self._messages:
            yield message
            if isinstance(message, RawMessage):
                self._bytes += len(message.content)

    def show(self, report: Report) -> None:
        """Shows the report so far."""
        now = time.monotonic()
        took = max(now - self._started, 0.001)
        told = f"{report.total:,} messages, {len(report.skipped):,} skipped, {report.total / took:,.0f} a second"
        self._bar.update(self._task, completed=self._bytes, description=told)
        if not self._console.is_terminal and now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            left = took * (self._total / self._bytes - 1) if self._total and self._bytes else None
            more = f", about {max(left, 0):,.0f} seconds left" if left is not None else ""
            self._console.print(told + more, markup=False)


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


@contextmanager
def rows_bar(console: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows how many rows of how many are done: a bar in a terminal, nothing elsewhere."""
    with _bar(console) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _bar(console: Console) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
