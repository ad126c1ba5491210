"""Whether an answer's figures stand in its sources: invented ones are seen, honest rephrasing is let through."""

from __future__ import annotations

from datetime import date, time, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from brain_pipeline.ask.check import left_out, unsupported
from brain_pipeline.records import Source
from brain_pipeline.settings import Settings

TODAY = date(2026, 1, 9)
PRACTICE = "Practice is at 3:30 pm in room 12. The zoo trip costs $5."


def invented(answer, passage=PRACTICE, *, question="What and when?", day=date(2025, 5, 2), today=TODAY):
    fields = {"subject": "Notice", "sender": "Ms. Okafor", "source_type": "email", "score": 0.8}
    source = Source(id="1", email="<1>", day=day, passage=passage, **fields)
    return unsupported(answer, question, [source], today)


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "$45.30",
            "$12.99",
            "5:47",
            "$1,205.15",
            "at 12:30 pm",
            "at 3:30 am",
            "at 3:12",
            "3.12 €",
            "5,12 €",
            "$12.30",
        ),
        *(
            "on May 3",
            "on 5/12",
            "12/5",
            "am 12. Mai",
            "on 2025-05-12",
            "12.5.",
            "May 2, 2024",
            "room 13",
            "$6",
            "12 pm",
        ),
        *("January 5", "room 9", "in 2026", "March 30", "15:03", "5 Uhr", "$5.12", "$5.30", "3.30 €", "2 May 2031"),
    ],
)
def test_a_figure_put_together_from_parts_is_invented(answer):
    assert invented(f"It is {answer}, as they write.")


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("at 3:30", PRACTICE),
        ("at 15:30", PRACTICE),
        ("at 3:30 PM in room 12 for $5.00", PRACTICE),
        ("at 3.30 p.m.", PRACTICE),
        ("um 15.30 Uhr", PRACTICE),
        ("à 15h30", PRACTICE),
        ("it costs 5 dollars, 5,00 $", PRACTICE),
        ("at 2:00", "Um 2 Uhr geht es los."),
        ("at 2 pm", "It begins at 2:00."),
        ("um 14 Uhr", "It begins at 2 p.m."),
        ("um 14:30 Uhr", "Beginn 14 Uhr 30"),
        ("from 3 to 5 pm", "Open 15:00-17:00"),
        ("from 3 pm to 5 pm", "Open 3-5 pm"),
        ("at 9 am", "The sale is on Saturday at nine."),
        ("at 9:00", "The sale starts at nine o'clock."),
        ("at 2:30 pm", "We meet at half past two."),
        ("um 14:30 Uhr", "Treffpunkt halb drei."),
        ("at 12 pm", "Lunch is at noon."),
        ("25 children", "Twenty-five children take part."),
        ("12 Kinder", "Zwölf Kinder machen mit."),
        ("at 15:30", "DTSTART 2025-05-09T15:30:00"),
        ("$0.50", "A cookie is 50 cents."),
        ("1180", "The rent is $1,180.00."),
        ("$1,180", "Die Miete ist 1.180,00 €."),
        ("1.180,00 €", "The rent is $1,180.00."),
        ("1 180,00 €", "The rent is $1,180.00."),
        ("$1180", "The rent is 1 180 €."),
        ("96.40", "96,40 €"),
        ("$96.4", "$96.40"),
        ("on May 9", "Due 5/9."),
        ("on 5/9", "Due May 9th."),
        ("am 9. Mai", "Due Friday, May 9."),
        ("am 9.5.", "Due 2025-05-09"),
        ("on the 9th of May", "Frist: 9.5."),
        ("on May 9, 2025", "Frist: 09.05.2025"),
        ("on May 9, 2025", "Due May 9."),
        ("on 2025-05-09", "Due 5/9/25"),
        ("el 9 de mayo", "le 9 mai"),
        ("on January 3, 2026", "The deadline is January 3."),
        ("on May 9 and 10", "The fair is on May 9 and 10."),
        ("from May 9 to May 12", "The fair: May 9-12."),
        ("vom 9. Mai bis zum 12. Mai", "Das Fest ist vom 9. bis 12. Mai."),
        ("on Friday, May 9", "The trip is next Friday."),
        ("tomorrow, May 3", "The trip is tomorrow!"),
        ("on May 9", "The trip is on Friday the 9th."),
        ("on the 9th", "Due May 9."),
        ("$5. May 9 is the last day", "It costs $5. Pay by May 9."),
        ("Those under 5 may enter free", "Free for those under 5."),
        ("call 555.010.4477 or 5550104477", "Phone (555) 010-4477"),
        ("the school year 2025/26", "School year 2025-2026: 26 weeks"),
        ("version 1.2.300", "Version 1.2.300"),
        ("they wrote on May 2, 2025", "No figures here."),
        ("today, January 9, 2026", "No figures here."),
        ("in 2025", "No figures here."),
        ("no figures", ""),
        ("Gruppe 2 am Montag", "Am Montag kommt Gruppe 2."),
    ],
)
def test_the_same_figure_in_another_form_is_none_of_the_model_s(answer, passage):
    assert not invented(f"It is {answer}.", passage)


def test_figures_of_the_question_are_known():
    assert not invented("Nothing is on May 20 at 4:45 for $7.25.", question="What is on 5/20 at 4.45 pm for $7.25?")
    assert not invented("Tomorrow, January 10, is free.", question="What is on tomorrow?")
    assert not invented("In 2026 it is free.", question="What is on this year?")


def test_a_source_without_a_date_gives_no_year():
    assert not invented("May 9", "Due May 9.", day=None)
    assert invented("May 9, 2025", "Due May 9.", day=None)
    assert not invented("May 9, 2025", "Due May 9. Calendar of 2025.", day=None)


def test_every_invented_figure_is_named():
    assert invented("It costs $45.30 at 5:47 in room 12.") == {"45.30", "5:47"}


CLOCKS = ("{0:%H:%M}", "{0:%I:%M %p}", "{0:%I.%M %p}", "{0:%H.%M} Uhr", "{0:%H}h{0:%M}")
DAYS = (
    *("{0:%Y-%m-%d}", "{0:%B} {0.day}, {0.year}", "{0.day} {0:%B} {0.year}", "{0:%b} {0.day}", "{0.month}/{0.day}"),
    *("{0.day}.{0.month}.", "{0.day}.{0.month}.{0.year}", "{0.month}/{0.day}/{0:%y}", "{0:%B} {0.day}"),
)
AMOUNTS = ("${0:,}.{1:02}", "${0}.{1:02}", "{0},{1:02} €", "{0:,}.{1:02} dollars")
NEAR = st.dates(date(2025, 1, 1), date(2025, 12, 31))


@given(st.times(), st.sampled_from(CLOCKS), st.sampled_from(CLOCKS))
def test_a_time_is_known_in_every_form(moment, told, written):
    assert not invented(f"It is at {told.format(moment)}.", f"It is at {written.format(moment)} in the hall.")


@given(NEAR, st.sampled_from(DAYS), st.sampled_from(DAYS))
def test_a_day_is_known_in_every_form(day, told, written):
    assert not invented(f"It is on {told.format(day)}.", f"It is on {written.format(day)} in the hall.")


@given(st.integers(0, 10**7), st.integers(0, 99), st.sampled_from(AMOUNTS), st.sampled_from(AMOUNTS))
def test_an_amount_is_known_in_every_form(whole, cents, told, written):
    assert not invented(f"It is {told.format(whole, cents)}.", f"It is {written.format(whole, cents)} in all.")


@given(st.times(), st.times(), st.sampled_from(CLOCKS), st.sampled_from(CLOCKS))
def test_another_time_is_invented(moment, other, told, written):
    minutes = [(each.hour * 60 + each.minute) % 720 for each in (moment, other)]
    assume(minutes[0] != minutes[1])
    assert invented(f"It is at {told.format(moment)}.", f"It is at {written.format(other)} in the hall.")


@given(NEAR, NEAR, st.sampled_from(DAYS), st.sampled_from(DAYS))
def test_another_day_is_invented(day, other, told, written):
    assume((day.month, day.day) not in {(other.month, other.day), (other.day, other.month)})
    sent, today = date(2024, 2, 29), date(2020, 2, 29)
    assume((day.month, day.day) != (2, 29))
    assume("{0.month}/" not in told or (day.day, day.month) != (other.month, other.day))
    answer, passage = told.format(day), f"It is on {written.format(other)} in the hall."
    assert invented(f"It is on {answer}.", passage, day=sent, today=today)


@given(*[st.integers(0, 10**7), st.integers(1, 99)] * 2, st.sampled_from(AMOUNTS), st.sampled_from(AMOUNTS))
def test_another_amount_is_invented(whole, cents, other, more, told, written):
    assume((whole, cents) != (other, more))
    assert invented(f"It is {told.format(whole, cents)}.", f"It is {written.format(other, more)} in all.")


@given(st.text() | st.text("0123456789.:,/- apm$€may", max_size=60))
def test_what_the_source_says_is_never_invented(text):
    assert not invented(text, text)


@given(st.text("0123456789.:,/- apm", max_size=40), st.text("0123456789.:,/- apm", max_size=40))
def test_any_text_can_be_checked(answer, passage):
    assert isinstance(invented(answer, passage), set)


def test_midnight_and_the_week_around_the_mail():
    assert not invented("at 12:00 am", f"It is at {time(0, 0):%H:%M}.")
    for days in range(1, 8):
        day = date(2025, 5, 2) + timedelta(days)
        assert not invented(f"on {day:%B} {day.day}", f"It is on {day:%A}.")


def test_today_is_known_only_where_the_answer_says_so():
    assert invented(f"Picture day is on {TODAY:%B} {TODAY.day}, {TODAY.year}.", "Picture day is in May.")
    assert not invented(f"Today, {TODAY:%B} {TODAY.day}, is free.", "Picture day is in May.")


@pytest.mark.parametrize(
    ("answer", "passage", "wrong"),
    [
        ("It is on Tuesday.", "It is on Monday, May 5.", {"Tuesday"}),
        ("It is on Tuesday, May 5.", "It is on May 5.", {"Tuesday"}),
        ("It is on Monday, May 5.", "It is on May 5.", set()),
        ("It is on Mondays.", "It is on Monday, May 5.", set()),
        ("Es ist am Montag.", "Es ist am 5. Mai.", set()),
        ("It is on Thursday.", "It is tomorrow.", {"Thursday"}),
        ("It is on Saturday.", "It is tomorrow.", set()),  # sent on a Friday
        ("It was on Sunday.", "It was on May 5, 2024.", set()),
        ("The sun and the sat nav.", "Nothing.", set()),
    ],
)
def test_weekdays_are_those_of_the_source_s_days(answer, passage, wrong):
    assert invented(answer, passage, question="What is it?") == wrong


@pytest.mark.parametrize(
    ("answer", "question", "quote", "short"),
    [
        ("You need $5.", "How much is it, and by when?", "Bring $5 by Friday, May 9.", True),
        ("You need $5 by May 9.", "How much is it, and by when?", "Bring $5 by Friday, May 9.", False),
        ("You bring brownies.", "What do we bring?", "You bring brownies on November 21.", True),
        ("You bring brownies.", "What do we bring?", "You bring brownies.", False),
        ("Mr. Stokes.", "Who is the new crossing guard?", "From May 9 it is Mr. Stokes.", False),
        ("The code is QX7PLM.", "What is the code?", "The code QX7PLM holds until May 9.", False),
        ("It is in the gym.", "What is the phone number?", "Call 555-0155.", True),
    ],
)
def test_an_answer_that_leaves_out_what_matters(answer, question, quote, short):
    assert left_out(answer, question, quote) is short


@pytest.mark.parametrize(
    ("model", "quotes"),
    [
        ("qwen2.5-coder:0.5b", True),
        ("smollm2:135m", True),
        ("qwen2.5-coder:7b", False),
        ("llama3.2:3b", False),
        ("x", False),
    ],
)
def test_small_models_are_followed_by_the_mail_s_words(model, quotes):
    assert Settings.load(llm_model=model).quotes_with_answers is quotes
    assert Settings.load(llm_model=model, quote_with_answers=not quotes).quotes_with_answers is not quotes
