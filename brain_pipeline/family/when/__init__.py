"""From the words for a time in a question to the days that they mean.

Weeks are whole: "this week" is all of it, "this weekend" its Saturday and Sunday, "in two weeks" the week that is two
weeks ahead. "Friday" is the coming one, today included, "next Friday" that of next week, "last Friday" the one before
today. A day or a month without a year is the coming one, unless one was in the last 60 days.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from brain_pipeline.family.when.days import Days, Today, WeekStart, shifted
from brain_pipeline.family.when.rules import Span, spans
from brain_pipeline.family.when.words import in_english
from brain_pipeline.index.terms import fold

__all__ = ["WeekStart", "Window", "asks_when", "resolve"]

AFTER = 14  # days that "after Friday" looks ahead

Named = Callable[[], Sequence[tuple[str, date, date]]]

_HOURS = {"morning": (0, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (17, 24)}
_PART = rf"\s?(?:in the |at |um )?(?P<part>{'|'.join(_HOURS)})\b"
_PART_AFTER, _PART_WITHIN = re.compile(_PART), re.compile(rf"(?P<part>{'|'.join(_HOURS)})$")
_TO = re.compile(
    r"\s?(?:[-–]|,?\s?\b(?:and|or|to|until|till|through|thru|bis|und|y|et|al?|hasta|au)\b)\s?(?:(?:the|zum|el|le)\s)?"
)
_FROM = re.compile(r"\b(?:between|from|zwischen|von|vom|entre|desde|del?|du)\s(?:the\s)?\Z")
_EDGE = re.compile(
    r"\b(?P<word>before|by|until|till|up to|after|since|week (?:of|beginning|starting)|weekend of"
    r"|days? before|days? after|week before|week after|the eve of"
    r"|early|beginning|start|mid|middle|late|end|anfang|mitte|ende)(?: in| of)?(?:[\s-](?:the|our|on))*[\s-]\Z"
)
_EDGE_WITHIN = re.compile(r"(?P<word>before|by|until|till|after|since|early|mid|late)\b")
_UP_TO = ("before", "by", "until", "till", "up to")
_LEADING_UP = 30  # days that "before" means of a day that is over
_WHEN = re.compile(
    r"\bwhen\b|\bwhat (?:day|date|time)\b|\bwhich (?:day|date)\b|\bhow (?:long|many days) until\b|\bwann\b|\bcuando\b"
    r"|\bquand\b|\ban welchem tag\b"
)
_CUE = re.compile(r"\b(?:before|after|during|over|until|till|by|since|in|on|at|for)\s")
_NAMED_CUE = re.compile(rf"{_CUE.pattern}(?:(?:the|our|my)\s)?\Z")
_FEW = 4  # words that may be an event's name and nothing else
_PARENTHESIS = re.compile(r"[(\[{:;,–].*|\s-\s.*")


@dataclass(frozen=True, slots=True)
class Window:
    """The days that a question is about.

    Attributes:
        first: the first day.
        last: the last day, not before the first.
        hours: of each day, as ``(12, 18)`` for an afternoon; None for the whole of it.
        rest: the question, folded, without its words for the time.
    """

    first: date
    last: date
    hours: tuple[int, int] | None = None
    rest: str = ""

    @property
    def days(self) -> list[date]:
        """Every day of it."""
        return [self.first + timedelta(n) for n in range((self.last - self.first).days + 1)]


def asks_when(text: str) -> bool:
    """Whether a question asks for a time rather than names one: "When is the recital?"."""
    return bool(_WHEN.search(fold(text)))


def resolve(
    text: str,
    now: datetime,
    *,
    week_start: WeekStart = "monday",
    day_first: bool = False,
    named: Named = lambda: (),
) -> Window | None:
    """The days that a text names, None when it names none. Never raises.

    Args:
        text: a question in plain words: English, or the common German, Spanish and French ones.
        now: the household's local time.
        week_start: the weekday on which weeks begin.
        day_first: whether ``1/9`` is the first of September.
        named: gives titles of events with their first and last days, for "before spring break"; asked only when the
            text might mean one.
    """
    said = " ".join(in_english(" ".join(fold(text).replace("\u2019", "'").replace("\0", " ").split())).split())
    today = Today(now.date(), week_start, day_first)
    found = spans(said, today)
    if asks_when(said):
        found = [span for span in found if "holiday" not in span.found.groupdict()]
    elif not found:
        found = _named_spans(said, today, named)
    if not found:
        return None
    start, stop, days = _joined(said, found, today)
    hours, stop = _part_of_day(said, start, stop)
    return Window(*days, hours, " ".join(f"{said[:start]} {said[stop:]}".split()))


def _joined(text: str, found: Sequence[Span], today: Today) -> tuple[int, int, Days]:
    """The first phrase with what belongs to it: an end of a range after it, "before" and the like in front of it."""
    span, *others = found
    start, stop, days = span.start, span.stop, span.days
    for other in others:
        to = _TO.match(text, stop)
        if not to or to.end() < other.start:
            break
        until = other.days if other.days[1] >= days[0] else other.seen_from(replace(today, day=days[0]))
        days, stop = (min(days[0], until[0]), max(days[1], until[1])), other.stop
    if stop != span.stop:
        since = _FROM.search(text[:start])
        return (since.start() if since else start), stop, days
    if within := _EDGE_WITHIN.match(text[start:stop]):
        days = _edged(within["word"], days, span, today)
    while edge := _EDGE.search(text[:start]):
        start, days = edge.start(), _edged(edge["word"], days, span, today)
    return start, stop, days


def _edged(word: str, days: Days, span: Span, today: Today) -> Days:
    """What "before" and the like make of days; ``span`` is what they are from."""
    if word in _UP_TO:
        if days[1] < today.day and days == span.days:
            days = span.seen_from(replace(today, lean="coming"))
        end = days[1] if word != "before" else days[0] if days[0] == today.day else shifted(days[0], -1)
        return (today.day if end >= today.day else shifted(end, -_LEADING_UP)), end
    if word == "after":
        return shifted(days[1], 1), (shifted(days[1], AFTER) if days[1] >= today.day else today.day)
    if word == "since":
        first, _ = span.seen_from(replace(today, lean="last")) if days == span.days else days
        return min(first, today.day), today.day
    return _beside(word, *days) or _around(word, days[0], today) or _third(word, *days)


_BEFORE = {"day before": 1, "the eve of": 1, "days before": 3, "week before": 7}
_AFTER = {"day after": 1, "days after": 3, "week after": 7}


def _beside(word: str, first: date, last: date) -> Days | None:
    if word in _BEFORE:
        return shifted(first, -_BEFORE[word]), shifted(first, -1)
    return (shifted(last, 1), shifted(last, _AFTER[word])) if word in _AFTER else None


def _around(word: str, day: date, today: Today) -> Days | None:
    around = replace(today, day=day)
    return around.week(0) if word.startswith("week ") else around.weekend(0) if word == "weekend of" else None


def _third(word: str, first: date, last: date) -> Days:
    third = ((last - first).days + 1) // 3
    if word in {"early", "beginning", "start", "anfang"}:
        return first, shifted(first, max(third - 1, 0))
    if word in {"mid", "middle", "mitte"}:
        return shifted(first, third), shifted(first, max(2 * third - 1, third))
    return shifted(first, 2 * third), last


def _part_of_day(text: str, start: int, stop: int) -> tuple[tuple[int, int] | None, int]:
    """The hours of "tomorrow morning", and where the phrase ends with them."""
    if after := _PART_AFTER.match(text, stop):
        return _HOURS[after["part"]], after.end()
    within = _PART_WITHIN.search(text[start:stop])
    return (_HOURS[within["part"]] if within else None), stop


def _named_spans(text: str, today: Today, named: Named) -> list[Span]:
    """The event that a text names as a time: "before spring break"."""
    if len(text.split()) > _FEW and not _CUE.search(text):
        return []
    nearest = sorted(named(), key=lambda period: (period[2] < today.day, abs((period[1] - today.day).days)))
    for title, first, last in nearest:
        name = _PARENTHESIS.sub("", " ".join(fold(title).split())).strip()
        if not name:
            continue
        for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            alone = not found.start() and found.end() >= len(text.rstrip("?!. "))
            if alone or _NAMED_CUE.search(text[: found.start()]):
                return [Span(*found.span(), (first, last), lambda *_: None, found)]
    return []
