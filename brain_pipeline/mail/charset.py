"""Bytes to text, whatever the sender said of them."""

from __future__ import annotations

import codecs
import re

import chardet

# Labels that mean more than they say (https://encoding.spec.whatwg.org/#names-and-labels) or that Python does not know.
_SUPERSETS = {
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "iso2022_jp": "iso2022_jp_ext",
    "big5": "cp950",
}
_ALIASES = {
    "ansi": "cp1252",
    "iso-8859-8-i": "iso8859-8",
    "iso-8859-6-i": "iso8859-6",
    "ks_c_5601-1987": "cp949",
    "ks_c_5601": "cp949",
    "unicode-1-1-utf-7": "utf-7",
    "unicode-1-1-utf-8": "utf-8",
    "utf8mb4": "utf-8",
    "x-gbk": "gb18030",
    "x-euc-jp": "euc_jp",
    "x-euc-kr": "cp949",
    "x-sjis": "cp932",
    "x-mac-roman": "mac_roman",
    "macintosh": "mac_roman",
    "x-mac-cyrillic": "mac_cyrillic",
    "windows-874": "cp874",
}
# Text codecs of Python that are no charsets of mail.
_NOT_CHARSETS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"})
_ESCAPING = frozenset({"iso2022_jp_ext", "iso2022_jp_2", "iso2022_jp_1", "iso2022_jp_3", "iso2022_kr", "hz", "utf-7"})
_EAST_ASIAN = frozenset({"gb18030", "cp949", "cp932", "cp950", "big5hkscs", "euc_jp", "johab"})
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ERAS = chardet.EncodingEra.MODERN_WEB | chardet.EncodingEra.LEGACY_ISO
_SAMPLE = 65_536
_THREE_BYTES_OF_UTF8 = re.compile(rb"[\xe0-\xf4][\x80-\xbf]{2}")
_LETTERS = re.compile(rb"[A-Za-z]")
_HIGH = re.compile(rb"[\x80-\xff]")
_UNDECODED = re.compile("[\udc80-\udcff]+")


def codec_of(label: str | None) -> str | None:
    """The Python codec of a charset label, widened to its superset; None when the label names none."""
    if not label:
        return None
    name = re.sub(r"[^\w.:+-]", "", label).lower()
    try:
        codec = codecs.lookup(_ALIASES.get(name, name)).name
    except (LookupError, ValueError):
        return None
    return None if codec in _NOT_CHARSETS else _SUPERSETS.get(codec, codec)


def decode(data: bytes, declared: str | None = None) -> str:
    """``data`` as text.

    A byte order mark wins, then valid UTF-8 (hardly anything else is valid by accident), then the ``declared`` charset
    if the bytes agree, then detection. Never raises; a byte that means nothing becomes U+FFFD.
    """
    for mark, codec in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(codec, "replace")
    codec_named = codec_of(declared)
    if data.isascii():
        return _decode_ascii(data, codec_named)
    if wide := _wide_codec(data, codec_named):
        return data.decode(wide, "replace")
    return _as_utf8(data, codec_named) or _as_declared(data, codec_named) or _as_mixed_utf8(data) or _as_detected(data)


def _strict(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except (UnicodeError, LookupError):
        return None


def _decode_ascii(data: bytes, codec: str | None) -> str:
    if b"\0" in data and (wide := _wide_codec(data, codec)):
        return data.decode(wide, "replace")
    if b"\x1b$" in data or b"\x1b(" in data:
        return data.decode(codec if codec in _ESCAPING else "iso2022_jp_ext", "replace")
    if codec in _ESCAPING:
        return _strict(data, codec) or data.decode("ascii")
    return data.decode("ascii")


def _wide_codec(data: bytes, codec: str | None) -> str | None:
    """UTF-16 or UTF-32, when it is declared or every other byte is NUL as in Western text."""
    if codec and codec.startswith(("utf-16", "utf-32")) and len(data) % 2 == 0:
        return f"{codec}-be" if codec in {"utf-16", "utf-32"} and data[:1] == b"\0" else codec
    sample = data[:_SAMPLE]
    if sample.count(0) * 5 < len(sample) * 2 or len(sample) < 4:  # noqa: PLR2004  (two characters)
        return None
    return "utf-16-be" if sample[::2].count(0) > sample[1::2].count(0) else "utf-16-le"


def _as_utf8(data: bytes, codec: str | None) -> str | None:
    """Valid UTF-8; two-byte sequences alone prove nothing against a declared East Asian charset."""
    text = _strict(data, "utf-8")
    if text is not None and codec in _EAST_ASIAN and not _THREE_BYTES_OF_UTF8.search(data):
        return _strict(data, codec) or text
    return text


def _as_declared(data: bytes, codec: str | None) -> str | None:
    if codec in {None, "ascii", "utf-8"} or (codec == "cp1252" and _looks_foreign(data)):
        return None
    text = _strict(data, codec)
    if text is None and codec == "cp950":
        text = _strict(data, "big5hkscs")
    if text is None and codec in _EAST_ASIAN:
        text = data.decode(codec, "replace")
        # A few broken characters are a transport's fault; many mean that the label is wrong.
        return text if text.count("\ufffd") * 20 < len(text) else None
    return text


def _as_mixed_utf8(data: bytes) -> str | None:
    """Mostly UTF-8 with some Windows-1252 bytes between, as when a footer was pasted in."""
    text = data.decode("utf-8", "surrogateescape")
    stray = sum(len(run) for run in _UNDECODED.findall(text))
    if stray * 2 > sum(not character.isascii() for character in text) - stray:
        return None
    return _UNDECODED.sub(lambda run: run.group().encode("utf-8", "surrogateescape").decode("cp1252", "replace"), text)


def _share_of_high_bytes(data: bytes) -> float:
    high = len(_HIGH.findall(data))
    return high / (high + len(_LETTERS.findall(data)))


def _looks_foreign(data: bytes) -> bool:
    """Whether most letters are outside ASCII, as in no language that is written in Latin-1."""
    sample = data[:_SAMPLE]
    return len(_HIGH.findall(sample)) >= 6 and _share_of_high_bytes(sample) > 0.6  # noqa: PLR2004  (a short word)


def _as_detected(data: bytes) -> str:
    sample = data[:_SAMPLE]
    guess = chardet.detect(sample, encoding_era=_ERAS, prefer_superset=True)
    codec = codec_of(guess["encoding"]) or "cp1252"
    # On a few accented letters among many plain ones the detector guesses wildly; Western Europe is the better bet.
    latin = codec in {"cp1250", "iso8859-2", "cp1254", "cp1257"} and (guess["confidence"] or 0) > 0.03  # noqa: PLR2004
    if _share_of_high_bytes(sample) < 0.4 and not latin and codec not in _EAST_ASIAN:  # noqa: PLR2004
        codec = "cp1252"
    return data.decode(codec, "replace")
