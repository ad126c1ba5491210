"""What a phrase for a time means, given today: one function for each way of putting it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date

from brain_pipeline.family.when.days import Days, Today, month_of, on, shifted
from brain_pipeline.family.when.holidays import HOLIDAYS
from brain_pipeline.family.when.words import MONTHS, NUMBERS, ORDINALS, WEEKDAYS

_MONTHS_OF_A_YEAR = 12

Found = re.Match[str]
Rule = Callable[[Today, Found], Days | None]


def _number(found: Found) -> int:
    text = found["n"]
    return int(text) if text.isdigit() else NUMBERS[text]


def _full_year(text: str) -> int:
    return int(text) if len(text) > 2 else 2000 + int(text)  # noqa: PLR2004


def slashed(today: Today, found: Found) -> Days | None:
    """``1/9`` and ``1/9/2026``; a number above twelve is the day."""
    one, two = int(found["one"]), int(found["two"])
    first_is_day = one > _MONTHS_OF_A_YEAR or (today.day_first and two <= _MONTHS_OF_A_YEAR)
    return _day_of_month(today, found["year"], *((two, one) if first_is_day else (one, two)))


def dotted(today: Today, found: Found) -> Days | None:
    """``9.1.`` and ``9.1.2026``."""
    return _day_of_month(today, found["year"] or found["short"], int(found["two"]), int(found["one"]))


def _day_of_month(today: Today, year: str | None, month: int, day: int) -> Days | None:
    if year:
        return on(_full_year(year), month, day)
    return today.yearly(lambda each: on(each, month, day))


def named_day(today: Today, found: Found) -> Days | None:
    """``January 9``, ``9. Januar 2026``."""
    return _day_of_month(today, found["year"], MONTHS[found["month"]], int(found["day"]))


def named_days(today: Today, found: Found) -> Days | None:
    """``January 5-9``."""
    month = MONTHS[found["month"]]

    def of_year(year: int) -> Days | None:
        first, last = on(year, month, int(found["day"])), on(year, month, int(found["to"]))
        return (first[0], last[1]) if first and last and first <= last else None

    return of_year(int(found["year"])) if found["year"] else today.yearly(of_year)


def named_month(today: Today, found: Found) -> Days | None:
    """``March 2026``, ``in March``, ``last March``."""
    groups = found.groupdict()
    month = MONTHS[groups["month"]] - 1
    if groups.get("year"):
        return month_of(int(groups["year"]), month)
    match groups.get("which"):
        case "this":
            return month_of(today.day.year, month)
        case "next":
            return month_of(today.day.year + (month + 1 <= today.day.month), month)
        case "last" | "past":
            return month_of(today.day.year - (month + 1 >= today.day.month), month)
    return today.yearly(lambda year: month_of(year, month))


_WHICH = {"this": 0, "current": 0, "coming": 0, "upcoming": 0, "next": 1, "following": 1, "last": -1, "past": -1}
_WHICH |= {"previous": -1, "the": 0}


def period(today: Today, found: Found) -> Days:
    """``this week``, ``the coming weekend``."""
    offset = _WHICH[found["which"]]
    if found["which"] in {"coming", "upcoming"} and found["unit"] != "weekend":
        offset = 1
    return unit(today, found["unit"], offset)


def unit(today: Today, name: str, offset: int) -> Days:
    """The day, week, weekend, month or year so many from the present one."""
    kinds = {"day": today.days, "week": today.week, "weekend": today.weekend, "month": today.month, "year": today.year}
    return kinds[name](offset)


def in_units(today: Today, found: Found) -> Days:
    """``in two weeks``: the week that is two weeks ahead."""
    return unit(today, found["unit"], _number(found))


def units_ago(today: Today, found: Found) -> Days:
    """``two weeks ago``."""
    return unit(today, found["unit"], -_number(found))


_LENGTHS = {"day": 1, "week": 7}


def next_units(today: Today, found: Found) -> Days:
    """``the next 3 days``, with today."""
    return today.day, shifted(today.day, _span(today, found, 1))


def past_units(today: Today, found: Found) -> Days:
    """``the past two weeks``, with today."""
    return shifted(today.day, _span(today, found, -1)), today.day


def _span(today: Today, found: Found, sign: int) -> int:
    """Days until, or since, the day so many units from today: a month ends on the day with today's number."""
    count, name = sign * _number(found), found["unit"]
    if name in _LENGTHS:
        return count * _LENGTHS[name]
    first, last = today.month(count if name == "month" else 12 * count)
    return (first.replace(day=min(today.day.day, last.day)) - today.day).days


def weekday(today: Today, found: Found) -> Days:
    """``Friday``, ``next Friday``."""
    which = {"past": "last", "previous": "last", "coming": "this", "upcoming": "this"}
    said = found["which"] or ""
    return today.weekday(WEEKDAYS[found["weekday"]], which.get(said, said))


def weekday_of_week(today: Today, found: Found) -> Days:
    """``Friday of next week``, ``the Friday after next``."""
    groups = found.groupdict()
    named = {"this": 0, "next": 1, "following": 1, "last": -1}.get(groups.get("which") or "", 2)
    first, _ = today.week(named)
    day = shifted(first, (WEEKDAYS[groups["weekday"]] - first.weekday()) % 7)
    return day, day


def week_from(today: Today, found: Found) -> Days:
    """``a week from Friday``."""
    start = today.day if found["start"] in {"today", "now"} else shifted(today.day, 1)
    if found["start"] in WEEKDAYS:
        start, _ = today.weekday(WEEKDAYS[found["start"]])
    day = shifted(start, 7 * _number(found))
    return day, day


def nth_weekday(today: Today, found: Found) -> Days | None:
    """``the first Monday of March``."""
    weekday, place = WEEKDAYS[found["weekday"]], ORDINALS[found["place"]]

    def of(month: Days) -> Days | None:
        first, last = month
        if found["place"] == "last":
            day = shifted(last, -((last.weekday() - weekday) % 7))
        else:
            day = shifted(first, (weekday - first.weekday()) % 7 + 7 * place)
        return (day, day) if day <= last else None

    return _of_month(today, found, of)


def nth_week(today: Today, found: Found) -> Days | None:
    """``the first week of March``: its first seven days."""
    place = ORDINALS[found["place"]]

    def of(month: Days) -> Days | None:
        first, last = month
        begin = shifted(last, -6) if found["place"] == "last" else shifted(first, 7 * place)
        return begin, shifted(begin, 6)

    return _of_month(today, found, of)


def _of_month(today: Today, found: Found, of: Callable[[Days], Days | None]) -> Days | None:
    if found["which"]:
        return of(today.month({"this": 0, "the": 0, "next": 1, "last": -1}[found["which"]]))
    month = MONTHS[found["month"]] - 1
    if found["year"]:
        return of(month_of(int(found["year"]), month))
    return today.yearly(lambda year: of(month_of(year, month)))


def numbered_day(today: Today, found: Found) -> Days | None:
    """``the 15th``, ``the 15th of next month``."""
    if found["which"]:
        first, last = today.month({"this": 0, "the": 0, "next": 1, "last": -1}[found["which"]])
        number = int(found["day"])
        return on(first.year, first.month, number) if 1 <= number <= last.day else None
    return today.nth(int(found["day"])) if int(found["day"]) else None


def holiday(today: Today, found: Found) -> Days | None:
    """``Thanksgiving``, ``Easter 2027``; without a year the coming one."""
    name = found["holiday"]

    def of_year(year: int) -> Days | None:
        if not 1583 <= year <= 4099:  # noqa: PLR2004  (the years for which Easter is computed)
            return None
        day = HOLIDAYS[name](year)
        return _with_weekend(day) if found["weekend"] else (day, day)

    if found["year"]:
        return of_year(int(found["year"]))
    return (today if today.lean else replace(today, lean="coming")).yearly(of_year)


def _with_weekend(day: date) -> Days:
    """A day and the Saturday and Sunday next to it."""
    ahead = (WEEKDAYS["saturday"] - day.weekday()) % 7
    saturday = shifted(day, ahead if ahead <= 3 else ahead - 7)  # noqa: PLR2004  (half a week)
    return min(day, saturday), max(day, shifted(saturday, 1))


def rest_of_week(today: Today, found: Found) -> Days:
    """``the rest of the week``."""
    return today.day, unit(today, found["unit"], 0)[1]
