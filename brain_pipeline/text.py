"""Text that can be stored, sent and printed."""

from __future__ import annotations

import re

_SURROGATES = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """``text`` without lone surrogates, which the command line makes of bytes that are no text."""
    return _SURROGATES.sub("\ufffd", text)
