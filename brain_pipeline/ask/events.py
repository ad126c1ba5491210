"""What the family's calendar says to a question: events as sources, beside the mail."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta, tzinfo

from brain_pipeline.ask.answer import WORTH
from brain_pipeline.ask.question import content_terms
from brain_pipeline.family.calendar import LONGEST_WINDOW
from brain_pipeline.family.sources import Calendars
from brain_pipeline.family.when import WeekStart, Window, asks_when, resolve
from brain_pipeline.family.when.days import shifted
from brain_pipeline.index.terms import fold, terms
from brain_pipeline.records import CALENDAR, Event, Source

IN_WINDOW, WORDS_IN_WINDOW = 0.45, 0.5  # of the score: a day that is asked about, and all of the question's words
NOTHING_ELSE_ASKED = 0.9  # the score of an event on a day that is asked about without more
WORDS_ALONE = 0.9  # the score of a coming event with all of the question's words
_ENOUGH = 0.5  # share of a question's words in an event that it asks the time of
_BACK, _AHEAD = 60, 400  # days around today in which a question's event is looked for
_LISTED = 30  # events without a place that are told
ALSO = "Also in the calendar:"
_NOTES = 2_000  # characters of an event's notes that are read
_CHANGE = re.compile(
    r"\b(?:moved?|moving|cancell?ed|called off|change[ds]?|postponed|rescheduled|instead|new (?:date|day|time|place)"
    r"|verschoben|verlegt|abgesagt|fallt aus|cambio|cambia|aplazad[oa]|cancelad[oa]|reporte|annule|deplace)\b"
)
_SLASHED = re.compile(r"\d/\d")

# What people ask a calendar, of whatever is in it.
_OF_A_CALENDAR = frozenset(
    terms(
        """
        plan plans planned planning busy free happening happens schedule scheduled calendar agenda program event events
        appointment appointments anything everything something nothing activity activities ahead coming next family kid
        kids child children
        termin termine steht stehen ansteht los geplant vor kalender kinder familie
        plane hay planes eventos cita citas calendario familia ninos
        prevu evenements rendez vous enfants famille
        """
    )
)


class Agenda:
    """Finds the days that a question names, and the events that it is about.

    Args:
        calendars: the family's.
        week_start: the weekday on which weeks begin.
        day_first: tells whether ``1/9`` is the first of September.
    """

    def __init__(self, calendars: Calendars, *, week_start: WeekStart, day_first: Callable[[], bool]) -> None:
        self._calendars = calendars
        self._week_start = week_start
        self._day_first = day_first

    def window(self, text: str, now: datetime) -> Window | None:
        """The days that a text names; see ``family.when.resolve``. ``now`` is in the household's zone."""
        day_first = bool(_SLASHED.search(text)) and self._day_first()
        return resolve(
            text, now, week_start=self._week_start, day_first=day_first, named=lambda: list(self._periods(now))
        )

    def _periods(self, now: datetime) -> Iterable[tuple[str, date, date]]:
        return ((event.title, event.day, event.last_day) for event in self._around(now, _BACK))

    def _around(self, now: datetime, back: int) -> list[Event]:
        today = now.date()
        return self._calendars.events(shifted(today, -back), shifted(today, _AHEAD), _zone(now))

    def events(self, window: Window, zone: tzinfo) -> list[Event]:
        """What is on in a window, soonest first."""
        found = self._calendars.events(window.first, window.last, zone)
        if window.hours is None or window.first != window.last:
            return found
        begin, end = (datetime.combine(window.first, time(), zone) + timedelta(hours=hour) for hour in window.hours)
        return [
            event for event in found if event.all_day or (event.start < end and max(event.end, event.start) >= begin)
        ]

    def coming(self, text: str, now: datetime) -> list[Event]:
        """The next of each event that a text asks the time of, the one with most of its words first."""
        return [event for event, _ in self._coming(text, now)]

    def sources(self, question: str, now: datetime, window: Window | None, *, only: bool = False) -> list[Source]:
        """The events that a question is about, best first.

        Args:
            question: in plain words.
            now: the household's local time.
            window: the days that it names.
            only: whether nothing but the calendar is asked, also for what is neither a day nor "when".
        """
        if window is None:
            scored = self._coming(question, now) if only or asks_when(question) else []
        else:
            asked = _topic(window.rest)
            scored = [(event, _score(asked, event)) for event in self.events(window, _zone(now))]
            over = [event.end < now <= datetime.combine(window.last, time.max, _zone(now)) for event, _ in scored]
            order = sorted(range(len(scored)), key=lambda i: (-scored[i][1], over[i]))
            scored = [scored[i] for i in order]
        return [source_of(event, score) for event, score in scored]

    def find(self, id_: str, now: datetime) -> Event | None:
        """The event of a source, None when there is no such event any more."""
        for first in (now.date(), shifted(now.date(), -LONGEST_WINDOW)):
            for event in self._calendars.events(first, shifted(first, LONGEST_WINDOW), _zone(now)):
                if source_id(event) == id_:
                    return event
        return None

    def _coming(self, text: str, now: datetime) -> list[tuple[Event, float]]:
        asked = _topic(text)
        nearest: dict[str, tuple[Event, float]] = {}
        for event in self._around(now, 0) if asked else ():
            share = _share(asked, event)
            named = asked & set(terms(event.title))
            if named and share >= _ENOUGH and event.end >= now:
                nearest.setdefault(event.title, (event, WORDS_ALONE * share))
        return sorted(nearest.values(), key=lambda found: -found[1])


def _zone(now: datetime) -> tzinfo:
    assert now.tzinfo is not None  # noqa: S101  (a household's time is in its zone)
    return now.tzinfo


def _topic(text: str) -> frozenset[str]:
    return frozenset(content_terms(text)) - _OF_A_CALENDAR


def _share(asked: frozenset[str], event: Event) -> float:
    """The share of the words that are asked about which stand in an event, in [0, 1]."""
    held = asked & set(terms(f"{event.title}\n{event.place}\n{event.notes[:_NOTES]}"))
    return len(held) / len(asked)


def _score(asked: frozenset[str], event: Event) -> float:
    return IN_WINDOW + WORDS_IN_WINDOW * _share(asked, event) if asked else NOTHING_ELSE_ASKED


def source_id(event: Event) -> str:
    """The id of an event's source, which no stored row has."""
    return f"{CALENDAR}:{event.id}"


def source_of(event: Event, score: float) -> Source:
    """An event as something that an answer is made from."""
    return Source(
        id=source_id(event),
        email=source_id(event),
        subject=event.title,
        day=event.day,
        sender="",
        source_type=CALENDAR,
        score=score,
        passage=told(event),
        changed=event.changed and event.changed.date(),
    )


def told(event: Event) -> str:
    """An event as text: when it is, where, and its notes."""
    where = f"Where: {event.place}" if event.place else ""
    return "\n".join(filter(None, [when(event), where, event.notes[:_NOTES].strip()]))


def line_of(event: Source) -> str:
    """The source of an event in one line."""
    when, _, more = event.passage.partition("\n")
    where = more.partition("\n")[0].removeprefix("Where: ") if more.startswith("Where: ") else ""
    return f"{when}: {event.subject}{f', {where}' if where else ''}"


def others_in(event: Source) -> list[str]:
    """What the source of an event tells of others, each in one line."""
    _, marker, others = event.passage.rpartition(f"\n{ALSO}\n")
    return others.split("\n") if marker else []


def line(event: Event) -> str:
    """An event in one line."""
    return f"{when(event)}: {event.title}{f', {event.place}' if event.place else ''}"


def when(event: Event) -> str:
    """The local day and time of an event, as ``Friday 9 January 2026, 3:30 pm to 4:15 pm``."""
    if event.all_day:
        return _day(event.day) + (f" to {_day(event.last_day)}" if event.last_day != event.day else ", all day")
    begin, end = f"{_day(event.day)}, {_clock(event.start)}", _clock(event.end)
    if event.end == event.start:
        return begin
    return f"{begin} to {end}" if event.end.date() == event.day else f"{begin} to {_day(event.end.date())}, {end}"


def _day(day: date) -> str:
    return f"{day:%A} {day.day} {day:%B %Y}"


def _clock(moment: datetime) -> str:
    return f"{(moment.hour - 1) % 12 + 1}:{moment:%M} {'am' if moment.hour < 12 else 'pm'}"  # noqa: PLR2004


def merged(events: Sequence[Source], mails: Sequence[Source], limit: int | None) -> tuple[Source, ...]:
    """Events and mails as one list, best first, no more than ``limit`` of them.

    The newest mail that tells of a change to an event, and is newer than what the calendar says, counts as much as the
    event and comes right before it. The best event has a place if it is worth reading. Events that are asked about no
    less than the last with a place are told in its passage, so that "What is on in May?" is answered in full.
    """
    left, ranked = list(mails), list[Source]()
    for event in events:
        later = [mail for mail in left if _newer(mail, event) and _tells_of(mail, event)]
        if later:
            newest = max(later, key=lambda mail: mail.day or date.min)
            left.remove(newest)
            ranked.append(replace(newest, score=max(newest.score, event.score)))
        ranked.append(event)
    found = sorted([*ranked, *left], key=lambda source: -source.score)
    kept = found[:limit]
    best = next(filter(_is_event, found), None)
    if len(kept) > 1 and best is not None and best not in kept and best.score >= WORTH * kept[0].score:
        kept[-1] = best
    return _with_others(tuple(kept), events)


def _with_others(kept: tuple[Source, ...], events: Sequence[Source]) -> tuple[Source, ...]:
    """``kept``, the last of its events telling of those that are as much asked about but found no place."""
    last = next((source for source in reversed(kept) if _is_event(source)), None)
    if last is None:
        return kept
    others = [event for event in events if event not in kept and event.score >= last.score]
    if not others:
        return kept
    lines = map(line_of, others[:_LISTED])
    telling = replace(last, passage="\n".join([last.passage, ALSO, *lines]))
    return tuple(telling if source is last else source for source in kept)


def _is_event(source: Source) -> bool:
    return source.source_type == CALENDAR


def _newer(mail: Source, event: Source) -> bool:
    """Whether a mail was sent in the weeks before an event, after the calendar was told of it."""
    if mail.day is None or event.day is None or not 0 <= (event.day - mail.day).days <= _BACK:
        return False
    return event.changed is None or mail.day > event.changed


def _tells_of(mail: Source, event: Source) -> bool:
    """Whether a mail has most of the words of an event's title, and one for a change."""
    text = f"{mail.subject}\n{mail.passage}"
    named = frozenset(content_terms(event.subject))
    held = named & set(terms(text))
    return len(held) >= max(min(2, len(named)), len(named) / 2, 1) and bool(_CHANGE.search(fold(text)))
