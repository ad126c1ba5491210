"""What counts as a term: text folded, split and stemmed the same way for mail and for questions."""

from __future__ import annotations

import re
import unicodedata
from calendar import day_name, month_name
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from itertools import pairwise

from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]

_MAX_LENGTH = 40  # longer runs are encoded attachments and tracking codes
_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # scripts that don't put spaces between words
_WORD = re.compile(
    rf"\d+(?:[.,:/]\d+)+|\d+(?:st|nd|rd|th)\b|\d+(?=[ap]m\b)|[{_CJK}]+|[^\W_{_CJK}]+(?:['\u2019][^\W_{_CJK}]+)*"
)
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_IDEOGRAPHS = re.compile(f"[{_CJK}]+")

_SHORT = {name[:3].casefold(): name.casefold() for name in (*month_name[1:], *day_name)} | {"sept": "september"}


def fold(text: str) -> str:
    """``text`` without case and diacritics: ``Jürgen`` and ``JURGEN`` are one."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char)).casefold()


def terms(text: str) -> list[str]:
    """The terms of ``text`` in order.

    A word is stemmed (English) and loses its possessive ending; months and weekdays are spelled out; an amount loses
    its thousands separators, a day its ``th`` and its leading zero; times, decimals and dates in figures (``3:45``,
    ``96.40``, ``10/22``) stay whole. Chinese and Japanese text counts by pairs of characters.
    """
    return [term for word in _WORD.findall(fold(text)) if len(word) <= _MAX_LENGTH for term in _terms(word)]


@lru_cache(maxsize=200_000)
def _terms(word: str) -> tuple[str, ...]:
    if word[0].isdigit():
        return (_number(word),)
    if _IDEOGRAPHS.fullmatch(word):
        return tuple(first + second for first, second in pairwise(word)) or (word,)
    base = re.split(r"['\u2019]", word, maxsplit=1)[0]
    # A stemmer keeps state, so threads can't share one.
    return (str(EnglishStemmer().stemWord(_SHORT.get(base, base))),)


def _number(word: str) -> str:
    figure = _ORDINAL.sub(r"\1", _THOUSANDS.sub("", word))
    return figure.lstrip("0") or "0" if figure.isdigit() else figure


def date_words(day: date | None) -> str:
    """A day in the words people ask with: ``2026-01-09 Friday 9 January 2026 1/9``; empty for None."""
    return f"{day:%Y-%m-%d %A} {day.day} {day:%B %Y} {day.month}/{day.day}" if day else ""


def day_terms(day: date) -> frozenset[str]:
    """What a text calls a day, as terms and phrases of terms: ``januari 9``, ``9 januari``, ``1/9``."""
    month, number = terms(f"{day:%B}")[0], str(day.day)
    return frozenset({f"{month} {number}", f"{number} {month}", f"{day.month}/{number}"})


_HELD = {
    "address": re.compile(
        r"\d\w*,? (?:\w+\.? ){0,3}(?:ave|avenue|blvd|boulevard|court|ct|drive|lane|ln|place|plaza|road|rd|street|way)\b"
        r"|\b[a-z]{2} \d{5}\b|\bbox \d|\w(?:stra(?:ss|ß)e|str\.|weg|platz) \d|\b(?:calle|rue|via) \w"
    ),
    "email": re.compile(r"\S@\w[\w-]*\.\w"),
    "phone": re.compile(r"\d{3}[-. /]\d{4}|\d{3}\)? ?\d{3}|\b(?:x|ext\.? ?)\d{2,5}\b|\+\d\d"),
    "money": re.compile(
        r"[$€£¥]\s?\d|\d\s?[$€£¥]|\d\s?(?:dollar|euro|pound|cent|usd|eur|gbp|chf|k)s?\b|\b\d+[.,]\d\d\b|\bfree\b"
    ),
    "time": re.compile(
        rf"\d\s?[ap]\.?m\b|\d[:.]\d\d|\d/\d|\d\d?\.\s?\d|\d(?:st|nd|rd|th)\b|\b(?:{'|'.join(_SHORT)})|\d{{4}}"
        r"|\bnoon\b|\bmidnight\b|\bto(?:day|morrow|night)\b|\b(?:day|week|month|year|hour|uhr)s?\b"
    ),
}


def facts(text: str) -> Iterator[str]:
    """Which kinds of fact stand in ``text``, as terms that no text can contain: ``_email``, ``_money`` and so on."""
    folded = fold(text)
    return (f"_{kind}" for kind, pattern in _HELD.items() if pattern.search(folded))
