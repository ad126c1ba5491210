"""Every message in the files, folders and archives that a family keeps its mail in, one at a time."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from brain_pipeline.errors import MailError
from brain_pipeline.mail.mailboxes.archive import read_archive
from brain_pipeline.mail.mailboxes.formats import HEAD_BYTES, format_in_folder, format_of
from brain_pipeline.mail.mailboxes.single import read_stream
from brain_pipeline.records import RawMessage, Skip

__all__ = ["iter_messages"]

_STANDARD_INPUT = Path("-")
_FORMATS = ".eml and .emlx files, folders of them, mbox files, Maildir folders and .zip files of these"


def iter_messages(paths: Iterable[Path | BinaryIO]) -> Iterator[RawMessage | Skip]:
    """The messages of ``paths``, in the order given and, within a folder, by name; memory is that of one message.

    A path is a message (``.eml``, ``.emlx``, a saved ``.html`` newsletter), an mbox (mboxo, mboxrd, Google Takeout), a
    Maildir, a folder of any of these at any depth, a ``.zip`` of them, or ``-`` for standard input; an open binary file
    will do as well. Files in folders and archives that are no mail give a ``Skip``.

    Raises:
        MailError: a path does not exist, can't be opened or is no mail. Missing paths are told of before any message.
    """
    sources = list(paths)
    for source in sources:
        if isinstance(source, Path) and source != _STANDARD_INPUT and not source.exists():
            raise MailError(f"{source} does not exist. Give {_FORMATS}.")
    return _iterate(sources)


def _iterate(sources: list[Path | BinaryIO]) -> Iterator[RawMessage | Skip]:
    for source in sources:
        if not isinstance(source, Path):
            yield from _read_open(source, str(getattr(source, "name", "input")))
        elif source == _STANDARD_INPUT:
            yield from _read_open(sys.stdin.buffer, "-")
        elif source.is_dir():
            yield from _read_folder(source)
        else:
            yield from _read_named(source)


def _read_named(path: Path) -> Iterator[RawMessage | Skip]:
    """A file that was named, so that it must be mail."""
    try:
        with path.open("rb") as file:
            if format_of(str(path), file.peek(HEAD_BYTES)) is None:
                raise MailError(f"{path} is not mail that can be read. Give {_FORMATS}.")
            yield from _read_open(file, str(path))
    except OSError as error:
        raise MailError(f"{path} can't be read: {error.strerror}.") from error


def _read_open(stream: BinaryIO, origin: str) -> Iterator[RawMessage | Skip]:
    """An open file; text without a header is a message too."""
    if not hasattr(stream, "peek"):
        buffered = io.BufferedReader(cast("io.RawIOBase", stream))
        try:
            yield from _read_open(cast("BinaryIO", buffered), origin)
        finally:
            buffered.detach()  # the stream is its owner's to close
        return
    found = format_of(origin, stream.peek(HEAD_BYTES)) or "message"
    if found != "zip":
        yield from read_stream(stream, origin, found)
    elif stream.seekable():
        yield from read_archive(stream, origin)
    else:
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(stream, copy)
            yield from read_archive(cast("BinaryIO", copy), origin)


def _read_folder(folder: Path) -> Iterator[RawMessage | Skip]:
    for directory, subfolders, names in os.walk(folder):
        subfolders.sort()
        if "cur" in subfolders or "new" in subfolders:
            subfolders[:] = [name for name in subfolders if name != "tmp"]
        for name in sorted(names):
            yield from _read_file(Path(directory, name))


def _read_file(path: Path) -> Iterator[RawMessage | Skip]:
    """A file that was found in a folder: mail, or a skip."""
    try:
        with path.open("rb") as file:
            found = format_in_folder(str(path), file.peek(HEAD_BYTES))
            if found is None:
                yield Skip("not a mail file", str(path))
            elif found == "zip":
                yield from read_archive(file, str(path))
            else:
                yield from read_stream(file, str(path), found)
    except OSError as error:
        yield Skip(f"can't be read: {error.strerror}", str(path))
    except MailError as error:
        yield Skip(str(error), str(path))
