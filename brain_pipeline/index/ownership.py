"""Who may open the embedded database: one process at a time.

A second process's rows are counted but never found by Chroma's queries, and concurrent writers lose rows. The
operating system gives the lock up when its holder dies, so no lock is ever stale; the file beside it only says who
holds it.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from brain_pipeline.errors import StoreLocked

# Looking whether a database is taken takes it for a moment, which whoever wants it, or looks too, waits out.
_PATIENCE = 0.5  # seconds
_A_MOMENT = 0.1
_urls: dict[Path, str] = {}  # where this process serves which database, whichever ``Ownership`` of it announced that
_writing = threading.Lock()


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds a database; ``url`` is where it serves HTTP, empty when it does not."""

    pid: int
    host: str
    url: str = ""


class Ownership:
    """The right to open the database in ``directory``, shared by all that asks for it within this process."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._owner_file = directory.resolve() / "brain.owner.json"
        # A singleton, so that a notebook that opens its brain twice is one owner.
        self._lock = FileLock(directory.resolve() / "brain.lock", is_singleton=True, thread_local=False)

    def take(self) -> None:
        """Takes the database for this process.

        Raises:
            StoreLocked: another process holds it; the error says which, and carries its ``Owner``.
            OSError: the directory can't be written.
        """
        try:
            self._lock.acquire(timeout=_PATIENCE)
        except Timeout as error:
            owner = self.holder()
            who = f"process {owner.pid} on {owner.host}" if owner else "another process"
            where = f", which serves {owner.url}," if owner and owner.url else ""
            raise StoreLocked(
                f"The database {self._directory} is in use by {who}{where} and only one may open it at a time. "
                "Ask that one, or stop it first.",
                owner,
            ) from error
        self._write()

    def give_up(self) -> None:
        """Lets another process take the database."""
        self._lock.release()

    def announce(self, url: str) -> None:
        """Says where this process serves HTTP, so that others can hand their work over; empty: nowhere."""
        _urls[self._owner_file] = url
        if self._lock.is_locked:
            self._write()

    def elsewhere(self) -> Owner | None:
        """The other process that holds the database now and serves it over HTTP; None when there is none."""
        if not self._owner_file.exists():
            return None
        try:
            self._lock.acquire(timeout=_A_MOMENT, poll_interval=_A_MOMENT / 10)
        except Timeout:
            owner = self.holder()
            return owner if owner and owner.url else None
        except OSError:
            return None  # a directory that can't be written has no owner; opening the database will say so
        self._lock.release()
        return None

    def holder(self) -> Owner | None:
        """Who holds the database, or held it last; None when nobody said."""
        try:
            return Owner(**json.loads(self._owner_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _write(self) -> None:
        owner = Owner(os.getpid(), socket.gethostname(), _urls.get(self._owner_file, ""))
        unfinished = self._owner_file.with_suffix(".new")
        with _writing:
            unfinished.write_text(json.dumps(asdict(owner)))
            unfinished.replace(self._owner_file)
