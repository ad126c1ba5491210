"""Zip archives of mail, read without unpacking them anywhere."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, BinaryIO, cast

from brain_pipeline.errors import MailError
from brain_pipeline.mail.mailboxes.formats import HEAD_BYTES, format_in_folder
from brain_pipeline.mail.mailboxes.single import read_stream
from brain_pipeline.records import RawMessage, Skip

# Mail shrinks to a tenth, repetitive mail to a fiftieth; what shrinks more was made to burst.
_MAX_RATIO = 200
_FREE_BYTES = 16 * 2**20
_MAX_TOTAL_BYTES = 256 * 2**30
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError)


class _Burst(MailError):
    """An archive's member is far larger than its packed size allows."""


def read_archive(stream: BinaryIO, origin: str) -> Iterator[RawMessage | Skip]:
    """The messages in a zip of messages, mailboxes and Maildirs; what is damaged, locked or a bomb is skipped.

    Raises:
        MailError: ``stream`` is no readable zip.
    """
    try:
        archive = zipfile.ZipFile(stream)
    except _DAMAGED as error:
        raise MailError(f"{origin} is a damaged zip file; make it or download it again.") from error
    budget = _Budget()
    with archive:
        for member in archive.infolist():
            if member.is_dir() or member.filename.startswith("__MACOSX/"):
                continue
            where = f"{origin}/{member.filename}"
            try:
                yield from _read_member(archive, member, where, budget)
            except _Burst:
                yield Skip("unpacks to far more than mail can; it may be a zip bomb", where)
            except _DAMAGED:
                yield Skip("is damaged within its zip file", where)
            except RuntimeError:  # what zipfile raises for a member that needs a password
                yield Skip("is locked with a password", where)


def _read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str, budget: _Budget
) -> Iterator[RawMessage | Skip]:
    with archive.open(member) as packed:
        bounded = io.BufferedReader(_Bounded(packed, member.compress_size * _MAX_RATIO + _FREE_BYTES, budget))
        found = format_in_folder(member.filename, bounded.peek(HEAD_BYTES))
        if found is None:
            yield Skip("not a mail file", where)
        elif found == "zip":
            yield Skip("a zip file within a zip file", where)
        else:
            yield from read_stream(cast("BinaryIO", bounded), where, found)


class _Budget:
    """How many bytes the whole archive may still unpack to."""

    def __init__(self) -> None:
        self.left = _MAX_TOTAL_BYTES


class _Bounded(io.RawIOBase):
    """A member's bytes, up to ``limit`` and the archive's ``budget``, counted as they are really unpacked."""

    def __init__(self, packed: IO[bytes], limit: int, budget: _Budget) -> None:
        self._packed = packed
        self._left = limit
        self._budget = budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._packed.read(len(buffer))
        self._left -= len(data)
        self._budget.left -= len(data)
        if self._left < 0 or self._budget.left < 0:
            raise _Burst("The archive unpacks to far more than mail can.")
        buffer[: len(data)] = data
        return len(data)
