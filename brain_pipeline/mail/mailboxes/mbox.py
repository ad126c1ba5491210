"""The mbox family, in one pass and the memory of one message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from brain_pipeline.records import RawMessage, Skip

MAX_MESSAGE_BYTES = 256 * 2**20
_LINE_BYTES = 2**20
# "From " alone begins many a sentence: a separator has a sender and a moment, and a header follows it.
_SEPARATOR = re.compile(
    rb"From .{0,300}?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\s+"
    rb"(?:[A-Z][a-z]{2}\s+\d{1,2}|\d{1,2}[\s-][A-Z][a-z]{2}[\s-]\d{4}|\d{1,2}\s+[A-Z][a-z]{2})\s+"
    rb"\d{1,2}:\d{2}(?::\d{2})?(?:\s+\S{1,10}){0,3}\s*$"
)
_HEADER = re.compile(rb"[!-9;-~]+[ \t]*:|>From |From ")
_QUOTED_FROM = re.compile(rb">+From ")


def split_mbox(stream: BinaryIO, origin: str) -> Iterator[RawMessage | Skip]:
    """The messages of an mbox (mboxo, mboxrd or Google Takeout), numbered from 1 in their origins.

    ``From `` at the beginning of a line of text does not split, escaped or not; one ``>`` is taken from escaped ones.
    A message over 256 MiB is skipped.
    """
    message = _Message(origin, 1)
    separator = b""
    previous = b""
    begun = in_reply = False
    for line in iter(lambda: stream.readline(_LINE_BYTES), b""):
        at_start = not previous or previous.endswith(b"\n")
        if separator:
            if _HEADER.match(line):
                yield message.finish()
                message = _Message(origin, message.number + 1)
            else:
                message.add(separator)
            separator = b""
        if at_start and line.startswith(b"From "):
            if not begun:
                begun = True
                previous = line
                continue
            if _SEPARATOR.match(line):
                separator = previous = line
                continue
        begun = begun or bool(line.strip())
        escaped = at_start and not in_reply and _QUOTED_FROM.match(line)
        in_reply = not escaped and line.startswith(b">")
        message.add(line[1:] if escaped else line)
        previous = line
    if separator:
        message.add(separator)
    if begun:
        yield message.finish()


class _Message:
    """One message while it is collected."""

    def __init__(self, origin: str, number: int) -> None:
        self.number = number
        self._origin = f"{origin}#{number}"
        self._lines: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> None:
        self._size += len(line)
        if self._size <= MAX_MESSAGE_BYTES:
            self._lines.append(line)
        else:
            self._lines.clear()

    def finish(self) -> RawMessage | Skip:
        """The message, without the blank line that ends it in its mailbox."""
        if self._size > MAX_MESSAGE_BYTES:
            return Skip(f"larger than {MAX_MESSAGE_BYTES // 2**20} MiB", self._origin)
        if len(self._lines) > 1 and self._lines[-1] in {b"\n", b"\r\n"}:
            self._lines.pop()
        return RawMessage(self._origin, b"".join(self._lines))
