"""The parts of a message: one pass over its bytes, without recursion, however deep and however broken it is."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

from brain_pipeline.mail import transfer
from brain_pipeline.mail.charset import decode
from brain_pipeline.mail.headers import Headers, charset_of, decode_words, parameters, read_block

_MEDIA_TYPE = re.compile(r"([\w.+-]+)/([\w.+-]+)")
_GUESSED_BOUNDARY = re.compile(
    rb"^--([^\r\n]{1,200}?)[ \t]*\r?\n(?:[ \t]*\r?\n)?Content-", re.MULTILINE | re.IGNORECASE
)
_LEADING_BLANKS = re.compile(rb"(?:[ \t]*\r?\n)+")
_ENCODING = re.compile(r"[a-z0-9-]+")
_ENCODED = frozenset({"base64", "quoted-printable", "uuencode", "x-uuencode", "x-uue", "uue"})


@dataclass(slots=True)
class Part:
    """One part of a message: its header and where its body lies in ``data``.

    ``media_type`` is in lower case, with ``text/plain`` for what is missing or senseless. ``children`` are the parts of
    a multipart, or the message within a ``message/rfc822``.
    """

    data: bytes
    headers: Headers
    media_type: str
    params: dict[str, str]
    start: int
    stop: int
    children: list[Part] = field(default_factory=list)
    boundary: bytes = b""
    first_delimiter: int = -1
    epilogue: int = -1

    @property
    def is_multipart(self) -> bool:
        """Whether the body is cut into parts; a multipart in which no delimiter was found is plain text."""
        return self.media_type.startswith("multipart/")

    @property
    def is_message(self) -> bool:
        """Whether the body is a message of its own, or the first piece of one."""
        first_of_several = self.media_type == "message/partial" and self.params.get("number") == "1"
        return first_of_several or self.media_type in {"message/rfc822", "message/global", "message/news"}

    @property
    def encoding(self) -> str:
        """The ``Content-Transfer-Encoding`` in lower case without junk."""
        found = _ENCODING.match(self.headers.text("content-transfer-encoding").strip().strip("\"'").lower())
        return found[0] if found else ""

    @property
    def charset(self) -> str | None:
        """The declared charset, when it is one."""
        return charset_of(self.params)

    @property
    def disposition(self) -> str:
        """``attachment``, ``inline`` or whatever the sender wrote."""
        return parameters(self.headers.text("content-disposition"))[0]

    @property
    def filename(self) -> str:
        """The attachment's name without folders, decoded; empty when it has none."""
        for header, name in (("content-disposition", "filename"), ("content-type", "name")):
            found = parameters(decode(self.headers.raw(header), None))[1].get(name, "")
            if bare := re.split(r"[/\\]", decode_words(found))[-1].strip():
                return bare
        return ""

    def content(self) -> bytes:
        """The body with its transfer encoding undone."""
        return transfer.undo(self.data[self.start : self.stop], self.encoding, is_text=self.media_type[:5] == "text/")

    def outside(self) -> bytes:
        """What stands before the first and after the last delimiter of a multipart."""
        if self.first_delimiter < 0:
            return self.data[self.start : self.stop]
        after = self.data[self.epilogue : self.stop] if self.epilogue >= 0 else b""
        return self.data[self.start : self.first_delimiter] + b"\n" + after


def parse(raw: bytes) -> Part:
    """The message in ``raw``. Any bytes are a message, if only one of plain text."""
    data = _normalise(raw)
    return _Scan(data).run()


def _normalise(raw: bytes) -> bytes:
    """Without byte order mark and leading blank lines, with LF in every line end, and never in UTF-16."""
    for mark, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if raw.startswith(mark):
            raw = raw.decode(codec, "replace").encode("utf-8")
    raw = raw.removeprefix(codecs.BOM_UTF8)
    if b"\n" not in raw:
        raw = raw.replace(b"\r", b"\n")
    blanks = _LEADING_BLANKS.match(raw)
    return raw[blanks.end() :] if blanks else raw


class _Scan:
    """The one pass. ``_open`` is the chain of parts that the scan is inside, outermost first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._open: list[Part] = []
        self._levels: dict[bytes, list[int]] = {}

    def run(self) -> Part:
        self._enter(0, parent=None)
        root = self._open[0]
        position = max(self._open[-1].start - 1, 0)
        while (found := self._next_delimiter(position)) is not None:
            start, end, boundary, closing = found
            position = self._at_delimiter(start, end, boundary, closing=closing)
        self._close_down_to(0, len(self._data))
        return root

    def _enter(self, position: int, parent: Part | None) -> None:
        """Read the part that begins at ``position``, and the messages that it consists of."""
        while True:
            headers, start = read_block(self._data, position, self._delimiter)
            part = self._part(headers, start, parent)
            if parent is not None:
                parent.children.append(part)
            self._open.append(part)
            if part.is_multipart:
                self._find_boundary(part)
            if not part.is_message or part.encoding in _ENCODED:
                return
            position, parent = self._skip_blank_lines(start), part

    def _part(self, headers: Headers, start: int, parent: Part | None) -> Part:
        media_type = ""
        params: dict[str, str] = {}
        for value in headers.all("content-type"):
            token, params = parameters(decode(value))
            if found := _MEDIA_TYPE.match(token):
                media_type = found[0]
                break
        else:
            in_digest = (
                parent is not None and parent.media_type == "multipart/digest" and not headers.raw("content-type")
            )
            media_type = "message/rfc822" if in_digest else "text/plain"
        return Part(self._data, headers, media_type, params, start, start)

    def _skip_blank_lines(self, position: int) -> int:
        blanks = _LEADING_BLANKS.match(self._data, position)
        return blanks.end() if blanks else position

    def _find_boundary(self, part: Part) -> None:
        boundary = part.params.get("boundary", "").encode("utf-8", "replace").rstrip()
        if not boundary or self._data.find(b"--" + boundary, part.start) < 0:
            guess = _GUESSED_BOUNDARY.search(self._data, part.start)
            boundary = guess[1] if guess and guess[1] not in self._levels else b""
        if boundary:
            part.boundary = boundary
            self._levels.setdefault(boundary, []).append(len(self._open) - 1)

    def _delimiter(self, line: bytes) -> tuple[bytes, bool] | None:
        """The open boundary that ``line`` stands for, and whether it closes."""
        name = line[2:].rstrip()
        if self._levels.get(name):
            return name, False
        if name.endswith(b"--") and self._levels.get(name[:-2]):
            return name[:-2], True
        return None

    def _next_delimiter(self, position: int) -> tuple[int, int, bytes, bool] | None:
        data = self._data
        if not self._levels:
            return None
        while True:
            at_start = position == 0 and data.startswith(b"--")
            start = 0 if at_start else data.find(b"\n--", position) + 1
            if not start and not at_start:
                return None
            end = data.find(b"\n", start) + 1 or len(data)
            if found := self._delimiter(data[start:end]):
                return start, end, *found
            position = end - 1

    def _at_delimiter(self, start: int, end: int, boundary: bytes, *, closing: bool) -> int:
        """End what the delimiter ends, begin what it begins; where to search on."""
        levels = self._levels[boundary]
        level = levels[-1]
        before = start - 1 if start else 0
        if before and self._data[before - 1 : before] == b"\r":
            before -= 1
        self._close_down_to(level + 1, before)
        container = self._open[level]
        if container.first_delimiter < 0:
            container.first_delimiter = before
        if not closing:
            container.epilogue = -1
            self._enter(end, container)
            return max(self._open[-1].start - 1, end - 1)
        container.epilogue = end
        if len(levels) > 1:
            # Nested parts that share a boundary: the closing delimiter is the inner one's.
            self._close_down_to(level, before)
        return end - 1

    def _close_down_to(self, level: int, position: int) -> None:
        for part in self._open[level:]:
            part.stop = max(position, part.start)
            if part.boundary:
                self._levels[part.boundary].pop()
        del self._open[level:]
