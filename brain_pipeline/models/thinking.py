"""Takes the reasoning out of a reasoning model's answer."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"<think>.*?</think>\s*", re.DOTALL)
_BEGUN_TAG = re.compile(r"</?t?h?i?n?k?\Z")


def strip_thinking(text: str, *, finished: bool = True) -> str:
    """``text`` without its ``<think>`` blocks and the white space before what remains.

    A block that the model never ended is the whole answer, so nothing remains. Some chat templates write the opening
    tag themselves; then everything before the closing tag is reasoning. Of an answer that is not ``finished``, what may
    yet turn out to be reasoning is left out too.
    """
    said = _BLOCK.sub("", text).rpartition("</think>")[2].lstrip()
    before, tag, _ = said.partition("<think>")
    if tag and (not before or not finished):
        return before
    return said if finished else _BEGUN_TAG.sub("", said)
