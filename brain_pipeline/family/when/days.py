"""Days counted from today: weeks, months, and what happens again and again."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Literal

from brain_pipeline.family.when.words import WEEKDAYS

WeekStart = Literal["monday", "sunday", "saturday"]
Days = tuple[date, date]  # the first and the last

LATELY = 60  # days since a day or a month without a year, which may still be meant


@dataclass(frozen=True, slots=True)
class Today:
    """Where days are counted from.

    Attributes:
        day: today.
        week_start: the weekday on which weeks begin.
        day_first: whether ``1/9`` is the first of September.
        lean: whether what happens again and again is the ``last`` or the ``coming`` one; empty for what is usual.
    """

    day: date
    week_start: WeekStart = "monday"
    day_first: bool = False
    lean: Literal["", "last", "coming"] = ""

    def days(self, offset: int) -> Days:
        """The day so many days from today."""
        day = shifted(self.day, offset)
        return day, day

    def week(self, offset: int) -> Days:
        """The week so many weeks from this one."""
        first = shifted(self.day, 7 * offset - (self.day.weekday() - WEEKDAYS[self.week_start]) % 7)
        return first, shifted(first, 6)

    def weekend(self, offset: int) -> Days:
        """The Saturday and Sunday of the week that begins on a Monday, so many weeks from this one."""
        saturday = shifted(self.day, 7 * offset + 5 - self.day.weekday())
        return saturday, shifted(saturday, 1)

    def month(self, offset: int) -> Days:
        """The month so many months from this one."""
        months = self.day.year * 12 + self.day.month - 1 + offset
        return month_of(*divmod(months, 12))

    def year(self, offset: int) -> Days:
        """The year so many years from this one."""
        return year_of(self.day.year + offset)

    def weekday(self, weekday: int, which: str = "") -> Days:
        """A weekday: ``next`` is that of next week, ``last`` the one before today, any other the coming one."""
        if which == "next":
            first, _ = self.week(1)
            day = shifted(first, (weekday - first.weekday()) % 7)
        elif which == "last" or (self.lean == "last" and not which):
            day = shifted(self.day, -((self.day.weekday() - weekday - 1) % 7 + 1))
        else:
            day = shifted(self.day, (weekday - self.day.weekday()) % 7)
        return day, day

    def yearly(self, of_year: Callable[[int], Days | None]) -> Days | None:
        """Of what happens once a year, the one that is meant: usually the coming one, unless one was lately."""
        years = (self.day.year + offset for offset in (-1, 0, 1, 2, 3, 4))
        known = [days for year in years if 1 <= year <= date.max.year and (days := of_year(year))]
        if self.lean == "last":
            return next((days for days in reversed(known) if days[0] <= self.day), None)
        since = self.day if self.lean == "coming" else shifted(self.day, -LATELY)
        return next((days for days in known if days[1] >= since), None)

    def nth(self, number: int) -> Days | None:
        """The coming day of a month with that number, today included; or the last one."""
        past = self.lean == "last"
        offsets = range(0, -3, -1) if past else range(3)
        for first, last in map(self.month, offsets):
            if number <= last.day:
                day = first.replace(day=number)
                if day == self.day or (day < self.day) == past:
                    return day, day
        return None


def shifted(day: date, days: int) -> date:
    """So many days later, within what a ``date`` can be."""
    return date.fromordinal(min(max(day.toordinal() + days, 1), date.max.toordinal()))


def month_of(year: int, month: int) -> Days:
    """A month, ``month`` counting from 0, within what a ``date`` can be."""
    year = min(max(year, 1), date.max.year)
    return date(year, month + 1, 1), date(year, month + 1, monthrange(year, month + 1)[1])


def year_of(year: int) -> Days:
    """A year, within what a ``date`` can be."""
    year = min(max(year, 1), date.max.year)
    return date(year, 1, 1), date(year, 12, 31)


def on(year: int, month: int, day: int) -> Days | None:
    """A day; None when there is no such day."""
    try:
        found = date(year, month, day)
    except ValueError:
        return None
    return found, found
