"""Names of months, weekdays and numbers, and other languages' words for time in English ones."""

from __future__ import annotations

import re


def numbered(names: str, start: int) -> dict[str, int]:
    """Names by number: groups are separated by ``|`` and count up from ``start``, names of one by spaces."""
    return {name: number for number, group in enumerate(names.split("|"), start) for name in group.split()}


def any_of(names: dict[str, int]) -> str:
    """A pattern for any of the names, the longest first."""
    return "|".join(sorted(names, key=len, reverse=True))


MONTHS = numbered(
    "january jan januar janner enero janvier|february feb februar febrero fevrier|march mar marz marzo mars"
    "|april apr abril avril|may mai mayo|june jun juni junio juin|july jul juli julio juillet|august aug agosto aout"
    "|september sept sep septiembre septembre|october oct oktober okt octubre octobre"
    "|november nov noviembre novembre|december dec dezember dez diciembre decembre",
    1,
)
WEEKDAYS = numbered(
    "monday mon montag lunes lundi|tuesday tue tues dienstag martes mardi|wednesday wed mittwoch miercoles mercredi"
    "|thursday thu thur thurs donnerstag jueves jeudi|friday fri freitag viernes vendredi"
    "|saturday sat samstag sonnabend sabado samedi|sunday sun sonntag domingo dimanche",
    0,
)
NUMBERS = numbered("a an one|two couple|three few|four|five|six|seven|eight|nine|ten|eleven|twelve", 1)
ORDINALS = numbered("first|second|third|fourth|last", 0)

SHORT_DAYS = ("mon", "tue", "tues", "wed", "thu", "thur", "thurs", "fri", "sat", "sun")
_FOREIGN_DAY = any_of(
    {name: day for name, day in WEEKDAYS.items() if not name.endswith("day") and name not in SHORT_DAYS}
)

# Folded text in, folded text out, in this order.
_TRANSLATIONS: tuple[tuple[str, str], ...] = (
    # German
    (r"(?:ueber|uber)morgen", "day after tomorrow"),
    (r"vorgestern", "day before yesterday"),
    (r"gestern abend", "last night"),
    (r"gestern", "yesterday"),
    (r"heute (?:morgen|fruh|vormittag)", "this morning"),
    (r"heute nachmittag", "this afternoon"),
    (r"heute (?:abend|nacht)", "tonight"),
    (r"heute", "today"),
    (r"morgen (?:fruh|vormittag)", "tomorrow morning"),
    (r"morgen nachmittag", "tomorrow afternoon"),
    (r"morgen abend", "tomorrow evening"),
    (r"(?<!guten )(?<!am )(?<!jeden )(?<!der )morgen", "tomorrow"),
    (r"(?:an )?diese[ms] wochenende", "this weekend"),
    (r"(?:am )?(?:nachste[ns]?|kommende[ns]?) wochenende", "next weekend"),
    (r"(?:am )?(?:letzte[ns]?|vergangene[ns]?) wochenende", "last weekend"),
    (r"(?:am |ums )wochenende", "this weekend"),
    (r"(?:in )?diese[rsn]? (woche|monat|jahr)", r"this \1"),
    (r"(?:in )?diesem (monat|jahr)", r"this \1"),
    (r"(?:in der )?(?:nachste[nrs]?|kommende[nrs]?) (woche|monat|jahr)", r"next \1"),
    (r"(?:in der )?(?:letzte[nrs]?|vorige[nrs]?|vergangene[nrs]?) (woche|monat|jahr)", r"last \1"),
    (r"in (\w+) (tag|woche|monat)e?n?", r"in \1 \2s"),
    (r"vor (\w+) (tag|woche|monat)e?n?", r"\1 \2s ago"),
    # Spanish
    (r"pasado manana", "day after tomorrow"),
    (r"anteayer", "day before yesterday"),
    (r"ayer", "yesterday"),
    (r"esta manana", "this morning"),
    (r"esta tarde", "this afternoon"),
    (r"esta noche", "tonight"),
    (r"(?<!la )manana por la manana", "tomorrow morning"),
    (r"(?<!la )manana", "tomorrow"),
    (r"hoy", "today"),
    (r"(?:este|el) fin de semana(?! que viene)", "this weekend"),
    (r"(?:el )?(?:proximo fin de semana|fin de semana que viene)", "next weekend"),
    (r"esta semana|cette semaine", "this week"),
    (r"(?:la )?(?:proxima semana|semana que viene|semana proxima)", "next week"),
    (r"(?:la )?semana pasada", "last week"),
    (r"este mes|ce mois(?:-ci)?", "this month"),
    (r"(?:el )?(?:proximo mes|mes que viene)", "next month"),
    (r"(?:el )?mes pasado", "last month"),
    (rf"(?:el )?(?:proximo ({_FOREIGN_DAY})|({_FOREIGN_DAY}) que viene)", r"this \1\2"),
    (rf"(?:el )?({_FOREIGN_DAY}) pasado", r"last \1"),
    # French
    (r"apres-demain", "day after tomorrow"),
    (r"avant-hier", "day before yesterday"),
    (r"hier soir", "last night"),
    (r"demain matin", "tomorrow morning"),
    (r"demain soir", "tomorrow evening"),
    (r"demain", "tomorrow"),
    (r"aujourd'hui", "today"),
    (r"ce matin", "this morning"),
    (r"cet apres-midi", "this afternoon"),
    (r"ce soir", "tonight"),
    (r"ce week-?end", "this weekend"),
    (r"(?:le )?week-?end prochain", "next weekend"),
    (r"(?:la )?semaine prochaine", "next week"),
    (r"(?:la )?semaine derniere", "last week"),
    (r"(?:le )?mois prochain", "next month"),
    (r"(?:le )?mois dernier", "last month"),
    (rf"(?:le )?({_FOREIGN_DAY}) prochain", r"this \1"),
    (rf"(?:le )?({_FOREIGN_DAY}) dernier", r"last \1"),
)
# What stands before a weekday.
_PREFIXES: tuple[tuple[str, str], ...] = (
    (r"bis zum|bis|hasta el|jusqu'a|jusqu'au", "until"),
    (r"vor|antes del|avant", "before"),
    (r"diese[nrs]?|kommende[nrs]?|este|ce", "this"),
    (r"nachste[nrs]?", "next"),
    (r"letzte[nrs]?|vergangene[nrs]?", "last"),
    (r"am|el|le", "on"),
)
_UNITS = {"woche": "week", "monat": "month", "jahr": "year", "tag": "day"}
_TRANSLATED = tuple((re.compile(rf"\b(?:{foreign})\b"), english) for foreign, english in _TRANSLATIONS)
_PREFIXED = tuple(
    (re.compile(rf"\b(?:{foreign}) (?=(?:{_FOREIGN_DAY})\b)"), f"{english} ") for foreign, english in _PREFIXES
)
_UNIT = re.compile(r"\b(this|next|last|in \w+|\w+) (woche|monat|jahr|tag)(s?)\b")
_DIGITS = {"einem": "1", "einer": "1", "zwei": "2", "drei": "3", "vier": "4", "funf": "5", "sechs": "6"}
_NUMBER = re.compile(rf"\b(?:{'|'.join(_DIGITS)})(?= (?:tag|woche|monat))")


def in_english(text: str) -> str:
    """Folded text with its words for time in English; weekdays and months keep their names."""
    text = _NUMBER.sub(lambda found: _DIGITS[found[0]], text)
    for pattern, english in (*_TRANSLATED, *_PREFIXED):
        text = pattern.sub(english, text)
    return _UNIT.sub(lambda found: f"{found[1]} {_UNITS[found[2]]}{found[3]}", text)
