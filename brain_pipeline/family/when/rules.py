"""The phrases for a time, as they are written, and where they stand in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from brain_pipeline.family.when import meanings
from brain_pipeline.family.when.days import Days, Today, on, shifted, year_of
from brain_pipeline.family.when.holidays import HOLIDAYS
from brain_pipeline.family.when.meanings import Found, Rule
from brain_pipeline.family.when.words import MONTHS, NUMBERS, ORDINALS, SHORT_DAYS, WEEKDAYS, any_of

_HOLIDAY = "|".join(map(re.escape, HOLIDAYS))
_MONTH, _DAY_NAME = any_of(MONTHS), any_of(WEEKDAYS)
_LONG = any_of({name: day for name, day in WEEKDAYS.items() if name not in SHORT_DAYS or name in {"tue", "thu", "fri"}})
_NUMBER = rf"(?P<n>\d{{1,3}}|{any_of(NUMBERS)})"
_ON = rf"(?:\b(?:{_DAY_NAME})\.?,?\s(?:(?:den|der|the|le|el)\s)?)?"
_NUMBERED = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.)?"
_YEAR = r"(?:,?\s(?:de\s|of\s|del\s)?(?P<year>(?:19|20)\d\d)\b(?!:))?"
_NOT_A_TIME = r"(?!\d|[:.]\d|\s?(?:[ap]\.?m\b|uhr\b|o'clock))"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_MEANT = r"(?=\s*(?:$|[?.,!;:)]|(?:at|and|or|in|for|is|of|from|to|until|through|with|we|do|does|are|after|before)\b))"
_CUE = r"on|by|until|till|before|after|since|from|to|and|through"
_NAMES = r"(?:jan|may|mai|april|june)"  # months that are people's names, too


_TODAY = {
    "day before yesterday": -2,
    "yesterday": -1,
    "last night": -1,
    "today": 0,
    "tonight": 0,
    "right now": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "this noon": 0,
    "tomorrow": 1,
    "tmrw": 1,
    "day after tomorrow": 2,
}

# In this order: what is claimed by one is not looked at by the next.
_RULES: tuple[tuple[str, Rule], ...] = (
    (
        r"(?<![\d/-])(?P<y>\d{4})(?P<sep>[-/])(?P<m>\d\d?)(?P=sep)(?P<d>\d\d?)(?![\d/-])",
        lambda _, found: on(int(found["y"]), int(found["m"]), int(found["d"])),
    ),
    (
        (
            rf"{_ON}(?<![\d/.,$€£:-])(?!24/7)(?P<one>\d{{1,2}})/(?P<two>\d{{1,2}})(?:/(?P<year>(?:19|20)\d\d|\d\d))?"
            r"(?![\d/%]|\.\d)(?!\s(?:of|cups?|hours?|inch|miles?)\b)"
        ),
        meanings.slashed,
    ),
    (
        rf"{_ON}(?<![\d/.,$€£:-])(?P<one>\d{{1,2}})\.\s?(?P<two>\d{{1,2}})\.(?:\s?(?P<year>(?:19|20)\d\d)|(?P<short>\d\d))?(?!\d)",
        meanings.dotted,
    ),
    (
        (
            rf"\b(?P<month>{_MONTH})\.?\s(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s?(?:-|–|to|through|thru|bis|until)\s?"
            rf"(?P<to>\d{{1,2}})(?:st|nd|rd|th)?{_NOT_A_TIME}{_YEAR}"
        ),
        meanings.named_days,
    ),
    (
        (
            rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s?(?:-|–|to|and|bis|und|al|y|au|et)\s?(?P<to>\d{{1,2}})(?:st|nd|rd|th|\.)?"
            rf"\s(?:of\s|de\s)?(?P<month>{_MONTH})\b\.?{_YEAR}"
        ),
        meanings.named_days,
    ),
    (rf"{_ON}\b(?P<month>{_MONTH})\.?\s(?:the\s)?{_NUMBERED}{_NOT_A_TIME}{_YEAR}", meanings.named_day),
    (
        (
            rf"{_ON}(?<![\d.,:/$€£])\b{_NUMBERED}\s?(?:of\s|de\s)?\b(?P<month>{_MONTH})\b\.?"
            rf"(?!(?<=\bmay)\s(?!\d{{4}})\w){_YEAR}"
        ),
        meanings.named_day,
    ),
    (
        (
            rf"\b(?P<place>{any_of(ORDINALS)})\sweek\s(?:of|in)\s"
            rf"(?:(?P<which>this|next|last|the)\smonth|(?P<month>{_MONTH})\b{_YEAR})"
        ),
        meanings.nth_week,
    ),
    (r"(?<![\d-])(?P<one>\d{1,2})-(?P<two>\d{1,2})-(?P<year>(?:19|20)\d\d)(?![\d-])", meanings.slashed),
    (rf"^\W*(?P<month>{_MONTH})\W*$", meanings.named_month),
    (
        (
            rf"\b(?P<place>{any_of(ORDINALS)})\s(?P<weekday>{_DAY_NAME})\s(?:of|in)\s"
            rf"(?:(?P<which>this|next|last|the)\smonth|(?P<month>{_MONTH})\b{_YEAR})"
        ),
        meanings.nth_weekday,
    ),
    (
        rf"\b(?:(?:in|of)\s)?(?P<month>{_MONTH})\.?,?\s(?:of\s|de\s|del\s)?(?P<year>(?:19|20)\d\d)\b",
        meanings.named_month,
    ),
    (
        (
            rf"\b(?:(?P<which>this|next|last|past)|in|during|since|until|till|before|after|by|throughout|early|late|mid|im|en"
            rf"|(?:for|of)(?![\s-]{_NAMES}\b))[\s-](?P<month>{_MONTH})\b(?!\s?\d)"
        ),
        meanings.named_month,
    ),
    (rf"\b(?:{_NUMBER})\s(?:week)s?\sfrom\s(?P<start>today|now|tomorrow|{_DAY_NAME})\b", meanings.week_from),
    (
        rf"\b(?:on\s)?(?P<weekday>{_DAY_NAME})\s(?:(?:of|in)\s)?(?P<which>this|next|following|last)\sweek\b",
        meanings.weekday_of_week,
    ),
    (rf"\b(?P<which>this|next|following|last)\sweek\s(?:on\s)?(?P<weekday>{_DAY_NAME})\b", meanings.weekday_of_week),
    (rf"\b(?:the\s)?(?P<weekday>{_DAY_NAME})\safter\snext\b", meanings.weekday_of_week),
    (r"\b(?:the\s)?(?P<unit>week|weekend|month|year)\safter\snext\b", lambda t, f: meanings.unit(t, f["unit"], 2)),
    (r"\b(?:the\s)?(?P<unit>week|weekend|month|year)\sbefore\slast\b", lambda t, f: meanings.unit(t, f["unit"], -2)),
    (r"\b(?:the\s)?(?:rest|remainder)\sof\s(?:the|this)\s(?P<unit>week|month|year)\b", meanings.rest_of_week),
    (r"\blater\s(?:in\s)?this\s(?P<unit>week|month|year)\b", meanings.rest_of_week),
    (
        rf"\b(?:in\s|within\s|over\s|for\s|during\s)?(?:the\s)?(?:next|coming|following)\s{_NUMBER}\s{_UNIT}\b",
        meanings.next_units,
    ),
    (rf"\bwithin\s(?:the\s)?{_NUMBER}\s{_UNIT}\b", meanings.next_units),
    (r"\b(?:the\s|these\s)?(?:next|coming)\sdays\b", lambda t, _: (t.day, shifted(t.day, 3))),
    (r"\b(?:the\s|these\s)?(?:next|coming)\sweeks\b", lambda t, _: (t.day, shifted(t.day, 21))),
    (rf"\b(?:in\s|over\s|for\s|during\s)?(?:the\s)?(?:past|last|previous)\s{_NUMBER}\s{_UNIT}\b", meanings.past_units),
    (rf"\bin\s(?:a\s)?{_NUMBER}\s(?:of\s)?{_UNIT}\b(?:\stime\b)?", meanings.in_units),
    (rf"\b(?:a\s)?{_NUMBER}\s(?:of\s)?{_UNIT}\sfrom\s(?:now|today)\b", meanings.in_units),
    (rf"\b(?:a\s)?{_NUMBER}\s(?:of\s)?{_UNIT}\sago\b", meanings.units_ago),
    (
        (
            r"\b(?P<which>this|current|coming|upcoming|next|following|last|past|previous)\s(?:coming\s)?"
            r"(?P<unit>weekend|week|month|year)\b"
        ),
        meanings.period,
    ),
    (r"\b(?P<which>the)\s(?P<unit>weekend)\b(?!\sof\b)", meanings.period),
    (
        (
            r"(?:(?<=end of )|(?<=start of )|(?<=middle of )|(?<=beginning of )|(?<=during ))"
            r"(?P<which>the)\s(?P<unit>week|month|year)\b(?!\sof\b)"
        ),
        meanings.period,
    ),
    (r"^\W*(?P<unit>weekend)\W*$", lambda t, _: t.weekend(0)),
    (rf"\b(?P<near>{'|'.join(_TODAY)})\b", lambda t, f: t.days(_TODAY[f["near"]])),
    (
        rf"\b(?P<holiday>{_HOLIDAY})\b(?!'s)(?:\s(?P<year>(?:19|20)\d\d)\b)?(?P<weekend>\sweekend\b)?",
        meanings.holiday,
    ),
    (
        (
            rf"\b(?:(?:{_DAY_NAME})\.?,?\s(?:the\s)?|(?:{_CUE})\s(?:the\s)?|the\s)(?P<day>[1-9]|[12]\d|3[01])(?:st|nd|rd|th)\b"
            rf"{_MEANT}(?:\sof\s(?P<which>this|next|last|the)\smonth)?"
        ),
        meanings.numbered_day,
    ),
    (r"\b(?:am|zum|den)\s(?P<day>[1-9]|[12]\d|3[01])\.(?!\s?\d)(?P<which>)", meanings.numbered_day),
    (r"\b(?:el|le)\s(?:dia\s)?(?P<day>[1-9]|[12]\d|3[01])\b(?!\s(?:de|h)\b|[:h])(?P<which>)", meanings.numbered_day),
    (
        (
            r"(?<!every )(?<!each )(?<!every other )\b(?:on\s)?"
            r"(?:(?P<which>this|next|last|past|previous|coming|upcoming)\s(?:coming\s)?)?"
            rf"(?P<weekday>{_LONG})\b"
        ),
        meanings.weekday,
    ),
    (
        rf"(?:\b(?:{_CUE})\s|(?P<which>\b(?:this|next|last|past|coming))\s|^\W*)(?P<weekday>{_DAY_NAME})\b",
        meanings.weekday,
    ),
    (
        r"\b(?:in|during|for|of|since|until|before|after)\s(?P<year>(?:19|20)\d\d)\b",
        lambda _, found: year_of(int(found["year"])),
    ),
)
RULES = tuple((re.compile(pattern), rule) for pattern, rule in _RULES)


@dataclass(frozen=True, slots=True)
class Span:
    """A phrase for a time within a text: where it stands, and the days that it means."""

    start: int
    stop: int
    days: Days
    rule: Rule
    found: Found

    def seen_from(self, today: Today) -> Days:
        """The days that it means on another day."""
        return self.rule(today, self.found) or self.days


def spans(text: str, today: Today) -> list[Span]:
    """The phrases for a time in a text (folded, in English), in their order."""
    found: list[Span] = []
    left = text
    for pattern, rule in RULES:
        for match in pattern.finditer(left):
            if days := rule(today, match):
                found.append(Span(*match.span(), days, rule, match))
                left = left[: match.start()] + "\0" * len(match[0]) + left[match.end() :]
    return sorted(found, key=lambda span: span.start)
