"""Where the family's calendars come from, read once and again when they change."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import date, tzinfo
from pathlib import Path

from brain_pipeline.errors import ConfigError
from brain_pipeline.family.calendar import Calendar, CalendarText, read_calendars
from brain_pipeline.mail.charset import decode
from brain_pipeline.records import Event

log = logging.getLogger(__name__)

LARGEST = 64 * 2**20  # bytes of a file
_SUFFIXES = frozenset({".ics", ".ical", ".ifb", ".icalendar"})


class Calendars:
    """The calendars that the settings name and those that came by mail, as one.

    It may be used from several threads.

    Args:
        paths: files, and folders of ``.ics`` files.
        invitations: gives the iCalendar texts that came by mail.
    """

    def __init__(self, paths: Sequence[Path], invitations: Callable[[], Sequence[CalendarText]]) -> None:
        self._paths = paths
        self._invitations = invitations
        self._reading, self._asking = threading.Lock(), threading.Lock()
        self._made_of: object = None
        self._calendar = Calendar()

    def events(self, first: date, last: date, zone: tzinfo) -> list[Event]:
        """See ``Calendar.events``.

        Raises:
            ConfigError: calendars are set and the extra ``calendar`` is not installed.
        """
        calendar = self.read()
        with self._asking:  # recurring-ical-events does not say that its queries may be shared
            return calendar.events(first, last, zone)

    def read(self) -> Calendar:
        """The calendars as they are now; see ``events``. Of invitations alone nothing is read without the extra."""
        with self._reading:
            stamps = [(path, _stamp(path)) for path in self.files()]
            mailed = list(self._invitations())
            made_of = (stamps, mailed)
            if made_of != self._made_of:
                self._calendar = self._made(mailed)
                self._made_of = made_of
            return self._calendar

    def _made(self, mailed: Sequence[CalendarText]) -> Calendar:
        broken: list[str] = []
        texts = [text for path in self.files() if (text := _text(path, broken))]
        if not texts and not mailed:
            return Calendar(broken)
        try:
            calendar = read_calendars([*texts, *mailed])
        except ConfigError:
            if self._paths:
                raise
            return Calendar()
        calendar.broken[:0] = broken
        for origin in calendar.broken:
            log.warning("the calendar %s can't be read, or not all of it", origin)
        return calendar

    def files(self) -> list[Path]:
        """The files, those that do not exist among them; a folder's files in it and below."""
        return [file for path in self._paths for file in _files(path)]


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(file for file in path.rglob("*") if file.suffix.lower() in _SUFFIXES and file.is_file())
    else:
        yield path


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        known = path.stat()
    except OSError:
        return None
    return known.st_mtime_ns, known.st_size


def _text(path: Path, broken: list[str]) -> CalendarText | None:
    try:
        if path.stat().st_size <= LARGEST:
            return CalendarText(str(path), decode(path.read_bytes(), None).removeprefix("\ufeff"))
    except OSError:
        pass
    broken.append(str(path))
    return None
