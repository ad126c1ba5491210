"""A database as one file, and back.

The file is a zip with a manifest of SHA-256 sums. A backup is read back before it gets its name, and a restored
database is checked before it takes the place of another.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO

from pydantic import TypeAdapter

from brain_pipeline.errors import ConfigError, StoreError
from brain_pipeline.index.chroma import DATABASE, check_file, foreign_errors
from brain_pipeline.index.ownership import Ownership
from brain_pipeline.settings import Settings

FORMAT = 1
MANIFEST = "manifest.json"

_NOT_KEPT = {"brain.lock", "brain.owner.json", "brain.owner.new"}
_PIECE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup holds: SHA-256 sums by file name, when it was made, and by which Chroma's database."""

    files: dict[str, str]
    made: str
    chromadb: str
    format: int = FORMAT


def back_up(settings: Settings, target: Path) -> Manifest:
    """Writes the database of ``settings`` to ``target``, readable by its owner only.

    Raises:
        ConfigError: ``target`` exists, or the database is a Chroma server's.
        StoreError: there is no database, it is in use, or the copy did not come out right.
    """
    folder = _folder(settings)
    if target.exists():
        raise ConfigError(f"{target} exists already. Name another file, or delete that one first.")
    if not (folder / DATABASE).is_file():
        raise StoreError(f"There is no database in {folder} to back up. Set CHROMA_DB_PATH to the one that you mean.")
    with foreign_errors(str(folder)), _owned(folder), TemporaryDirectory(dir=target.parent, prefix=".backup-") as work:
        packed = Path(work) / target.name
        _pack(folder, packed, Path(work))
        manifest = verify(packed)
        packed.replace(target)
    return manifest


def verify(archive: Path) -> Manifest:
    """Reads a backup through.

    Raises:
        StoreError: it is damaged, or no backup.
    """
    with _unpacking(archive) as packed:
        manifest = _manifest(packed)
        for name, digest in manifest.files.items():
            with packed.open(name) as file:
                if _sum(file) != digest:
                    raise StoreError(f"{archive} is damaged: {name} is not what was backed up. Use another backup.")
    return manifest


def restore(settings: Settings, archive: Path) -> Path | None:
    """Puts a backup in the place of the database of ``settings``.

    Returns:
        Where the database that was there before has been moved, None when there was none.

    Raises:
        ConfigError: the database is a Chroma server's.
        StoreError: the backup is damaged, or the database is in use; it is as it was then.
    """
    folder = _folder(settings)
    verify(archive)
    with foreign_errors(str(folder)):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent, prefix=".restore-") as work:
            fresh = Path(work) / folder.name
            _unpack(archive, fresh)
            check_file(fresh)
            if not folder.exists():
                fresh.rename(folder)
                return None
            with _owned(folder):
                return _exchange(fresh, folder)


def _exchange(fresh: Path, folder: Path) -> Path:
    before = folder.with_name(f"{folder.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    folder.rename(before)
    try:
        fresh.rename(folder)
    except OSError:
        before.rename(folder)
        raise
    return before


def _folder(settings: Settings) -> Path:
    if settings.chroma_url is not None:
        raise ConfigError(f"The database is the Chroma server's at {settings.chroma_url}; back it up there.")
    return settings.db_path


@contextmanager
def _owned(folder: Path) -> Iterator[None]:
    ownership = Ownership(folder)
    ownership.take()
    try:
        yield
    finally:
        ownership.give_up()


def _pack(folder: Path, target: Path, work: Path) -> None:
    sums = {}
    target.touch(mode=0o600)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if not path.is_file() or path.name in _NOT_KEPT or path.name.endswith(("-wal", "-shm", "-journal")):
                continue
            source = _settled(path, work) if path.suffix == ".sqlite3" else path
            with source.open("rb") as file:
                sums[name] = _sum(file)
            packed.write(source, name)
        manifest = Manifest(sums, datetime.now(UTC).isoformat(timespec="seconds"), version("chromadb"))
        packed.writestr(MANIFEST, json.dumps(asdict(manifest), indent=1))


def _settled(path: Path, work: Path) -> Path:
    """A copy of an SQLite file with all that still stands in its log."""
    copy = work / "copy.sqlite3"
    copy.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def _unpack(archive: Path, folder: Path) -> None:
    with _unpacking(archive) as packed:
        for name in _manifest(packed).files:
            path = folder / PurePosixPath(name)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with packed.open(name) as file, path.open("wb") as copy:
                shutil.copyfileobj(file, copy, _PIECE)


@contextmanager
def _unpacking(archive: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(archive) as packed:
            yield packed
    except FileNotFoundError as error:
        raise StoreError(f"There is no file {archive}. Name a backup that `brain backup FILE` made.") from error
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError, zlib.error) as error:
        raise StoreError(f"{archive} is damaged, or no backup of a brain. Use another backup.") from error


def _manifest(packed: zipfile.ZipFile) -> Manifest:
    manifest = TypeAdapter(Manifest).validate_json(packed.read(MANIFEST))
    if manifest.format != FORMAT or DATABASE not in manifest.files:
        raise ValueError("not this program's")
    for name in manifest.files:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\\" in name or ":" in name:
            raise ValueError("a name leads out of the folder")
    return manifest


def _sum(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()
