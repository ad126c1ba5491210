"""The ``Date`` field in every shape it is sent in."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo

_MONTHS = {
    name: number
    for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1)  # noqa: SIM905
}
# Hours from UTC of the zone names of RFC 5322 and of those in wide use that mean one thing.
_ZONES = {
    "z": 0.0, "ut": 0.0, "utc": 0.0, "gmt": 0.0, "wet": 0.0, "west": 1.0, "bst": 1.0, "cet": 1.0, "met": 1.0,
    "mez": 1.0, "cest": 2.0, "mest": 2.0, "mesz": 2.0, "mes": 2.0, "eet": 2.0, "eest": 3.0, "msk": 3.0, "msd": 4.0,
    "jst": 9.0, "kst": 9.0, "hkt": 8.0, "sgt": 8.0, "aest": 10.0, "aedt": 11.0, "acst": 9.5, "acdt": 10.5, "awst": 8.0,
    "nzst": 12.0, "nzdt": 13.0, "nst": -3.5, "ndt": -2.5, "ast": -4.0, "adt": -3.0, "est": -5.0, "edt": -4.0,
    "cst": -6.0, "cdt": -5.0, "mst": -7.0, "mdt": -6.0, "pst": -8.0, "pdt": -7.0, "akst": -9.0, "akdt": -8.0,
    "hst": -10.0,
}  # fmt: skip
_TIME = r"(?P<hour>\d{1,2}) ?[:.] ?(?P<minute>\d{2})(?: ?[:.] ?(?P<second>\d{2}))?(?:[.,]\d+)? ?(?P<half>[ap]\.?m\b)?"
_AFTER = rf"(?:[,T ]+(?:at )?{_TIME})?(?P<zone>.*)"
_SHAPES = tuple(
    re.compile(shape, re.IGNORECASE)
    for shape in (
        rf"\b(?P<day>\d{{1,2}})[ -]*(?P<month>[a-z]{{3,9}})\.?,?[ -]+(?P<year>\d{{2,4}})\b{_AFTER}",
        rf"\b(?P<month>[a-z]{{3,9}})\.? (?P<day>\d{{1,2}}),? {_TIME}(?P<zone>.*?)[ ,](?P<year>\d{{4}})\b(?P<tail>.*)",
        rf"\b(?P<month>[a-z]{{3,9}})\.? (?P<day>\d{{1,2}}),? (?P<year>\d{{4}})\b{_AFTER}",
        rf"\b(?P<year>\d{{4}})[-/.](?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}}){_AFTER}",
        r"\b(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)T(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)(?P<zone>.*)",
    )
)
_OFFSET = re.compile(r"(?<!\d)([+-])-?(\d{1,2}):?(\d{2})?(?!\d)|(?<![\w:.])()(\d{2})(\d{2})\b")
_MAX_LENGTH = 300
_MAX_OFFSET_HOURS = 15
_NOON = 12


def parse_date(text: str) -> datetime | None:
    """The moment that ``text`` names: aware when it names a usable zone, else naive; None when it names no day.

    A day without a usable time is that day's midnight, naive. ``-0000`` names no zone (RFC 5322 section 3.3).
    """
    text = " ".join(text[:_MAX_LENGTH].split())
    comments = " ".join(re.findall(r"\(([^()]*)\)", text))
    text = " ".join(re.sub(r"\([^()]*\)?", " ", text).split())
    for shape in _SHAPES:
        if (found := shape.search(text)) and (moment := _moment(found.groupdict(), comments)):
            return moment
    return None


def _moment(found: dict[str, str | None], comments: str) -> datetime | None:
    month_name = str(found["month"])
    month = int(month_name) if month_name.isdigit() else _MONTHS.get(month_name[:3].lower())
    if month is None:
        return None
    try:
        day = datetime(_year(str(found["year"])), month, int(str(found["day"])))  # noqa: DTZ001  (the zone comes below)
    except ValueError:
        return None
    clock = _clock(found)
    if clock is None:
        return day
    zone = f"{found['zone'] or ''} {found.get('tail') or ''}"
    return (day + clock).replace(tzinfo=_zone(zone if _OFFSET.search(zone) else f"{zone} {comments}"))


def _year(digits: str) -> int:
    """Four digits as they are, fewer as RFC 5322 section 4.3 reads them."""
    year = int(digits)
    if len(digits) == 2:  # noqa: PLR2004
        return year + (2000 if year < 50 else 1900)  # noqa: PLR2004
    return year + 1900 if len(digits) == 3 else year  # noqa: PLR2004


def _clock(found: dict[str, str | None]) -> timedelta | None:
    if found["hour"] is None:
        return None
    hour, minute, second = int(found["hour"]), int(found["minute"] or 0), min(int(found["second"] or 0), 59)
    if half := found.get("half"):
        hour = hour % _NOON + (_NOON if half[0] in "pP" else 0)
    if hour > 23 or minute > 59:  # noqa: PLR2004
        return None
    return timedelta(hours=hour, minutes=minute, seconds=second)


def _zone(text: str) -> tzinfo | None:
    """A numeric offset wins over a name; an offset that can't be is no zone."""
    if found := _OFFSET.search(text):
        hours, minutes = int(found[2] or found[5]), int(found[3] or found[6] or 0)
        unknown = found[1] == "-" and not hours and not minutes
        if unknown or hours >= _MAX_OFFSET_HOURS or minutes > 59:  # noqa: PLR2004
            return None
        offset = timedelta(hours=hours, minutes=minutes)
        return timezone(-offset if found[1] == "-" else offset)
    for name in re.findall(r"[a-z]+", text.lower()):
        if name in _ZONES:
            return timezone(timedelta(hours=_ZONES[name]))
    return None
