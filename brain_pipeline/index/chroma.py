"""Opening Chroma, and what goes wrong there as errors of ours."""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from urllib.parse import urlsplit

import chromadb
import httpx
from chromadb.api import fastapi
from chromadb.api.client import Client
from chromadb.api.shared_system_client import SharedSystemClient
from chromadb.config import Settings as ChromaSettings
from chromadb.config import System
from chromadb.errors import ChromaError, error_types
from typing_extensions import override

from brain_pipeline.errors import BrainError, StoreError
from brain_pipeline.index.hnsw import damage
from brain_pipeline.models.guard import Guard, GuardedTransport
from brain_pipeline.settings import Settings

DATABASE = "chroma.sqlite3"

_QUIET = ChromaSettings(anonymized_telemetry=False)
_RESTORE = "Restore a backup with `brain restore FILE`, or move the folder away and ingest the mail again."
_LOOK = "Make sure that CHROMA_URL names a Chroma server, and look into that server's log."
# What Chroma, SQLite and the operating system say, in lower case, and what it means to the person who reads it.
_MEANINGS = (
    (("disk is full", "no space", "file too large"), "its disk is full. Make room, then try again."),
    (
        ("readonly", "read-only", "permission denied", "unable to open database file"),
        "it can't be written, and Chroma writes even to be read. Give this user the right to, or copy it elsewhere.",
    ),
    (("malformed", "not a database", "no such table", "missing field", "disk i/o"), f"its file is damaged. {_RESTORE}"),
    (
        ("hnsw", "finding id", "getting embedding", "pickle"),
        f"its vector index is damaged. {_RESTORE}",
    ),
    (
        ("inconsistent hash", "inconsistent version", "migration"),
        "another version of Chroma wrote it. Use that version, or restore a backup with `brain restore FILE`.",
    ),
    (("does not exist",), "its collection was deleted while it was in use. Ask again."),
)
_KNOWN_VERSIONS = {"embeddings_queue": 2, "metadb": 6, "sysdb": 10}  # of Chroma 1.5.9
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# A collection's vector index, and up to which entry of the log it was written to disk.
_INDEXES = """
    SELECT s.id, m.seq_id FROM segments s JOIN collections c ON s.collection = c.id
    LEFT JOIN max_seq_id m ON m.segment_id = s.id WHERE c.name = ? AND s.scope = 'VECTOR'
"""
_OPENING = threading.Lock()


@contextmanager
def foreign_errors(location: str, *, server: bool = False) -> Iterator[None]:
    """Turns what Chroma raises inside, its Rust panics too, into ``StoreError`` with what to do about it.

    Args:
        location: the database's path, or the server's URL.
        server: whether it is a server's.
    """
    try:
        yield
    except (ChromaError, sqlite3.Error, httpx.HTTPError, OSError, RuntimeError, ValueError) as error:
        raise (_of_server if server else _ours)(location, error) from error
    except BaseException as error:
        if type(error).__module__ == "pyo3_runtime":
            raise _ours(location, error) from error
        raise


def _of_server(location: str, error: BaseException) -> StoreError:
    return StoreError(f"The Chroma server {location} can't be used: {_meaning_of_server(error)}")


def _meaning_of_server(error: BaseException) -> str:
    for each in _causes(error):  # Chroma's client says less than what it met
        if isinstance(each, BrainError):
            return str(each)
        if isinstance(each, httpx.HTTPStatusError):
            return f"it answers with the HTTP status {each.response.status_code}. {_LOOK}"
        if isinstance(each, httpx.TransportError):
            return "it does not answer. Start it, or correct CHROMA_URL."
        if isinstance(each, ChromaError):
            return f"it reports {each.name()}. {_LOOK}"
    return f"what it sends is not Chroma's. {_LOOK}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _ours(location: str, error: BaseException) -> StoreError:
    said = "no space" if isinstance(error, OSError) and error.errno in _FULL else f"{type(error).__name__} {error}"
    for words, meaning in _MEANINGS:
        if any(word in said.lower() for word in words):
            return StoreError(f"The database {location} can't be used: {meaning}")
    return StoreError(
        f"The database {location} can't be used ({type(error).__name__}): its disk may be full, or a file of it "
        "damaged. Make sure there is room, then run `brain doctor`."
    )


def open_database(path: Path, collection: str) -> Client:
    """Chroma in this process, over a database that is this process's alone.

    Raises:
        StoreError: a newer Chroma wrote it, or the collection's vector index would end the process.
    """
    if (path / DATABASE).exists():
        _check(path, collection)
    try:
        return cast("Client", chromadb.PersistentClient(path, _QUIET))
    except BaseException:
        # Chroma keeps what it half opened, and would hand it out the next time.
        SharedSystemClient._identifier_to_system.pop(str(path), None)  # noqa: SLF001
        raise


def _check(path: Path, collection: str) -> None:
    if not (path / DATABASE).stat().st_size:
        raise StoreError(f"The database {path} is empty, perhaps because its disk was full. {_RESTORE}")
    with closing(sqlite3.connect(f"{(path / DATABASE).absolute().as_uri()}?mode=ro", uri=True)) as database:
        versions: dict[str, int] = dict(_rows(database, "SELECT dir, max(version) FROM migrations GROUP BY dir"))
        if _newer(versions, _KNOWN_VERSIONS) and _newer(versions, _own_versions()):
            raise StoreError(
                f"A newer Chroma wrote the database {path} than this one, {chromadb.__version__}. Run "
                "`pip install --upgrade chromadb`; this one might damage it."
            )
        indexes = _rows(database, _INDEXES, collection)
    for segment, written in indexes:
        if problem := damage(path / segment, written=bool(written)):
            raise StoreError(f"The database {path} can't be used: its vector index is damaged ({problem}). {_RESTORE}")


def _rows(database: sqlite3.Connection, query: str, *values: str) -> list[tuple[Any, ...]]:
    try:
        return database.execute(query, values).fetchall()
    except sqlite3.OperationalError:  # the tables of another version, which Chroma migrates or refuses itself
        return []


def _newer(found: dict[str, int], known: dict[str, int]) -> bool:
    return any(int(version) > known.get(name, 0) for name, version in found.items())


def _own_versions() -> dict[str, int]:
    """The versions that this Chroma writes; only a database of its own tells."""
    with TemporaryDirectory(prefix="family-brain-") as folder:
        client = cast("Client", chromadb.PersistentClient(folder, _QUIET))
        try:
            with closing(sqlite3.connect(Path(folder) / DATABASE)) as database:
                return dict(database.execute("SELECT dir, max(version) FROM migrations GROUP BY dir"))
        finally:
            client.close()


def check_file(path: Path) -> None:
    """Reads the whole of the database file, and makes sure that SQLite finds nothing wrong with it.

    Raises:
        StoreError: it does.
    """
    with closing(sqlite3.connect(f"{(path / DATABASE).absolute().as_uri()}?mode=ro", uri=True)) as database:
        (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise StoreError(f"The database {path} can't be trusted: its file is damaged. {_RESTORE}")


def open_server(settings: Settings) -> Client:
    """A client of the Chroma server at ``settings.chroma_url``, which is the household's and answers in time.

    Raises:
        ValueError: Chroma's client could not begin with the server; its causes say why.
    """
    address = urlsplit(settings.chroma_url or "")
    secure = address.scheme == "https"
    port = address.port or (443 if secure else 8000)
    transport = GuardedTransport(Guard.of(settings.allow_public_hosts))

    class Impatient(fastapi.FastAPI):
        def __init__(self, system: System) -> None:
            super().__init__(system)
            patient, self._session = (
                self._session,
                httpx.Client(
                    transport=transport,
                    timeout=settings.chroma_timeout,
                    headers=self._session.headers,
                    event_hooks={"response": [_only_errors_of_chroma]},
                ),
            )
            patient.close()

        @override
        def stop(self) -> None:
            super().stop()
            self._session.close()  # which Chroma's own client leaves open

    # Chroma's own client waits for ever, and no setting changes that. It is looked up by this name.
    with _OPENING:
        usual, fastapi.FastAPI = fastapi.FastAPI, Impatient  # type: ignore[misc]
        try:
            client = chromadb.HttpClient(host=address.hostname or "", port=port, ssl=secure, settings=_quiet_server())
        finally:
            fastapi.FastAPI = usual  # type: ignore[misc]
    return cast("Client", client)


def _only_errors_of_chroma(response: httpx.Response) -> None:
    """Raises what Chroma's client would raise as a plain ``Exception``: errors of proxies and of other servers."""
    if response.is_error:
        response.read()
        try:
            known = response.json()["error"] in error_types
        except (ValueError, TypeError, KeyError):
            known = False
        if not known:
            response.raise_for_status()


def _quiet_server() -> ChromaSettings:
    return ChromaSettings(anonymized_telemetry=False)  # one of its own, because HttpClient writes into it
