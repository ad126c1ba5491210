from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from brain_pipeline.family.when import asks_when, resolve

CHICAGO, BERLIN, AUCKLAND = "America/Chicago", "Europe/Berlin", "Pacific/Auckland"
NOON = datetime(2026, 1, 7, 12, tzinfo=UTC)
BREAK = ("Spring Break (no school)", date(2026, 3, 23), date(2026, 3, 27))

# On Wednesday, January 7, 2026, at eight in the morning.
WEDNESDAY = """
what's on this Friday?                   2026-01-09
what do we have this week                2026-01-05 2026-01-11
any plans this weekend?                  2026-01-10 2026-01-11
next weekend                             2026-01-17 2026-01-18
what did we miss last weekend            2026-01-03 2026-01-04
what's due next week?                    2026-01-12 2026-01-18
last week                                2025-12-29 2026-01-04
in two weeks                             2026-01-19 2026-01-25
the week after next                      2026-01-19 2026-01-25
two weeks ago                            2025-12-22 2025-12-28
in 3 days                                2026-01-10
what's on today                          2026-01-07
is there anything tonight?               2026-01-07
what's happening tomorrow morning        2026-01-08
yesterday                                2026-01-06
the day after tomorrow                   2026-01-09
next Friday                              2026-01-16
what's on Friday                         2026-01-09
on Wednesday                             2026-01-07
last Friday                              2026-01-02
last Wednesday                           2025-12-31
Friday of next week                      2026-01-16
a week from Friday                       2026-01-16
on the 15th                              2026-01-15
on the 7th                               2026-01-07
on the 6th                               2026-02-06
Saturday the 10th                        2026-01-10
January 9                                2026-01-09
Jan 9th                                  2026-01-09
9 January                                2026-01-09
9 Jan 2026                               2026-01-09
Friday, January 9, 2026                  2026-01-09
1/9                                      2026-01-09
1/9/2026                                 2026-01-09
13/1                                     2026-01-13
2026-01-09                               2026-01-09
9.1.                                     2026-01-09
9.1.2026                                 2026-01-09
December 20                              2025-12-20
October 20                               2026-10-20
the week of January 12                   2026-01-12 2026-01-18
the weekend of January 14                2026-01-17 2026-01-18
this month                               2026-01-01 2026-01-31
next month                               2026-02-01 2026-02-28
last month                               2025-12-01 2025-12-31
in March                                 2026-03-01 2026-03-31
March 2027                               2027-03-01 2027-03-31
early March                              2026-03-01 2026-03-10
the end of January                       2026-01-21 2026-01-31
this year                                2026-01-01 2026-12-31
in 2024                                  2024-01-01 2024-12-31
between Jan 5 and Jan 9                  2026-01-05 2026-01-09
January 5-9                              2026-01-05 2026-01-09
between Dec 28 and January 3             2025-12-28 2026-01-03
from Monday to Wednesday                 2026-01-12 2026-01-14
Friday and Saturday                      2026-01-09 2026-01-10
what is due before Friday?               2026-01-07 2026-01-08
by Friday                                2026-01-07 2026-01-09
until Friday                             2026-01-07 2026-01-09
by the end of the month                  2026-01-07 2026-01-31
after Friday                             2026-01-10 2026-01-23
what came since Monday                   2026-01-05 2026-01-07
the next 3 days                          2026-01-07 2026-01-10
the past two weeks                       2025-12-24 2026-01-07
the rest of the week                     2026-01-07 2026-01-11
the first Monday of March                2026-03-02
the last Friday of this month            2026-01-30
what's on before spring break            2026-01-07 2026-03-22
during spring break                      2026-03-23 2026-03-27
spring break                             2026-03-23 2026-03-27
what do we bring on Thanksgiving         2026-11-26
before Christmas                         2026-01-07 2026-12-24
the day before Easter                    2026-04-04
Independence Day                         2026-07-04
Labor Day weekend                        2026-09-05 2026-09-07
the first week of February               2026-02-01 2026-02-07
the week after spring break              2026-03-28 2026-04-03
2026/01/09                               2026-01-09
zwischen dem 5. und 9. Januar            2026-01-05 2026-01-09
what's happening Thu                     2026-01-08
was ist heute los                        2026-01-07
was steht morgen an?                     2026-01-08
übermorgen                               2026-01-09
nächste Woche                            2026-01-12 2026-01-18
was ist am Freitag                       2026-01-09
dieses Wochenende                        2026-01-10 2026-01-11
am 15. Januar                            2026-01-15
in zwei Wochen                           2026-01-19 2026-01-25
qué hay hoy                              2026-01-07
mañana                                   2026-01-08
la semana que viene                      2026-01-12 2026-01-18
el viernes                               2026-01-09
el 15 de enero                           2026-01-15
aujourd’hui                              2026-01-07
demain                                   2026-01-08
la semaine prochaine                     2026-01-12 2026-01-18
vendredi                                 2026-01-09
"""

# Around midnight, the year's end and the nights on which clocks change; a moment in UTC is the day that it is at home.
ELSEWHERE = f"""
{CHICAGO}   2026-03-07T23:30        tomorrow         2026-03-08
{CHICAGO}   2026-03-08T01:59        tomorrow         2026-03-09
{CHICAGO}   2026-03-08T03:00        today            2026-03-08
{CHICAGO}   2026-03-08T00:30        this weekend     2026-03-07 2026-03-08
{CHICAGO}   2026-10-31T23:59        tomorrow         2026-11-01
{CHICAGO}   2026-11-01T01:30        next week        2026-11-02 2026-11-08
{CHICAGO}   2026-03-08T04:30+00:00  tomorrow         2026-03-08
{CHICAGO}   2026-01-10T05:59+00:00  today            2026-01-09
{CHICAGO}   2026-01-10T06:00+00:00  today            2026-01-10
{CHICAGO}   2025-12-31T22:00        tomorrow         2026-01-01
{CHICAGO}   2028-02-28T12:00        tomorrow         2028-02-29
{BERLIN}    2026-03-28T23:30        tomorrow         2026-03-29
{BERLIN}    2026-03-29T00:30+00:00  heute            2026-03-29
{BERLIN}    2026-03-28T23:30+00:00  heute            2026-03-29
{BERLIN}    2026-10-24T22:30+00:00  today            2026-10-25
{BERLIN}    2026-10-25T02:30        in 7 days        2026-11-01
{BERLIN}    2026-01-11T22:59+00:00  this week        2026-01-05 2026-01-11
{BERLIN}    2026-01-11T23:00+00:00  this week        2026-01-12 2026-01-18
{BERLIN}    2026-01-10T10:00        this weekend     2026-01-10 2026-01-11
{AUCKLAND}  2026-04-04T23:30        tomorrow         2026-04-05
{AUCKLAND}  2026-04-05T02:30        today            2026-04-05
{AUCKLAND}  2026-09-27T03:30        yesterday        2026-09-26
{AUCKLAND}  2026-01-08T11:30+00:00  today            2026-01-09
{AUCKLAND}  2026-01-08T10:30+00:00  today            2026-01-08
{AUCKLAND}  2026-12-31T11:00+00:00  this month       2027-01-01 2027-01-31
{AUCKLAND}  2026-01-08T23:00+00:00  on Friday        2026-01-09
"""


def rows(table):
    for line in table.strip().splitlines():
        *words, last = line.split()
        first = words.pop() if words[-1][:2] == "20" and words[-1][4:5] == "-" and len(words) > 1 else last
        yield [*words], date.fromisoformat(first), date.fromisoformat(last)


def cases():
    for words, first, last in rows(WEDNESDAY):
        yield CHICAGO, "2026-01-07T08:00", " ".join(words), first, last
    for (zone, now, *words), first, last in rows(ELSEWHERE):
        yield zone, now, " ".join(words), first, last


def local(zone, text):
    now = datetime.fromisoformat(text)
    return now.astimezone(ZoneInfo(zone)) if now.tzinfo else now.replace(tzinfo=ZoneInfo(zone))


@pytest.mark.parametrize(("zone", "now", "phrase", "first", "last"), list(cases()))
def test_a_phrase_is_resolved(zone, now, phrase, first, last):
    window = resolve(phrase, local(zone, now), named=lambda: [BREAK])
    assert window is not None
    assert (window.first, window.last) == (first, last)


@pytest.mark.parametrize(
    "text",
    [
        "", "???", "what do the kids need for the field trip?", "when is spring break?", "when is the recital",
        "who is the teacher of the year", "the 5th grade play", "half 1/2 cup of sugar", "is it open 24/7",
        "every Friday", "those under 5 may come", "guten Morgen", "version 1.2.3", "room 12", "$1/9", "99/99",
        "2026-13-45",
        "February 30", "spring break forms", "how many days until the trip",
    ],
)  # fmt: skip
def test_what_names_no_time(text):
    assert resolve(text, local(CHICAGO, "2026-01-07T08:00"), named=lambda: [BREAK]) is None


@pytest.mark.parametrize(
    ("week_start", "today", "this_week", "next_friday"),
    [
        ("monday", "2026-01-11", "2026-01-05", "2026-01-16"),
        ("sunday", "2026-01-11", "2026-01-11", "2026-01-23"),
        ("saturday", "2026-01-11", "2026-01-10", "2026-01-23"),
        ("sunday", "2026-01-10", "2026-01-04", "2026-01-16"),
    ],
)
def test_weeks_begin_on_a_day_of_the_household(week_start, today, this_week, next_friday):
    now = datetime.fromisoformat(f"{today}T12:00+00:00")
    week, friday = (resolve(text, now, week_start=week_start) for text in ("this week", "next Friday"))
    assert week.first.isoformat() == this_week
    assert week.last - week.first == timedelta(6)
    assert friday.first.isoformat() == next_friday


def test_a_household_that_writes_the_day_first():
    now = NOON
    assert resolve("3/2", now, day_first=True).first == date(2026, 2, 3)
    assert resolve("3/2", now).first == date(2026, 3, 2)


def test_an_event_is_a_time_only_where_the_text_uses_it_as_one():
    now = NOON
    asked = []
    assert resolve("tomorrow", now, named=lambda: asked.append(1) or [BREAK])
    assert not asked  # calendars are not read for a phrase that needs none
    later = ("Spring Break", date(2027, 3, 22), date(2027, 3, 26))
    window = resolve("who watches the dog over spring break?", now, named=lambda: [later, BREAK])
    assert window.first == BREAK[1]
    assert window.rest == "who watches the dog over ?"


@pytest.mark.parametrize(
    ("text", "hours", "rest"),
    [
        ("what's on tomorrow morning?", (0, 12), "what's on ?"),
        ("anything on Friday afternoon", (12, 18), "anything"),
        ("is the gym open tonight", (17, 24), "is the gym open"),
        ("what's on Friday at 3", None, "what's at 3"),
        ("who drives from Monday to Wednesday?", None, "who drives ?"),
    ],
)
def test_the_part_of_the_day_and_the_rest_of_the_question(text, hours, rest):
    window = resolve(text, NOON)
    assert (window.hours, window.rest) == (hours, rest)


@pytest.mark.parametrize(
    "text", ["When is the recital?", "What day is the game", "Wann ist das Konzert?", "¿Cuándo es?"]
)
def test_a_question_for_a_time(text):
    assert asks_when(text)
    assert not asks_when("What is on this Friday?")


TOKENS = """
before after since by until between from to and the of on in next last this a two 3 99 999 15th 31st 0th 29 friday
monday weekend week month year day weeks days ago may february feb 2/29 9999-12-31 0001-01-01 2026 easter christmas
early end morning tonight tomorrow first morgen viernes - 1/9 31.12.
"""
WORDS = st.lists(st.sampled_from(TOKENS.split()), max_size=9).map(" ".join)
MOMENTS = st.datetimes(timezones=st.just(UTC)) | st.sampled_from(
    [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), datetime(2028, 2, 29, tzinfo=UTC)]
)


@given(st.text() | WORDS, MOMENTS, st.sampled_from(["monday", "sunday", "saturday"]), st.booleans())
@example("the last friday of next month", datetime.max.replace(tzinfo=UTC), "monday", False)
@example("since february 29", datetime.min.replace(tzinfo=UTC), "sunday", True)
def test_any_text_at_any_time(text, now, week_start, day_first):
    named = [("May", date.min, date.max), ("", date.min, date.min), (text, now.date(), now.date())]
    window = resolve(text, now, week_start=week_start, day_first=day_first, named=lambda: named)
    assert window is None or window.first <= window.last
    assert isinstance(asks_when(text), bool)


@given(st.dates(date(1990, 1, 1), date(2100, 1, 1)), st.times(), st.sampled_from([CHICAGO, BERLIN, AUCKLAND]))
def test_neighbouring_windows_meet(day, time, zone):
    now = datetime.combine(day, time, UTC).astimezone(ZoneInfo(zone))
    this, following = resolve("this week", now), resolve("next week", now)
    assert this.first <= now.date() <= this.last
    assert following.first == this.last + timedelta(1)
    assert now.date() <= resolve("on Friday", now).first <= now.date() + timedelta(6)
    assert following.first <= resolve("next Friday", now).first <= following.last
    assert resolve("last Friday", now).first < now.date()
