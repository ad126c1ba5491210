"""Whether an answer rests on its sources: every figure must stand in one, and sources it takes nothing from go."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from brain_pipeline.ask.figures import Reading, claims, known
from brain_pipeline.ask.question import content_terms
from brain_pipeline.index.terms import date_words, terms
from brain_pipeline.records import Source

_ENOUGH = 3  # terms that an answer shares with its main source, before the others are judged by theirs
_SHARE = 1 / 3


def _told(source: Source) -> str:
    return f"{source.subject}\n{source.sender}\n{date_words(source.day)}\n{source.passage}"


def unsupported(answer: str, question: str, sources: Sequence[Source], today: date) -> set[str]:
    """The numbers, times, days and amounts of an answer that stand in no form in a source or in the question."""
    resolved = " ".join([question, *content_terms(question, today)])  # with the year that "this year" is
    held = known(resolved, today).union(*map(_held, sources))
    return {figure for figure, readings in claims(answer) if not readings & held}


def _held(source: Source) -> set[Reading]:
    year = {("part", Decimal(source.day.year))} if source.day else set()
    return known(f"{source.subject}\n{source.sender}\n{source.passage}", source.day) | year


def resting(answer: str, question: str, sources: Sequence[Source]) -> tuple[Source, ...]:
    """The sources that an answer takes something from, in their order; all where that can't be told."""
    said = set(content_terms(answer)) - set(content_terms(question))
    shared = [len(said & set(terms(_told(source)))) for source in sources]
    most = max(shared, default=0)
    if most < _ENOUGH:
        return tuple(sources)
    return tuple(source for source, count in zip(sources, shared, strict=True) if count >= most * _SHARE)
