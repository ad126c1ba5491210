"""Whether an answer rests on its sources: every figure must stand in one, and sources it takes nothing from go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from brain_pipeline.ask.question import content_terms
from brain_pipeline.index.terms import date_words, terms
from brain_pipeline.records import Source

_FIGURE = re.compile(r"\d+(?:[.,:/]\d+)*")
_EMPTY_CENTS = re.compile(r"[.:]00$")
_ENOUGH = 3  # terms that an answer shares with its main source, before the others are judged by theirs
_SHARE = 1 / 3


def _figures(text: str) -> set[str]:
    """The numbers of a text, whole and in parts: ``$1,180.00`` is 1180, ``5/9`` is 5 and 9, ``2:00`` is 2."""
    found: set[str] = set()
    for figure in _FIGURE.findall(text):
        plain = _EMPTY_CENTS.sub("", figure.replace(",", "")) if re.search(r",\d{3}(?!\d)", figure) else figure
        plain = _EMPTY_CENTS.sub("", plain)
        found |= {plain, *re.split(r"[.,:/]", plain)}
    return {figure.lstrip("0") or "0" for figure in found}


def _told(source: Source) -> str:
    return f"{source.subject}\n{source.sender}\n{date_words(source.day)}\n{source.passage}"


def unsupported(answer: str, question: str, sources: Sequence[Source], today: date) -> set[str]:
    """The numbers, dates and amounts of an answer that stand neither in a source nor in the question."""
    known = _figures("\n".join([question, date_words(today), *map(_told, sources)]))
    # An hour may be told by another clock.
    known |= {str(int(hour) + 12) for hour in known if hour.isdecimal() and int(hour) < 12}  # noqa: PLR2004
    return {figure for figure in _FIGURE.findall(answer) if not _figures(figure) & known}


def resting(answer: str, question: str, sources: Sequence[Source]) -> tuple[Source, ...]:
    """The sources that an answer takes something from, in their order; all where that can't be told."""
    said = set(content_terms(answer)) - set(content_terms(question))
    shared = [len(said & set(terms(_told(source)))) for source in sources]
    most = max(shared, default=0)
    if most < _ENOUGH:
        return tuple(sources)
    return tuple(source for source, count in zip(sources, shared, strict=True) if count >= most * _SHARE)
