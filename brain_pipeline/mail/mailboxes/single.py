"""One open file of mail, in any format but zip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from brain_pipeline.mail.mailboxes.formats import Format
from brain_pipeline.mail.mailboxes.mbox import MAX_MESSAGE_BYTES, split_mbox
from brain_pipeline.records import RawMessage, Skip

_PROPERTY_LIST = b"<?xml version"


def read_stream(stream: BinaryIO, origin: str, found: Format) -> Iterator[RawMessage | Skip]:
    """The message or messages of ``stream``, which is of the format ``found``."""
    if found == "mbox":
        yield from split_mbox(stream, origin)
        return
    content = stream.read(MAX_MESSAGE_BYTES + 1)
    if len(content) > MAX_MESSAGE_BYTES:
        yield Skip(f"larger than {MAX_MESSAGE_BYTES // 2**20} MiB", origin)
    else:
        yield RawMessage(origin, _without_apple_frame(content) if found == "emlx" else content)


def _without_apple_frame(content: bytes) -> bytes:
    """The message of an ``.emlx`` file: its length stands before it, a property list after it."""
    length, _, rest = content.partition(b"\n")
    size = int(length.strip()[:12])
    if size <= len(rest) and rest[size:].lstrip()[: len(_PROPERTY_LIST)] in {b"", _PROPERTY_LIST}:
        return rest[:size]
    end = rest.rfind(_PROPERTY_LIST)
    return rest[:end] if end >= 0 else rest
