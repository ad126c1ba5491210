"""Whether an answer rests on its sources: every figure must stand in one, and sources it takes nothing from go."""

from __future__ import annotations

import re
from calendar import day_name
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import chain

from brain_pipeline.ask.figures import (
    Reading,
    claims,
    kinds_told,
    of_day,
    read_closely,
    weekdays,
    weekdays_of_days,
)
from brain_pipeline.ask.question import content_terms, facts_asked
from brain_pipeline.index.keywords import Passage
from brain_pipeline.index.terms import date_words, facts, terms
from brain_pipeline.records import Source

NOTHING_INDEXED: Mapping[str, Passage] = {}
_ENOUGH = 3  # terms that an answer shares with its main source, before the others are judged by theirs
_SHARE = 1 / 3
_NAME_ASKED = re.compile(r"\b(?:who|whom|whose|wer|wem|wen|quien|qui)\b|\bname", re.IGNORECASE)
_TODAY = re.compile(r"\b(?:today|tonight|heute|hoy|aujourd'hui)\b", re.IGNORECASE)
_CODE = re.compile(r"\b(?=\w*\d)(?=\w*[A-Z])\w{4,}\b|\b\d{4,}\b")


def unsupported(answer: str, question: str, sources: Sequence[Source], today: date) -> set[str]:
    """The numbers, times, days and amounts of an answer that stand in no form in a source or in the question."""
    resolved = " ".join([question, *content_terms(question, today)])  # with the year that "this year" is
    claimed = list(claims(answer))
    if _TODAY.search(answer):
        told = of_day(today) | {("part", Decimal(today.year))}
        claimed = [claim for claim in claimed if not claim[1] & told]
    # Texts are read until every figure was found, which the first of them mostly does.
    texts = chain.from_iterable(map(_held, sources))
    for held in chain(texts, read_closely(resolved, today)) if claimed else ():
        claimed = [claim for claim in claimed if not claim[1] & held]
        if not claimed:
            break
    return {figure for figure, _ in claimed} | _other_weekdays(answer, resolved, sources, today)


def _other_weekdays(answer: str, resolved: str, sources: Sequence[Source], today: date) -> set[str]:
    said = weekdays(answer)
    if not said:
        return set()
    texts = [f"{source.subject}\n{source.passage}" for source in sources]
    named = weekdays("\n".join([resolved, *texts]))
    sent = {source.day.weekday() for source in sources if source.day}
    others = said - named - sent
    if not others:
        return set()
    days = weekdays_of_days(resolved, today)
    days = days.union(*(weekdays_of_days(text, source.day) for text, source in zip(texts, sources, strict=True)))
    if not named and not days:  # where no day is told, a weekday contradicts nothing
        return set()
    return {day_name[day] for day in others - days}


def _held(source: Source) -> Iterator[set[Reading]]:
    if source.day:
        yield of_day(source.day) | {("part", Decimal(source.day.year))}
    yield from read_closely(f"{source.subject}\n{source.sender}\n{source.passage}", source.day)


def left_out(answer: str, question: str, quote: str) -> bool:
    """Whether the part of the mail that answers tells what the answer does not.

    That is a fact of the kind that is asked for, such as an amount, or, unless somebody's name is asked for, any day,
    time or amount where the answer has none.
    """
    asked, told, said = facts_asked(question), kinds_told(quote), kinds_told(answer)
    others = asked - {"_time", "_money"}
    if asked & told - said or others & set(facts(quote)) - set(facts(answer)):
        return True
    return bool(told) and not said and not _NAME_ASKED.search(question) and not _CODE.search(answer)


def resting(
    answer: str, question: str, sources: Sequence[Source], indexed: Mapping[str, Passage] = NOTHING_INDEXED
) -> tuple[Source, ...]:
    """The sources that an answer takes something from, in their order; all where that can't be told.

    Args:
        answer: as it would be given.
        question: whose words prove nothing.
        sources: what the answer was made from.
        indexed: what the keyword index has of them, by their ids, so that their terms need not be made again.
    """
    if len(sources) <= 1:
        return tuple(sources)
    said = set(content_terms(answer)) - set(content_terms(question))
    shared = [_shared(said, source, indexed.get(source.id)) for source in sources]
    most = max(shared)
    if most < _ENOUGH:
        return tuple(sources)
    return tuple(source for source, count in zip(sources, shared, strict=True) if count >= most * _SHARE)


def _shared(said: set[str], source: Source, indexed: Passage | None) -> int:
    """How many of the terms that are said a source holds."""
    if indexed is not None:
        return sum(map(indexed.holds, said))
    return len(said & {*terms(f"{source.subject}\n{source.sender}\n{date_words(source.day)}\n{source.passage}")})
