"""What counts as a term: text folded, split and stemmed the same way for mail and for questions."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from functools import lru_cache

from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]

_MAX_LENGTH = 40  # longer runs are encoded attachments and tracking codes
_WORD = re.compile(r"\d+(?:[.,:/]\d+)+|[^\W_]+(?:['\u2019][^\W_]+)*")
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")


def fold(text: str) -> str:
    """``text`` without case and diacritics: ``Jürgen`` and ``JURGEN`` are one."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def terms(text: str) -> list[str]:
    """The terms of ``text`` in order.

    A word is stemmed (English), a possessive or contraction loses its ending, an amount its thousands separators;
    times, decimals and dates in figures (``3:45``, ``96.40``, ``10/22``) stay whole.
    """
    return [term for word in _WORD.findall(fold(text)) if len(word) <= _MAX_LENGTH for term in (_term(word),) if term]


@lru_cache(maxsize=200_000)
def _term(word: str) -> str:
    if word[0].isdigit():
        return _THOUSANDS.sub("", word)
    base = re.split(r"['\u2019]", word, maxsplit=1)[0]
    return str(EnglishStemmer().stemWord(base))  # a stemmer keeps state, so threads can't share one


def date_words(day: date | None) -> str:
    """A day in the words people ask with: ``2026-01-09 Friday 9 January 2026 1/9``; empty for None."""
    return f"{day:%Y-%m-%d %A} {day.day} {day:%B %Y} {day.month}/{day.day}" if day else ""
