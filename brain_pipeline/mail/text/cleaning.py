"""Characters that no reader sees, out."""

from __future__ import annotations

import re

from brain_pipeline.text import encodable

# Format characters, fillers that are drawn as nothing, and the tag and variation blocks that carry hidden messages.
# U+FE0E and U+FE0F stay: they choose between text and emoji and can't spell anything.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_LINE_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]")
_TRAILING_SPACE = re.compile(r"(?<![ \t])[ \t]+$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")


def clean(text: str) -> str:
    """``text`` in visible characters: one kind of line break and of space, no lone surrogates, at most one blank line.

    Zero-width and Unicode tag characters go, with all other invisible ones: they are how instructions are hidden.
    """
    text = _SPACES.sub(" ", visible(text))
    return _BLANK_LINES.sub("\n\n", _TRAILING_SPACE.sub("", text)).strip("\n")


def visible(text: str) -> str:
    """``text`` in visible characters and with one kind of line break, its layout untouched."""
    return encodable(_INVISIBLE.sub("", _LINE_BREAKS.sub("\n", text)))


def one_line(text: str) -> str:
    """``clean`` text in one line, with single spaces."""
    return " ".join(clean(text).split())
