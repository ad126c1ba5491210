"""Calendars as what they are asked for: the events of some days, in the household's time.

iCalendar (RFC 5545) comes from files and from mail. An event has a UID; of its versions the one with the highest
SEQUENCE counts, and of equals the one that was told last, in whatever order they come in. What is cancelled is gone.
Everything here may be hostile: nothing repeats more often than daily, and one broken event never hides the others.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from brain_pipeline.errors import ConfigError
from brain_pipeline.family.when.days import shifted
from brain_pipeline.mail.text import clean, one_line
from brain_pipeline.records import Event

log = logging.getLogger(__name__)

LONGEST_WINDOW = 731  # days
UNTITLED = "(no title)"

_EARLIEST = 1900  # the year before which nothing repeats: every day since would have to be counted
_LONGEST = timedelta(days=366)  # of what repeats
_TOO_OFTEN = frozenset({"SECONDLY", "MINUTELY", "HOURLY"})
_PARTS_OF_A_DAY = ("BYHOUR", "BYMINUTE", "BYSECOND")
_NO_NEWS = frozenset({"REPLY", "REFRESH", "COUNTER", "DECLINECOUNTER"})  # what guests send to the organizer
_BLOCK = re.compile(r"^BEGIN:(VEVENT|VTIMEZONE)\s*$.*?^END:\1\s*$", re.MULTILINE | re.DOTALL | re.IGNORECASE)
_HEAD = re.compile(r"^(?:METHOD|X-WR-TIMEZONE)[:;].*$", re.MULTILINE | re.IGNORECASE)
# What icalendar and what it rests on are known to raise on damaged text beside their own errors.
_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, OSError)


@dataclass(frozen=True, slots=True)
class CalendarText:
    """iCalendar text, and where it stood; ``told`` is when a mail that held it was sent."""

    origin: str
    text: str
    told: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Version:
    """One version of an event, or of one occurrence of it."""

    uid: str
    occurrence: str
    component: Any
    order: tuple[int, datetime, int]
    changed: datetime | None
    zone: str

    @property
    def cancelled(self) -> bool:
        return str(self.component.get("STATUS", "")).upper() == "CANCELLED"


_Once = tuple[_Version, Any, Any]  # with when it begins and ends


@dataclass(slots=True)
class Calendar:
    """The events of some calendars.

    Attributes:
        broken: the origins of texts of which something could not be read.
        fixed: what happens once.
        series: what repeats, each with what finds its occurrences.
    """

    broken: list[str] = field(default_factory=list)
    fixed: list[_Once] = field(default_factory=list)
    series: list[tuple[list[_Version], Any]] = field(default_factory=list)

    def events(self, first: date, last: date, zone: tzinfo) -> list[Event]:
        """What happens on the days from ``first`` to ``last``, soonest first; at most ``LONGEST_WINDOW`` of them.

        Args:
            first: the first day.
            last: the last day.
            zone: the household's, in which days are counted and times are told.
        """
        last = min(last, shifted(first, LONGEST_WINDOW))
        begin, end = _midnight(first, zone), _midnight(shifted(last, 1), zone)
        found = [_event(version, start, stop, zone) for version, start, stop in self._occurrences(first, last)]
        within = [
            event for event in found if event and event.start < end and (event.end > begin or event.start >= begin)
        ]
        return sorted({event.id: event for event in within}.values(), key=lambda event: (event.start, event.title))

    def _occurrences(self, first: date, last: date) -> Iterator[_Once]:
        yield from self.fixed
        for versions, query in self.series:
            by_occurrence = {version.occurrence: version for version in versions}
            whole = by_occurrence.get("", versions[0])
            try:
                for found in query.between(shifted(first, -2), shifted(last, 3)):
                    if str(found.get("STATUS", "")).upper() != "CANCELLED":
                        version = by_occurrence.get(_text_of(found.get("RECURRENCE-ID")), whole)
                        yield _Version(whole.uid, "", found, whole.order, version.changed, whole.zone), *_times(found)
            except _DAMAGED as error:
                log.info("a repeating event can't be read (%s)", type(error).__name__)


def read_calendars(texts: Iterable[CalendarText]) -> Calendar:
    """The events of calendars, whatever the order of ``texts``.

    Raises:
        ConfigError: the extra ``calendar`` is not installed.
    """
    try:
        import recurring_ical_events  # type: ignore[import-untyped]  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise ConfigError("Calendars need the extra `calendar`: pip install 'family-brain[calendar]'.") from error
    calendar = Calendar()
    best: dict[tuple[str, str, int], _Version] = {}
    for text in texts:
        counts: Counter[tuple[str, str]] = Counter()
        for version in _versions(text, calendar.broken):
            counts[version.uid, version.occurrence] += 1
            key = (version.uid, version.occurrence, counts[version.uid, version.occurrence])
            if key not in best or version.order > best[key].order:
                best[key] = version
    series: defaultdict[tuple[str, int], list[_Version]] = defaultdict(list)
    for (uid, occurrence, number), version in best.items():
        series[uid, 1 if occurrence else number].append(version)
    for versions in series.values():
        if any(version.cancelled and not version.occurrence for version in versions):
            continue
        [one, *others] = versions
        if not (others or one.occurrence or one.zone or "RRULE" in one.component or "RDATE" in one.component):
            calendar.fixed += _fixed(one)
            continue
        try:
            calendar.series.append((versions, recurring_ical_events.of(_whole(versions))))
        except _DAMAGED:  # a rule that makes no sense; the event itself may
            calendar.fixed += [found for version in versions for found in _fixed(version)]
    return calendar


def _fixed(version: _Version) -> list[_Once]:
    try:
        return [(version, *_times(version.component))]
    except _DAMAGED:
        return []


def _whole(versions: Sequence[_Version]) -> Any:
    """One calendar with what there is of one event."""
    from icalendar import Calendar as Wrapper  # noqa: PLC0415  (an extra)

    whole = Wrapper()
    if versions[0].zone:
        whole.add("X-WR-TIMEZONE", versions[0].zone)
    whole.subcomponents = [version.component for version in versions]
    return whole


def _versions(text: CalendarText, broken: list[str]) -> Iterator[_Version]:
    read = _components(text.text)
    damaged = not read
    for number, component in enumerate(read):
        for event in component.walk("VEVENT"):
            try:
                if version := _version(text, event, component, number):
                    yield version
            except _DAMAGED:
                damaged = True
    if damaged:
        broken.append(text.origin)


def _components(text: str) -> list[Any]:
    """The calendars in a text; when it can't be read as a whole, its events one by one."""
    from icalendar import Calendar as Reader  # noqa: PLC0415  (an extra)

    try:
        if whole := list(Reader.from_ical(text, multiple=True)):
            return whole
    except _DAMAGED:
        pass
    blocks = [(found[1].upper(), found[0]) for found in _BLOCK.finditer(text)]
    head = "\r\n".join([*_HEAD.findall(text), *(block for kind, block in blocks if kind == "VTIMEZONE")])
    read: list[Any] = []
    for block in (block for kind, block in blocks if kind == "VEVENT"):
        for beginning in (head, ""):
            try:
                read += Reader.from_ical(f"BEGIN:VCALENDAR\r\n{beginning}\r\n{block}\r\nEND:VCALENDAR", multiple=True)
                break
            except _DAMAGED:
                continue
    return read


def _version(text: CalendarText, event: Any, calendar: Any, number: int) -> _Version | None:
    method = str(calendar.get("METHOD", "")).upper()
    if method in _NO_NEWS:
        return None
    start, _ = _times(event)
    if method == "CANCEL":
        event["STATUS"] = "CANCELLED"
    _tame(event, start)
    changed = text.told or _moment(event.get("LAST-MODIFIED")) or _moment(event.get("DTSTAMP"))
    sequence = event.get("SEQUENCE", 0)
    uid = str(event.get("UID") or f"{text.origin}#{start}#{event.get('SUMMARY', '')}")
    order = (int(sequence), changed or datetime.min.replace(tzinfo=UTC), number)
    zone = str(calendar.get("X-WR-TIMEZONE", ""))
    return _Version(uid, _text_of(event.get("RECURRENCE-ID")), event, order, changed, zone)


def _tame(event: Any, start: date) -> None:
    """Lets nothing repeat within a day, or since long before anybody's memory."""
    rules = event.get("RRULE")
    if rules is None:
        return
    try:
        begin, end = _times(event)
        tame = start.year >= _EARLIEST and _wall(end) - _wall(begin) <= _LONGEST and not _within_a_day(rules)
    except _DAMAGED:
        tame = False
    if not tame:
        del event["RRULE"]


def _within_a_day(rules: Any) -> bool:
    return any(
        _TOO_OFTEN & {str(freq).upper() for freq in rule["FREQ"]}
        or any(len(rule.get(part, [])) > 1 for part in _PARTS_OF_A_DAY)
        for rule in (rules if isinstance(rules, list) else [rules])
    )


def _times(event: Any) -> tuple[Any, Any]:
    """When an event begins and ends: dates of whole days, the last one excluded, or moments, naive when floating."""
    start = event["DTSTART"].dt
    if "DTEND" in event:
        end = event["DTEND"].dt
    elif "DURATION" in event:
        end = start + event["DURATION"].dt
    else:
        end = start if isinstance(start, datetime) else start + timedelta(1)
    if isinstance(start, datetime) != isinstance(end, datetime):
        end = start
    return start, end


def _wall(moment: date) -> datetime:
    return moment.replace(tzinfo=None) if isinstance(moment, datetime) else datetime.combine(moment, time())


def _text_of(recurrence: Any) -> str:
    """The moment of an occurrence as text, the same in whatever zone it is told; empty for None."""
    if recurrence is None:
        return ""
    moment = recurrence.dt
    if isinstance(moment, datetime) and moment.tzinfo:
        moment = moment.astimezone(UTC)
    return str(moment.isoformat())


def _moment(value: Any) -> datetime | None:
    moment = getattr(value, "dt", None)
    if not isinstance(moment, datetime):
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _event(version: _Version, start: date, end: date, zone: tzinfo) -> Event | None:
    try:
        begin, stop = _local(start, zone), _local(end, zone)
        title = one_line(_plain(version.component.get("SUMMARY")))
        told = f"{version.uid}\x1f{start.isoformat()}"
        return Event(
            id=hashlib.sha256(told.encode(errors="replace")).hexdigest()[:32],
            title=title or UNTITLED,
            start=begin,
            end=max(stop, begin),
            all_day=not isinstance(start, datetime),
            place=one_line(_plain(version.component.get("LOCATION"))),
            notes=clean(_plain(version.component.get("DESCRIPTION"))),
            changed=version.changed and version.changed.astimezone(zone),
        )
    except _DAMAGED:
        return None


def _plain(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _local(moment: date, zone: tzinfo) -> datetime:
    if not isinstance(moment, datetime):
        return _midnight(moment, zone)
    return moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone)
