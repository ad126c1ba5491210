"""Who may open the embedded database: one process at a time.

A second process's rows are counted but never found by Chroma's queries, and concurrent writers lose rows. The
operating system gives the lock up when its holder dies, so no lock is ever stale; the file beside it only says who
holds it.

A service that starts before there is a database can't take it, since reading makes no folder. It holds a claim
instead, in the user's cache folder, so that the first mail is handed over to it too. A claim opens nothing: whoever
opens the database takes the lock itself.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import socket
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout
from platformdirs import user_cache_path

from brain_pipeline.errors import StoreLocked

log = logging.getLogger(__name__)

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
        name = hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:16]
        self._claim_file = user_cache_path("family-brain") / "claims" / f"{name}.json"
        self._claim = FileLock(self._claim_file.with_suffix(".lock"), is_singleton=True, thread_local=False)

    def take(self) -> None:
        """Takes the database for this process.

        Raises:
            StoreLocked: another process holds it; the error says which, and carries its ``Owner``.
            OSError: the directory can't be written.
        """
        try:
            self._lock.acquire(timeout=_PATIENCE)
        except Timeout as error:
            raise self._taken(self.holder()) from error
        self._write(self._owner_file)

    def _taken(self, owner: Owner | None) -> StoreLocked:
        who = f"process {owner.pid} on {owner.host}" if owner else "another process"
        where = f", which serves {owner.url}," if owner and owner.url else ""
        return StoreLocked(
            f"The database {self._directory} is in use by {who}{where} and only one may open it at a time. "
            "Ask that one, or stop it first.",
            owner,
        )

    def give_up(self) -> None:
        """Lets another process take the database."""
        self._lock.release()

    def announce(self, url: str) -> None:
        """Says where this process serves HTTP, so that others can hand their work over; empty: nowhere.

        Raises:
            StoreLocked: there is no database yet, and another process serves in its place.
        """
        _urls[self._owner_file] = url
        if self._lock.is_locked:
            self._write(self._owner_file)
        elif url:
            self._stake()
        if not url:
            self._claim.release()

    def _stake(self) -> None:
        try:
            self._claim_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._claim.acquire(timeout=_PATIENCE)
            self._write(self._claim_file)
        except Timeout as error:
            raise self._taken(_read(self._claim_file)) from error
        except OSError as error:  # without a cache folder others open the database themselves
            log.warning("no claim to %s: %s", self._directory, error.strerror)

    def elsewhere(self) -> Owner | None:
        """The other process that serves the database over HTTP, even one that is not there yet; None for none."""
        return _other(self._lock, self._owner_file) or _other(self._claim, self._claim_file)

    def holder(self) -> Owner | None:
        """Who holds the database, or held it last; None when nobody said."""
        return _read(self._owner_file)

    def _write(self, file: Path) -> None:
        owner = Owner(os.getpid(), socket.gethostname(), _urls.get(self._owner_file, ""))
        unfinished = file.with_suffix(".new")
        with _writing:
            unfinished.write_text(json.dumps(asdict(owner)))
            unfinished.replace(file)


def _read(file: Path) -> Owner | None:
    try:
        return Owner(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _other(lock: BaseFileLock, file: Path) -> Owner | None:
    """Who holds ``lock``, when that is another process which serves HTTP."""
    if not file.exists():
        return None
    try:
        lock.acquire(timeout=_A_MOMENT, poll_interval=_A_MOMENT / 10)
    except Timeout:
        owner = _read(file)
        return owner if owner and owner.url else None
    except OSError:
        return None  # a directory that can't be written has no owner; opening the database will say so
    lock.release()
    return None
