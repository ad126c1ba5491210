"""The plain text formats: flowed (RFC 3676) and enriched (RFC 1896)."""

from __future__ import annotations

import re

_QUOTE_MARKS = re.compile(r">*")
_ENRICHED_PARAM = re.compile(r"<param>.{0,300}?</param>", re.IGNORECASE | re.DOTALL)
_ENRICHED_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9-]{0,60}>")


def unflow(text: str, *, delsp: bool = False) -> str:
    """``format=flowed`` text with its paragraphs joined; ``delsp`` drops the space that marks a soft line break."""
    paragraphs: list[list[str]] = []
    open_depth = -1
    for line in text.splitlines():
        marks = _QUOTE_MARKS.match(line)
        depth = marks.end() if marks else 0
        content = line[depth:].removeprefix(" ")
        flows = content.endswith(" ") and content != "-- "
        if flows and delsp:
            content = content[:-1]
        if depth == open_depth and content != "-- ":
            paragraphs[-1].append(content)
        else:
            paragraphs.append([f"{'>' * depth} ", content] if depth else [content])
        open_depth = depth if flows else -1
    return "\n".join("".join(pieces) for pieces in paragraphs)


def strip_enriched(text: str) -> str:
    """``text/enriched`` and ``text/richtext`` without their commands."""
    bare = _ENRICHED_TAG.sub("", _ENRICHED_PARAM.sub("", text)).replace("<<", "<")
    return re.sub(r"(?<!\n)\n(?!\n)", " ", bare).replace("\n\n", "\n")
