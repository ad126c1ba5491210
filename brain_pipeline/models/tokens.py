"""How long a text is for an embedding model."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer

_REMEMBERED = 20_000  # words of long lines, and the lines that every mail of a sender ends with
TOKENIZER_FILE = Path(__file__).with_name("data") / "tokenizer.json"


@lru_cache(maxsize=1)
def token_counter() -> Callable[[str], int]:
    """Counts tokens as BERT does, which both all-MiniLM-L6-v2 and nomic-embed-text split text like."""
    tokenizer = Tokenizer.from_file(str(TOKENIZER_FILE))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    @lru_cache(maxsize=_REMEMBERED)
    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return count
