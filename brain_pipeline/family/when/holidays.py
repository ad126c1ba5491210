"""Holidays that need no calendar: fixed days, and days found by a rule."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

from dateutil.easter import easter


def _fixed(month: int, day: int) -> Callable[[int], date]:
    return lambda year: date(year, month, day)


def _nth(month: int, weekday: int, number: int) -> Callable[[int], date]:
    def found(year: int) -> date:
        first = date(year, month, 1)
        return first + timedelta((weekday - first.weekday()) % 7 + 7 * (number - 1))

    return found


def _from_easter(days: int) -> Callable[[int], date]:
    return lambda year: easter(year) + timedelta(days)


def _memorial_day(year: int) -> date:
    last = date(year, 5, 31)
    return last - timedelta(last.weekday())


# Folded names; a name that begins another comes after it.
HOLIDAYS: dict[str, Callable[[int], date]] = {
    "new year's eve": _fixed(12, 31),
    "silvester": _fixed(12, 31),
    "new year's day": _fixed(1, 1),
    "new year's": _fixed(1, 1),
    "new years": _fixed(1, 1),
    "neujahr": _fixed(1, 1),
    "martin luther king day": _nth(1, 0, 3),
    "mlk day": _nth(1, 0, 3),
    "valentine's day": _fixed(2, 14),
    "valentine's": _fixed(2, 14),
    "valentines day": _fixed(2, 14),
    "presidents' day": _nth(2, 0, 3),
    "presidents day": _nth(2, 0, 3),
    "st. patrick's day": _fixed(3, 17),
    "st patrick's day": _fixed(3, 17),
    "good friday": _from_easter(-2),
    "karfreitag": _from_easter(-2),
    "easter monday": _from_easter(1),
    "ostermontag": _from_easter(1),
    "easter sunday": _from_easter(0),
    "easter": _from_easter(0),
    "ostern": _from_easter(0),
    "mother's day": _nth(5, 6, 2),
    "mothers day": _nth(5, 6, 2),
    "memorial day": _memorial_day,
    "juneteenth": _fixed(6, 19),
    "father's day": _nth(6, 6, 3),
    "fathers day": _nth(6, 6, 3),
    "independence day": _fixed(7, 4),
    "fourth of july": _fixed(7, 4),
    "labor day": _nth(9, 0, 1),
    "columbus day": _nth(10, 0, 2),
    "halloween": _fixed(10, 31),
    "veterans day": _fixed(11, 11),
    "thanksgiving": _nth(11, 3, 4),
    "christmas eve": _fixed(12, 24),
    "heiligabend": _fixed(12, 24),
    "christmas": _fixed(12, 25),
    "xmas": _fixed(12, 25),
    "weihnachten": _fixed(12, 25),
    "navidad": _fixed(12, 25),
    "boxing day": _fixed(12, 26),
}
