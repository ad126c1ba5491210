"""Header blocks: lines, encoded words (RFC 2047), parameters (RFC 2231) and addresses (RFC 5322), all forgiving.

The standard library's parsers give up at the first odd line or raise on it; these read on, in time linear in the size.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote_to_bytes

from brain_pipeline.mail.charset import codec_of, decode

_FIELD = re.compile(rb"([!-9;-~]+)[ \t]*:(.*)", re.DOTALL)
_KNOWN_FIELD = re.compile(
    rb"(?:x-[\w-]+|content-[\w-]+|list-[\w-]+|resent-[\w-]+|arc-[\w-]+|received(?:-spf)?|from|to|cc|bcc|subject|date"
    rb"|sender|reply-to|return-path|message-id|in-reply-to|references|mime-version|delivered-to|dkim-signature"
    rb"|authentication-results|organi[sz]ation|user-agent|precedence|status|importance|priority|errors-to|apparently-to"
    rb"|auto-submitted|thread-topic|thread-index|reporting-mta|final-recipient|original-recipient|newsgroups"
    rb"|disposition|envelope-to|envelope-from|lines|keywords|comments)[ \t]*:",
    re.IGNORECASE,
)
_LOOK_AHEAD = 4_096
_MAX_PARAMETERS = 16_384
_WORD = re.compile(r"=\?([\w.:+-]{1,40})(?:\*[\w-]*)?\?([bBqQ])\?")
_HEX = re.compile(r"[0-9A-Fa-f]{2}")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]")
_PARAMETER = re.compile(r'[;\s]([^\s;="()<>]+) ?= ?(?:"((?:[^"\\]|\\.)*)"?|([^;]*?)(?= ?;| ?$| [\w*-]+ ?=))')
_SEGMENT = re.compile(r"([^*]+)\*(?:(\d+)(\*)?)?$")
_ADDRESS_TOKEN = re.compile(
    r'(?P<word>=\?[^?\s]+\?[bBqQ]\?[^?]*\?=)|"(?P<quoted>(?:[^"\\]|\\.)*)"?(?P<domain>@[^\s<>(),;:"]+)?'
    r"|<(?P<angle>[^<>]*)>?|(?P<comment>\()"
    r'|(?P<mark>[,;:])|(?P<text>(?:(?!=\?)[^"<(,;:])+|.)',
    re.DOTALL,
)
_PAREN = re.compile(r"\\.|[()]", re.DOTALL)
_DOMAIN = re.compile(r"@* ?(?:[^\s<>()\",;:@.\[]+(?: ?\. ?[^\s<>()\",;:@.]+)*|\[[^\]\s]*\])")
_BETWEEN_WORDS = re.compile(r"[\s<>()\",;:]")


class Headers:
    """The fields of one header block, in order, as raw unfolded bytes."""

    __slots__ = ("_fields",)

    def __init__(self, fields: list[tuple[str, bytes]]) -> None:
        self._fields = fields

    def __bool__(self) -> bool:
        return bool(self._fields)

    def all(self, name: str) -> Iterator[bytes]:
        """Every value of the field ``name`` (in lower case)."""
        return (value for field, value in self._fields if field == name)

    def raw(self, name: str) -> bytes:
        """The first value of ``name`` that is not empty."""
        return next((value for value in self.all(name) if value.strip()), b"")

    def text(self, name: str, charset: str | None = None) -> str:
        """That value decoded; ``charset`` is the guess for undeclared 8-bit bytes."""
        return decode_words(decode(self.raw(name), charset))


def read_block(data: bytes, start: int, is_delimiter: Callable[[bytes], object]) -> tuple[Headers, int]:
    """The header block of ``data`` at ``start``, and where the body begins.

    Lines that are no header are passed over when a known header follows, and begin the body otherwise. A block without
    any known field is no header block: text that merely has a colon in its first line stays text.
    """
    fields: list[tuple[str, list[bytes]]] = []
    position = start
    known = False
    while position < len(data):
        end = data.find(b"\n", position) + 1 or len(data)
        line = data[position:end].rstrip(b"\r\n")
        if line.startswith(b"--") and is_delimiter(line):
            break
        if not line.strip():
            if not line or not _continues(data, end):
                position = end
                break
        elif line[:1] in b" \t" and fields:
            fields[-1][1].append(line.strip())
        elif field := _FIELD.match(line):
            known = known or bool(_KNOWN_FIELD.match(line))
            fields.append((field[1].decode("ascii").lower(), [field[2].strip()]))
        elif not _junk(data, position, end, first=position == start):
            break
        position = end
    if fields and not known:
        return Headers([]), start
    return Headers([(name, b" ".join(lines)) for name, lines in fields]), position


def _continues(data: bytes, position: int) -> bool:
    """Whether the block goes on after a line of nothing but spaces."""
    return bool(_KNOWN_FIELD.match(data, position))


def _junk(data: bytes, position: int, end: int, *, first: bool) -> bool:
    """Whether a line that is no header stands among headers."""
    if first and data.startswith((b"From ", b">From "), position):
        return True
    rest = data[end : end + _LOOK_AHEAD]
    block = re.split(rb"\r?\n[ \t]*\r?\n", rest, maxsplit=1)[0]
    return any(_KNOWN_FIELD.match(line) for line in block.split(b"\n"))


def decode_words(text: str) -> str:
    """``text`` with its encoded words decoded, however they are mutilated.

    Adjacent words join without the space between them, and characters split over words of one charset are mended.
    """
    decoded = _decode_words_once(text)
    if decoded is not text and _WORD.match(decoded) and decoded.endswith("?="):
        return _decode_words_once(decoded)
    return decoded


def _decode_words_once(text: str) -> str:
    pieces: list[str] = []
    run, run_charset = b"", ""
    position = 0
    while (word := _WORD.search(text, position)) and (end := _end_of_word(text, word)) is not None:
        gap = text[position : word.start()]
        charset = word[1].lower()
        joins = bool(run_charset) and not gap.strip()
        if not (joins and charset == run_charset):
            pieces.append(decode(run, run_charset))
            run = b""
            if not joins:
                pieces.append(gap)
        run += _decode_word(text[word.end() : end], word[2])
        run_charset = charset
        position = end + 2
    if not position:
        return text
    return "".join([*pieces, decode(run, run_charset), text[position:]])


def _end_of_word(text: str, word: re.Match[str]) -> int | None:
    """Where the word's text ends: at ``?=``, or at the end of ``text`` when that was cut off."""
    end = text.find("?=", word.end())
    while end >= 0 and word[2] in "qQ" and _HEX.match(text, end + 2):
        # A question mark that was not encoded, before an encoded byte: "Who?=20me?=".
        later = text.find("?=", end + 2)
        if later < 0 or "=?" in text[end + 2 : later]:
            break
        end = later
    if end >= 0:
        return end
    return None if " " in text[word.end() :] else len(text)


def _decode_word(encoded: str, encoding: str) -> bytes:
    raw = encoded.encode("utf-8", "replace")
    if encoding in "qQ":
        return binascii.a2b_qp(raw, header=True)
    return decode_base64(encoded)


def decode_base64(text: str) -> bytes:
    """Base64 without regard to padding, foreign characters and the URL-safe alphabet."""
    digits = _NOT_BASE64.sub("", text.replace("-", "+").replace("_", "/"))
    if len(digits) % 4 == 1:
        digits = digits[:-1]
    return binascii.a2b_base64(digits + "=" * (-len(digits) % 4))


def parameters(value: str) -> tuple[str, dict[str, str]]:
    """A structured value such as ``text/html; charset=x`` as its first token in lower case and its parameters."""
    value = " ".join(value[:_MAX_PARAMETERS].split())
    token, *_ = re.split(r"[;\s]", value.strip(), maxsplit=1)
    found: dict[str, str] = {}
    segments: dict[str, list[tuple[int, bool, str]]] = {}
    for name, quoted, plain in _PARAMETER.findall(value[len(token) :]):
        content = re.sub(r"\\(.)", r"\1", quoted) if quoted else plain.strip()
        if segment := _SEGMENT.match(name):
            index, starred = segment[2], segment[3]
            encoded = index is None or bool(starred)
            segments.setdefault(segment[1].lower(), []).append((int((index or "0")[:6]), encoded, content))
        else:
            found.setdefault(name.lower(), decode_words(content))
    for name, parts in segments.items():
        found[name] = _join_segments(sorted(parts))
    return token.lower(), found


def _join_segments(parts: list[tuple[int, bool, str]]) -> str:
    charset = ""
    joined = b""
    for position, (_, encoded, content) in enumerate(parts):
        rest = content
        if encoded and not position and rest.count("'") >= 2:  # noqa: PLR2004  (charset'language'text)
            charset, _, rest = rest.split("'", 2)
        joined += unquote_to_bytes(rest) if encoded else rest.encode("utf-8", "replace")
    return decode_words(decode(joined, charset))


def charset_of(params: dict[str, str]) -> str | None:
    """The ``charset`` parameter when it names a charset."""
    label = params.get("charset")
    return label if codec_of(label) else None


def addresses(text: str) -> list[tuple[str, str]]:
    """The ``(name, address)`` pairs of an address field; groups are opened, what is no address has an empty one."""
    found: list[tuple[str, str]] = []
    entry = _Entry()
    position = 0
    while position < len(text) and (token := _ADDRESS_TOKEN.match(text, position)):
        position = token.end()
        if token["mark"]:
            if token["mark"] != ":" or entry.has_address:
                found.extend(entry.finish())
            entry = _Entry()
        elif token["comment"]:
            position = _end_of_comment(text, position)
            entry.comments.append(text[token.end() : position - 1])
        elif token["angle"] is not None:
            entry.add_angle(token["angle"])
        elif token["quoted"] is not None:
            entry.add_quoted(token["quoted"], token["domain"])
        else:
            entry.words.append(token[0])
    return found + entry.finish()


def _end_of_comment(text: str, position: int) -> int:
    depth = 1
    for paren in _PAREN.finditer(text, position):
        depth += {"(": 1, ")": -1}.get(paren[0], 0)
        if not depth:
            return paren.end()
    return len(text) + 1


class _Entry:
    """What is known of one address while it is read."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.comments: list[str] = []
        self.address = ""
        self._bracketed = False

    @property
    def has_address(self) -> bool:
        return self._bracketed or any("@" in word for word in self.words)

    def add_angle(self, content: str) -> None:
        """What stands in angle brackets: without route, spaces, comments and ``mailto:``."""
        self._bracketed = True
        bare = re.sub(r"\([^()]*\)", "", decode_words(content))
        if "[" not in bare:
            bare = bare.rpartition(":")[2]
        bare = "".join(bare.split()).strip("'\"")
        if not self.address and "@" in bare.strip("@"):
            self.address = bare

    def add_quoted(self, content: str, domain: str | None) -> None:
        unescaped = re.sub(r"\\(.)", r"\1", content, flags=re.DOTALL)
        if domain and not self.address:
            self.address = (f'"{unescaped}"' if " " in unescaped else unescaped) + domain
        else:
            self.words.append(unescaped)

    def finish(self) -> list[tuple[str, str]]:
        plain = " ".join("".join(self.words).split())
        if not self.address:
            self.address, plain = _find_address(plain)
        name = decode_words(plain) or decode_words(" ".join(self.comments))
        if not self.address and "@" in name and name != plain:
            return addresses(name)
        name = " ".join(name.strip(" '\"<>").split())
        if not any(character.isalnum() for character in name):
            name = ""
        return [(name, self.address)] if name or self.address else []


def _find_address(text: str) -> tuple[str, str]:
    """The address that stands bare in ``text``, and the rest; both spaces and doubled signs are forgiven."""
    at = text.find("@")
    domain = _DOMAIN.match(text, at + 1) if at > 0 else None
    before = text[:at].rstrip()
    local = _BETWEEN_WORDS.split(before)[-1].strip("'")
    if not domain or not local:
        return "", text
    rest = f"{before[: len(before) - len(local)]} {text[domain.end() :]}"
    return f"{local}@{domain[0]}".replace(" ", "").strip("'"), " ".join(rest.split())
