"""A SQLite file of the brain's own, beside the collection: one writer, readers that see the last commit."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from brain_pipeline.errors import StoreError

Value = TypeVar("Value")

BATCH = 500  # values of one statement; SQLite allows 32,766 variables


class Outdated(StoreError):
    """The file is damaged or of another format; it can be made anew."""


class Database:
    """One file, which may be used from several threads. Every method raises ``StoreError`` when it can't be used.

    Args:
        path: the file; it is made, with its folder, when there is none.
        name: what messages call it, as ``keyword index``.
        create: makes the tables of an empty file.

    Raises:
        Outdated: the file is damaged.
        StoreError: the file can't be read or written.
    """

    def __init__(self, path: Path, name: str, create: Callable[[sqlite3.Connection], None]) -> None:
        self.path = path
        self._name = name
        self._writing, self._reading = threading.Lock(), threading.Lock()
        with ExitStack() as undo:
            with self._foreign_errors():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds the words of the family's mail
                self._writer, self._reader = (undo.enter_context(closing(self._connect())) for _ in range(2))
            with self.transaction() as writer:
                if not writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    create(writer)
            undo.pop_all()

    @staticmethod
    def delete(path: Path) -> None:
        """Deletes a file that is not open.

        Raises:
            StoreError: the file can't be deleted.
        """
        try:
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{path} can't be deleted ({error.strerror}); delete it yourself.") from error

    def close(self) -> None:
        """Closes the file."""
        with self._writing, self._reading:
            self._reader.close()
            self._writer.close()

    def _connect(self) -> sqlite3.Connection:
        with ExitStack() as undo:
            connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None, timeout=30)
            undo.enter_context(closing(connection))
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            undo.pop_all()
        return connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are kept together, or, when the block raises, not at all."""
        with self._writing, self._foreign_errors():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")

    def read(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement gives."""
        with self._reading, self._foreign_errors():
            return self._reader.execute(statement, values).fetchall()

    @contextmanager
    def _foreign_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            damaged = getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
            lacking = isinstance(error, sqlite3.OperationalError) and "no such" in str(error)
            kind = Outdated if damaged or lacking else StoreError
            raise kind(
                f"The {self._name} {self.path} can't be used ({error}); delete it to have it made anew."
            ) from error


def batches(values: Iterable[Value]) -> Iterator[list[Value]]:
    """The values in lists of at most ``BATCH``."""
    iterator = iter(values)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def marks(values: Sequence[object]) -> str:
    """As many question marks as there are values, for ``IN (...)``."""
    return ",".join("?" * len(values))
