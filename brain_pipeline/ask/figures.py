"""What figures mean: the times, days and amounts of a text, equal however they are written.

A figure has readings: ``9.5.`` is the 9th of May and nine and a half, ``3:30`` is a time before and after noon. An
answer's figure is known when one of its readings is known. English, German, Spanish and French are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal

from brain_pipeline.family.when.words import MONTHS, WEEKDAYS, any_of, numbered
from brain_pipeline.index.terms import fold

# ("amount", number) · ("part", number) · ("time", minutes of the day) · ("day", year or None, month, day) ·
# ("figure", as it stands)
Reading = tuple[object, ...]


_NEAR_DAYS = numbered("yesterday gestern ayer hier|today tonight heute hoy|tomorrow morgen manana demain", -1)
_WORDS = numbered(
    "one eins|two zwei dos deux|three drei tres trois|four vier cuatro quatre|five funf cinco cinq|six sechs seis"
    "|seven sieben siete sept|eight acht ocho huit|nine neun nueve neuf|ten zehn diez dix|eleven elf once onze"
    "|twelve zwolf doce douze|thirteen dreizehn|fourteen vierzehn|fifteen funfzehn|sixteen sechzehn"
    "|seventeen siebzehn|eighteen achtzehn|nineteen neunzehn",
    1,
)
_TENS = numbered("twenty zwanzig|thirty dreissig|forty vierzig|fifty funfzig|sixty|seventy|eighty|ninety", 2)

_MONTH = rf"\b(?P<{{}}>{any_of(MONTHS)})\b"
_TIME_FOLLOWS = r"(?!\d|[:.]\d|\s?(?:[ap]\.?m\b|uhr\b|o'clock))"
_DAY = rf"\d{{1,2}}(?:st|nd|rd|th|er)?{_TIME_FOLLOWS}"
_YEAR = r"(?:,?\s(?:de\s)?(?P<{}>\d{{4}})\b)?"
_AM = r"a\.m|am(?!\s(?:\w+tag|mittwoch|wochenende|\d))"  # "Gruppe 2 am Montag" is no time
_FIGURE = re.compile(
    rf"""
      (?P<y>\d{{4}})(?P<sep>[-./])(?P<m>\d\d?)(?P=sep)(?P<d>\d\d?)(?!\d)
    | (?<![\d.,:/-])(?P<first>\d\d?)(?P<sep2>[-./])(?P<second>\d\d?)(?P=sep2)(?P<last>(?:\d\d)?\d\d)(?![\d.,]\d|\d)
    | (?<![\d.,:/])(?P<hour>\d\d?)(?:[:.h](?P<minute>[0-5]\d))?\s?(?:(?P<am>{_AM})|(?P<pm>p\.?m)|uhr|o'clock)\b
    | (?<!\d)(?P<h>\d\d?)h(?P<min>[0-5]\d)\b
    | {_MONTH.format("month")}\.?\s(?P<day>\d\d?)(?:st|nd|rd|th)?{_TIME_FOLLOWS}{_YEAR.format("year")}
    | (?<![\d.,:/$€£])(?P<day2>\d\d?)(?:st|nd|rd|th|er|\.(?!\s?may\b))?\s?(?:of\s|de\s)?{_MONTH.format("month2")}
      (?!\.?\s{_DAY}){_YEAR.format("year2")}
    | (?P<figure>\d{{1,3}}(?:\s\d{{3}}){{1,4}},\d\d(?!\d)|\d\d?/\d\d?(?![\d/])|\d+(?:[.,:']\d+)*)
    """,
    re.VERBOSE,
)
_MONEY_BEFORE, _MONEY_AFTER = re.compile(r"[$€£¥]\s?\Z"), re.compile(r"\s?(?:[$€£¥%]|eur\b|euro|usd\b|dollar|chf\b)")
_MONEY = re.compile(r"[$€£¥]\s?\d|\d\s?(?:[$€£¥]|eur\b|euro|usd\b|dollar|chf\b)")
_DAY_BEFORE = re.compile(r"\b(?:am|vom|den|der|bis|zum|ab) \Z")
_THOUSANDS = re.compile(r"\d{1,3}(?:(?P<sep>[,.' \n])\d{3})(?:(?P=sep)\d{3})*(?:(?!(?P=sep))[.,]\d\d?)?")
_CLOCK = re.compile(r"(\d\d?)[:.]([0-5]\d)(?::[0-5]\d)?")

# Only of sources: what an answer may make of them.
_CUE = re.compile(
    r"(?:\b(?:at|from|by|until|till|before|after|around|about|between|and|to|starts?|um|ab|bis|von|gegen|nach|vor|und"
    r"|las|a)\s|[@–-]\s?)(\d\d?)(?![\d%€]|[.,:/h]\d)|(?<![\d$€£.,:/])(\d\d?)(?=\s?(?:-|–|to|until|till|bis|and|und|or)\s?\d)"
)
_BETWEEN = r"(?:[,–&/-]|and|to|through|thru|until|or|und|bis|y|et)"
_DAYS_AFTER = re.compile(rf"{_MONTH.format('month')}\.?\s((?:{_DAY}\s?(?:{_BETWEEN}\s?)?){{1,8}})")
_DAYS_BEFORE = re.compile(
    rf"((?:\d\d?(?:\.|st|nd|rd|th)?\s?{_BETWEEN}\s?){{1,8}})\d\d?(?:\.|st|nd|rd|th)?\s?(?:of\s|de\s)?{_MONTH.format('month')}"
)
_NTH = re.compile(r"\b(\d\d?)(?:st|nd|rd|th)\b|\b(?:am|vom|den|der|bis|zum) (\d\d?)\.(?!\d)")
_SPACED = re.compile(r"(?<!\d)\d{1,3}(?: \d{3}){1,4}(?:[.,]\d\d?)?(?!\d)")
_RUN_DIGITS = 7  # of a number that is spelled in groups, such as a telephone's
_RUN = re.compile(r"\d[\d ().\-/]{5,}\d")
_NEAR, _WEEKS = range(-7, 32), range(-7, 15)  # days after a mail's own, for "the 9th" and for weekdays
_LATELY = -60  # days before a mail's own, from which on a day without a year is this year's
_CENTS = re.compile(r"\b(\d\d?)\s?(?:cents?\b|ct\b|¢)")


def _hour_before(hour: str) -> int:
    return (int(hour) - 2) % 12 + 1


_Retold = Callable[[re.Match[str]], str]
_RETOLD: tuple[tuple[re.Pattern[str], _Retold], ...] = (
    (
        re.compile(rf"\b({any_of(_TENS)})(?:[- ]({any_of(_WORDS)}))?\b"),
        lambda m: str(10 * _TENS[m[1]] + _WORDS.get(m[2], 0)),
    ),
    (re.compile(rf"\b({any_of(_WORDS)})\b"), lambda m: str(_WORDS[m[1]])),
    (re.compile(r"\b(?:noon|midday|mittags?|mediodia|midi)\b"), lambda _: "12 pm"),
    (re.compile(r"\b(?:midnight|mitternacht|medianoche|minuit)\b"), lambda _: "12 am"),
    (re.compile(r"\bhalf past (\d\d?)\b"), lambda m: f"{m[1]}:30"),
    (re.compile(r"\bhalb (\d\d?)\b"), lambda m: f"{_hour_before(m[1])}:30"),
    (re.compile(r"\b(?:quarter past|viertel nach) (\d\d?)\b"), lambda m: f"{m[1]}:15"),
    (re.compile(r"\b(?:quarter to|viertel vor) (\d\d?)\b"), lambda m: f"{_hour_before(m[1])}:45"),
    (re.compile(r"\b(\d\d?) uhr ([0-5]\d)\b"), lambda m: f"{m[1]}:{m[2]} uhr"),
)


def claims(answer: str) -> Iterator[tuple[str, set[Reading]]]:
    """The figures of an answer, each with its readings.

    A plain whole number may be any part of what is known; all others count as a whole.
    """
    for figure, readings in _scan(_without_verb(answer)):
        yield figure, readings | ({("part", Decimal(figure))} if figure.isdecimal() else set())


def known(text: str, day: date | None) -> set[Reading]:
    """What an answer may take from a text.

    Args:
        text: a mail or a question.
        day: when it was written; it gives days without a year theirs, and "Friday" and "tomorrow" a day.
    """
    *_, everything = read_closely(text, day)
    return everything


def read_closely(text: str, day: date | None) -> Iterator[set[Reading]]:
    """``known`` in two steps: what is found at a glance, which is mostly enough, and all of it."""
    plain = _plain(text)
    yield {reading for _, readings in _scan(plain) for reading in readings}
    retold = plain
    for pattern, replacement in _RETOLD:
        retold = pattern.sub(replacement, retold)
    found = {reading for variant in (plain, _without_verb(text), retold) for _, rs in _scan(variant) for reading in rs}
    found |= {("time", time) for hours in _CUE.findall(retold) for hour in filter(None, hours) for time in _times(hour)}
    found |= {("amount", Decimal(cents) / 100) for cents in _CENTS.findall(retold)}
    found |= {reading for spaced in _SPACED.findall(plain) for reading in _amounts(spaced)}
    found |= {("digits", re.sub(r"\D", "", run)) for run in _RUN.findall(plain)}
    found |= {reading for days in _listed_days(plain) for reading in days}
    if day:
        found |= {reading for near in _near_days(plain, day) for reading in of_day(near)}
    found |= {("part", Decimal(digits)) for digits in re.findall(r"\d+", retold)}
    found |= {("part", Decimal(part)) for reading in found if reading[0] == "time" for part in _hours(reading[1])}
    yield found | _with_years(found, plain, day)


def of_day(day: date) -> set[Reading]:
    """What an answer may make of a day."""
    return {("day", day.year, day.month, day.day), ("day", None, day.month, day.day), ("part", Decimal(day.day))}


def kinds_told(text: str) -> set[str]:
    """Which of ``_time`` and ``_money`` stand in a text in figures: a day or a time, an amount of money."""
    plain = _plain(text)
    days_and_times = any(reading[0] in {"day", "time"} for _, readings in _scan(plain) for reading in readings)
    return {kind for kind, told in (("_time", days_and_times), ("_money", _MONEY.search(plain))) if told}


def weekdays(text: str) -> set[int]:
    """The weekdays that are named in full, Monday being 0: an abbreviation may be a word of its own."""
    words = re.findall(r"[a-z]{5,}", fold(text))
    return {WEEKDAYS[name] for word in words for name in (word, word.removesuffix("s")) if name in WEEKDAYS}


def weekdays_of_days(text: str, day: date | None) -> set[int]:
    """The weekdays of the days that a text names.

    Args:
        text: a mail or a question.
        day: when it was written, which tells the year where the text does not; None for any year.
    """
    named = {
        tuple(map(int, map(str, reading[1:]))) for reading in known(text, day) if reading[0] == "day" and reading[1]
    }
    dates = {found for year, month, number in named if (found := _date(year, month, number))}
    if day is None:
        return {found.weekday() for found in dates}
    written = set(re.findall(r"\b(?:19|20)\d\d\b", text))
    meant = {found for found in dates if _LATELY <= (found - day).days < _LATELY + 365 or str(found.year) in written}
    return {found.weekday() for found in meant}


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:  # the 30th of February
        return None


def _plain(text: str) -> str:
    apart = re.sub(r"(?<=\d)(?=[¼½¾])", " ", text)
    return " ".join(fold(apart).replace("\u2044", "/").split())


def _without_verb(text: str) -> str:
    """Without what is no month: "those under 5 may come"."""
    return _plain(re.sub(r"\bmay\b", "can", text))


def _scan(text: str) -> Iterator[tuple[str, set[Reading]]]:
    for found in _FIGURE.finditer(text):
        yield found.group(), _readings(found)


def _readings(found: re.Match[str]) -> set[Reading]:
    group = found.groupdict()
    if group["y"]:
        days = _days(group["y"], (group["m"], group["d"]))
    elif group["first"]:
        orders = [(group["second"], group["first"])]
        orders += [(group["first"], group["second"])] if group["sep2"] != "." else []
        days = _days(group["last"], *orders)
    elif group["month"] or group["month2"]:
        month, day = MONTHS[group["month"] or group["month2"]], group["day"] or group["day2"]
        days = _days(group["year"] or group["year2"], (month, day))
    elif group["hour"] or group["h"]:
        minute = group["minute"] or group["min"] or "0"
        half = "am" if group["am"] else "pm" if group["pm"] else ""
        return {("figure", found.group()), *(("time", t) for t in _times(group["hour"] or group["h"], minute, half))}
    else:
        return _figure_readings(found)
    return {("figure", found.group()), *days}


def _figure_readings(found: re.Match[str]) -> set[Reading]:
    figure = found.group()
    before, after = found.string[: found.start()][-5:], found.string[found.end() :][:8]
    amounts = _amounts(figure)
    readings: set[Reading] = {("figure", figure), *amounts}
    if _MONEY_BEFORE.search(before) or _MONEY_AFTER.match(after):
        return readings
    if clock := _CLOCK.fullmatch(figure):
        readings |= {("time", time) for time in _times(*clock.groups())}
    digits = re.sub(r"\D", "", figure)
    if len(digits) >= _RUN_DIGITS and (figure.isdecimal() or not amounts):
        readings.add(("digits", digits))
    first, _, second = figure.partition("/")
    if second:
        readings |= _days(None, (first, second), (second, first))
    first, _, second = figure.partition(".")
    if second and max(len(first), len(second)) <= 2 and (after.startswith(".") or _DAY_BEFORE.search(before)):  # noqa: PLR2004
        readings |= _days(None, (second, first))
    return readings


def _amounts(figure: str) -> set[Reading]:
    """``1.180`` is a thousand or one and a bit, by who writes it."""
    found: set[Reading] = set()
    if whole := _THOUSANDS.fullmatch(figure):
        found.add(("amount", Decimal(figure.replace(whole["sep"], "").replace(",", "."))))
    if re.fullmatch(r"\d+(?:[.,]\d+)?", figure):
        found.add(("amount", Decimal(figure.replace(",", "."))))
    return found


def _times(hour: str, minute: str = "0", half: str = "") -> set[int]:
    """Minutes of the day; those of both halves where a time does not tell its half."""
    hours, minutes = int(hour), int(minute)
    if half:
        return {(hours % 12 + (12 if half == "pm" else 0)) * 60 + minutes}
    if hours > 24:  # noqa: PLR2004
        return set()
    early = {hours % 12 * 60 + minutes} if 0 < hours <= 12 else set()  # noqa: PLR2004
    late = {(hours % 12 + 12) * 60 + minutes} if 0 < hours < 24 else {minutes}  # noqa: PLR2004
    return early | late


def _hours(minutes: object) -> set[int]:
    hour = int(str(minutes)) // 60
    return {hour, hour % 12 or 12}


def _days(year: str | None, *orders: tuple[str | int, str | int]) -> set[Reading]:
    whole = None if year is None else int(year) if len(year) > 2 else 2000 + int(year)  # noqa: PLR2004
    pairs = ((int(month), int(day)) for month, day in orders)
    return {("day", whole, month, day) for month, day in pairs if 1 <= month <= 12 and 1 <= day <= 31}  # noqa: PLR2004


def _listed_days(text: str) -> Iterator[set[Reading]]:
    """The days of "May 9, 10 and 12" and of "9.-12. Mai"."""
    for found in _DAYS_AFTER.finditer(text):
        yield _days(None, *((MONTHS[found["month"]], day) for day in re.findall(r"\d+", found[2])))
    for found in _DAYS_BEFORE.finditer(text):
        yield _days(None, *((MONTHS[found["month"]], day) for day in re.findall(r"\d+", found[1])))


def _near_days(text: str, day: date) -> Iterator[date]:
    """The days that weekdays, "tomorrow" and "the 9th" may mean in what was written on ``day``."""
    words = set(re.findall(r"[a-z]+", text))
    weekdays = {number for name, number in WEEKDAYS.items() if name in words}
    offsets = {number for name, number in _NEAR_DAYS.items() if name in words}
    numbers = {int(first or second) for first, second in _NTH.findall(text)}
    for offset in _NEAR:
        near = date.fromordinal(min(max(day.toordinal() + offset, 1), date.max.toordinal()))
        in_weeks = near.weekday() in weekdays and offset in _WEEKS
        if in_weeks or offset in offsets or near.day in numbers:
            yield near


def _with_years(found: set[Reading], text: str, day: date | None) -> set[Reading]:
    """The days of ``found`` without their year, and those without one in the years that they may be of."""
    years = {int(year) for year in re.findall(r"\b(?:19|20)\d\d\b", text)}
    if day:
        years |= {day.year - 1, day.year, day.year + 1}
    days = [reading[1:] for reading in found if reading[0] == "day"]
    bare = {("day", None, month, day) for _, month, day in days}
    return bare | {("day", year, month, day) for year in years for written, month, day in days if written is None}
