from __future__ import annotations

import json
import os
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from household import fill, mail
from hypothesis import given
from hypothesis import strategies as st

from brain_pipeline.brain import Brain
from brain_pipeline.doctor import diagnose
from brain_pipeline.errors import ConfigError
from brain_pipeline.family.calendar import UNTITLED, CalendarText, read_calendars
from brain_pipeline.family.sources import Calendars
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

SHARED = Path(os.environ.get("BRAIN_SHARED") or Path(__file__).parents[2] / "shared")
CHICAGO, BERLIN, AUCKLAND = map(ZoneInfo, ("America/Chicago", "Europe/Berlin", "Pacific/Auckland"))


def ics(*events, head=""):
    blocks = "".join(f"BEGIN:VEVENT\nDTSTAMP:20260101T000000Z\n{event}\nEND:VEVENT\n" for event in events)
    return f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//t//EN\n{head}{blocks}END:VCALENDAR\n".replace("\n", "\r\n")


def on(first, last, *texts, zone=CHICAGO):
    calendar = read_calendars(
        text if isinstance(text, CalendarText) else CalendarText(f"{n}.ics", text) for n, text in enumerate(texts)
    )
    return calendar.events(date.fromisoformat(first), date.fromisoformat(last), zone)


def told(events):
    return [(event.title, event.start.isoformat(timespec="minutes")) for event in events]


LESSON = """\
UID:piano
SUMMARY:Piano
DTSTART;TZID=America/Chicago:20260303T160000
DTEND;TZID=America/Chicago:20260303T163000
"""


def test_what_repeats_keeps_its_local_time_when_clocks_change():
    events = on("2026-03-01", "2026-03-31", ics(f"{LESSON}RRULE:FREQ=WEEKLY"))
    assert [event.start.hour for event in events] == [16] * 5
    assert [event.start.utcoffset() for event in events] == [timedelta(hours=-6)] + [timedelta(hours=-5)] * 4
    assert {event.end - event.start for event in events} == {timedelta(minutes=30)}


def test_exceptions_of_what_repeats():
    series = f"{LESSON}RRULE:FREQ=WEEKLY;COUNT=5\nEXDATE;TZID=America/Chicago:20260310T160000"
    moved = (
        "UID:piano\nSUMMARY:Piano (moved)\nRECURRENCE-ID:20260317T210000Z\nDTSTART;TZID=America/Chicago:20260318T170000"
    )
    at = "TZID=America/Chicago:20260324T160000"
    gone = f"UID:piano\nSUMMARY:Piano\nSTATUS:CANCELLED\nRECURRENCE-ID;{at}\nDTSTART;{at}"
    for order in ((series, moved, gone), (gone, moved, series)):
        assert told(on("2026-03-01", "2026-04-30", ics(*order))) == [
            ("Piano", "2026-03-03T16:00-06:00"),
            ("Piano (moved)", "2026-03-18T17:00-05:00"),
            ("Piano", "2026-03-31T16:00-05:00"),
        ]


@pytest.mark.parametrize("zone", [CHICAGO, BERLIN, AUCKLAND])
def test_whole_days_and_floating_times_are_the_household_s(zone):
    text = ics(
        "UID:a\nSUMMARY:Break\nDTSTART;VALUE=DATE:20260316\nDTEND;VALUE=DATE:20260321",
        "UID:b\nSUMMARY:Breakfast\nDTSTART:20260317T080000\nDURATION:PT1H",
        "UID:c\nSUMMARY:Holiday\nDTSTART;VALUE=DATE:20260405",
    )
    first, second = on("2026-03-17", "2026-03-17", text, zone=zone)
    assert (first.title, first.all_day, first.day, first.last_day) == (
        "Break",
        True,
        date(2026, 3, 16),
        date(2026, 3, 20),
    )
    assert second.start == datetime(2026, 3, 17, 8, tzinfo=zone)
    assert not on("2026-03-21", "2026-04-04", text, zone=zone)
    assert [event.title for event in on("2026-04-05", "2026-04-05", text, zone=zone)] == ["Holiday"]


def test_a_moment_is_the_day_that_it_is_at_home():
    text = ics("UID:a\nSUMMARY:Call\nDTSTART:20260110T033000Z\nDTEND:20260110T043000Z")
    assert told(on("2026-01-09", "2026-01-09", text)) == [("Call", "2026-01-09T21:30-06:00")]
    assert not on("2026-01-10", "2026-01-10", text)
    assert told(on("2026-01-10", "2026-01-10", text, zone=AUCKLAND)) == [("Call", "2026-01-10T16:30+13:00")]


def test_what_ends_at_midnight_is_not_on_the_next_day():
    text = ics("UID:a\nSUMMARY:Party\nDTSTART:20260109T200000\nDTEND:20260110T000000", "UID:b\nDTSTART:20260110T000000")
    assert [event.title for event in on("2026-01-09", "2026-01-09", text)] == ["Party"]
    assert [event.title for event in on("2026-01-10", "2026-01-10", text)] == [UNTITLED]


def game(hour, sequence=0, more=""):
    return ics(f"UID:game\nSUMMARY:Game at {hour}\nSEQUENCE:{sequence}\nDTSTART:20260110T{hour}0000", head=more)


def version(text, day, origin=""):
    return CalendarText(origin or f"mail {day}", text, datetime(2026, 1, day, tzinfo=UTC))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("versions", "left"),
    [
        ([version(game(10), 2), version(game(11, 1), 3)], ["Game at 11"]),
        ([version(game(10, 1), 2), version(game(11), 3)], ["Game at 10"]),
        ([version(game(10), 2), version(game(11), 3)], ["Game at 11"]),
        ([version(game(10), 2), version(game(10, 1, "METHOD:CANCEL\n"), 3)], []),
        ([version(game(10), 2), version(game(10, 0, "METHOD:CANCEL\n"), 3)], []),
        ([version(game(10, 0, "METHOD:CANCEL\n"), 3), version(game(11, 1), 4)], ["Game at 11"]),
        ([version(game(10), 2), version(game(9, 5, "METHOD:REPLY\n"), 3)], ["Game at 10"]),
    ],
)
def test_the_last_word_counts_whatever_came_first(versions, left, backwards):
    ordered = versions[::-1] if backwards else versions
    assert [event.title for event in on("2026-01-10", "2026-01-10", *ordered)] == left


def test_a_cancelled_occurrence_of_a_series():
    series = version(ics(f"{LESSON}RRULE:FREQ=WEEKLY;COUNT=3", head="METHOD:REQUEST\n"), 2)
    gone = version(
        ics("UID:piano\nSEQUENCE:1\nRECURRENCE-ID:20260310T210000Z\nDTSTART:20260310T210000Z", head="METHOD:CANCEL\n"),
        3,
    )
    assert [event.day.day for event in on("2026-03-01", "2026-03-31", series, gone)] == [3, 17]


BROKEN = "UID:x\nSUMMARY:Broken\nDTSTART:2026-soon"


def test_a_broken_event_never_hides_the_others():
    whole = "UID:y\nSUMMARY:Whole\nDTSTART:20260110T100000"
    torn = ics(whole).replace("END:VCALENDAR", "BEGIN:VEVENT\r\nUID:z\r\nnonsense\r\nDTSTART")
    rule = "UID:r\nSUMMARY:Rule\nDTSTART:20260110T110000\nRRULE:FREQ=SOMETIMES"
    zone = "UID:t\nSUMMARY:Zone\nDTSTART;TZID=Nowhere/At-all:20260110T120000"
    for text, titles in (
        (ics(BROKEN, whole), {"Whole"}),
        (torn, {"Whole"}),
        (ics(rule, whole), {"Whole", "Rule"}),
        (ics(zone, whole), {"Whole", "Zone"}),
    ):
        assert {event.title for event in on("2026-01-10", "2026-01-10", text)} >= titles
    calendar = read_calendars([CalendarText("kitchen.ics", ics(BROKEN, whole)), CalendarText("fine.ics", ics(whole))])
    assert calendar.broken == ["kitchen.ics"]


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SECONDLY", "FREQ=MINUTELY;INTERVAL=1", "FREQ=HOURLY", "FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0,1,2,3",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=DAILY;COUNT=999999999", "FREQ=WEEKLY;UNTIL=99991231T235959Z",
    ],
)  # fmt: skip
def test_hostile_rules_end(rule):
    text = ics(f"UID:a\nSUMMARY:Again\nDTSTART:20260105T100000\nDURATION:PT5M\nRRULE:{rule}")
    assert len(on("2026-01-05", "2026-12-31", text)) <= 366
    ancient = ics(f"UID:a\nSUMMARY:Again\nDTSTART:00010101T100000\nDURATION:P9000000D\nRRULE:{rule}")
    assert len(on("2026-01-05", "2026-01-11", ancient)) <= 7


def test_a_window_is_bounded():
    text = ics("UID:a\nSUMMARY:Daily\nDTSTART:20260101T100000\nRRULE:FREQ=DAILY")
    assert len(on("2026-01-01", "9999-12-31", text)) <= 732
    assert not on("9999-12-30", "9999-12-31", ics("UID:b\nDTSTART:20260101T100000"))
    assert on("0001-01-01", "0001-01-02", text) == []


PIECES = r"""
BEGIN:VCALENDAR END:VCALENDAR BEGIN:VEVENT END:VEVENT BEGIN:VTIMEZONE END:VTIMEZONE UID:a SUMMARY:x DTSTART:20260110
DTSTART:20260110T100000Z DTSTART;TZID=X:20260110T100000 DTEND:20260109T100000 DURATION:-P1D RRULE:FREQ=DAILY;COUNT=3
RRULE:FREQ=WEEKLY;BYDAY=XX EXDATE:20260111T100000Z RDATE;VALUE=PERIOD:20260112T100000Z/PT1H RECURRENCE-ID:20260110
RECURRENCE-ID;RANGE=THISANDFUTURE:20260111T100000Z STATUS:CANCELLED METHOD:CANCEL SEQUENCE:x SEQUENCE:2 TZID:X
TZOFFSETTO:+9900 X-WR-TIMEZONE:Europe/Berlin X-WR-TIMEZONE:Nope DTSTART : ;; SUMMARY;X="y:z LAST-MODIFIED:0
"""


@given(st.lists(st.sampled_from(PIECES.split()) | st.text(max_size=20), max_size=25))
def test_no_text_breaks_it(lines):
    wrapped = [
        "BEGIN:VCALENDAR",
        "BEGIN:VEVENT",
        "UID:a",
        "DTSTART:20260110T100000Z",
        *lines,
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    for text in ("\r\n".join(lines), "\r\n".join(wrapped)):
        for event in on("2026-01-01", "2026-01-31", text):
            assert event.start <= event.end


def rows():
    path = SHARED / "mail" / "ics_expected.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


@pytest.mark.skipif(not rows(), reason="the shared calendars are not here")
@pytest.mark.parametrize("row", rows(), ids=lambda row: Path(row["file"]).stem)
def test_real_calendars(row):
    path = SHARED / "mail" / row["file"]
    [text] = [CalendarText(str(path), path.read_bytes().decode(errors="replace"))]
    calendar = read_calendars([text])
    undated = path.read_text(errors="replace").count("BEGIN:VEVENT") - path.read_text(errors="replace").count("DTSTART")
    held = len(calendar.fixed) + sum(len(versions) for versions, _ in calendar.series)
    if row["n_events"] is not None and undated <= 0:
        assert held == row["n_events"]
    if row["first_dtstart"] and row["first_summary"]:
        start = datetime.fromisoformat(row["first_dtstart"])
        around = (start.date() - timedelta(2), start.date() + timedelta(2))
        found = calendar.events(*around, ZoneInfo("UTC"))
        at = start.astimezone(UTC) if start.tzinfo else start.replace(tzinfo=UTC)
        assert (row["first_summary"], at) in [(event.title, event.start) for event in found]


# Calendars of the settings.


def test_files_and_folders_are_read_again_when_they_change(tmp_path, caplog):
    folder = tmp_path / "calendars" / "deep"
    folder.mkdir(parents=True)
    (folder / "a.ics").write_text(game(10), newline="")
    (tmp_path / "b.ics").write_text("no calendar")
    calendars = Calendars((tmp_path / "calendars", tmp_path / "b.ics", tmp_path / "gone.ics"), list)

    def titles():
        return [event.title for event in calendars.events(date(2026, 1, 10), date(2026, 1, 10), CHICAGO)]

    assert titles() == ["Game at 10"]
    assert titles() == ["Game at 10"]
    assert [record.args[0] for record in caplog.records] == [str(tmp_path / "gone.ics"), str(tmp_path / "b.ics")]
    (folder / "a.ics").write_text(game(11, 1), newline="")
    (folder / "c.ICS").write_text(ics("UID:c\nSUMMARY:Cake\nDTSTART:20260110T150000"), newline="")
    assert titles() == ["Game at 11", "Cake"]
    assert not any("Game" in record.getMessage() for record in caplog.records)


def test_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "recurring_ical_events", None)
    file = tmp_path / "a.ics"
    file.write_text(game(10), newline="")
    with pytest.raises(ConfigError, match=r"family-brain\[calendar\]"):
        Calendars((file,), list).read()
    assert not Calendars((), lambda: [version(game(10), 2)]).events(date(2026, 1, 10), date(2026, 1, 10), CHICAGO)
    found = list(diagnose(settings_in(tmp_path, calendars=(file,))))
    assert any(not each.ok and "family-brain[calendar]" in each.remedy for each in found)


def test_the_doctor_names_what_can_t_be_read(tmp_path):
    (tmp_path / "secret.ics").write_text(ics("SUMMARY:Secret\nDTSTART:soon"))
    found = list(diagnose(settings_in(tmp_path, calendars=(tmp_path / "secret.ics",))))
    [finding] = [each for each in found if each.what.startswith("calendars")]
    assert not finding.ok
    assert "secret.ics" in finding.what
    assert "Secret" not in f"{finding.what} {finding.remedy}"


# Calendars that came by mail.


def settings_in(folder, **more):
    given = {"timezone": "America/Chicago", "warm_up": False, "now": datetime(2026, 1, 9, 8, tzinfo=CHICAGO), **more}
    return Settings.load(environment="embedded", data_dir=folder, **given)


def invitation(text, day, **more):
    sent = datetime(2026, 1, day, 12, tzinfo=UTC)
    given = {"date": sent, "message_id": f"<invite-{day}@a.example>", "calendars": (text,), **more}
    return mail(f"Invitation {day}", f"You are invited, says mail {day}.", **given)


@pytest.fixture
def brain(tmp_path):
    with Brain(settings_in(tmp_path), embedder=HashedTokenEmbedder(), llm=ScriptedLLM()) as made:
        yield made


def titles(brain):
    window = brain.window("tomorrow")
    return [event.title for event in brain.events(window)]


@pytest.mark.parametrize("order", [(2, 3, 4), (4, 3, 2), (3, 4, 2)])
def test_invitations_are_updated_and_cancelled_in_any_order(brain, order):
    mails = {
        2: invitation(game(10), 2),
        3: invitation(game(11, 1), 3),
        4: invitation(game(11, 2, "METHOD:CANCEL\n"), 4),
    }
    fill(brain, [mails[2]])
    assert titles(brain) == ["Game at 10"]
    fill(brain, [mails[3], mails[2]])
    assert titles(brain) == ["Game at 11"]
    brain.forget("<invite-2@a.example>")
    brain.forget("<invite-3@a.example>")
    assert titles(brain) == []
    fill(brain, [mails[day] for day in order])
    assert titles(brain) == []
    brain.forget("<invite-4@a.example>")
    assert titles(brain) == ["Game at 11"]
    brain.forget("<invite-3@a.example>")
    assert titles(brain) == ["Game at 10"]


def test_a_mail_that_changes_takes_its_events_along(brain):
    fill(brain, [invitation(game(10), 2)])
    fill(brain, [invitation(game(12), 2, sender_name="Coach")])
    assert titles(brain) == ["Game at 12"]
    fill(brain, [invitation(game(12), 2, calendars=())])
    assert titles(brain) == []


def test_invitations_are_kept_and_need_no_embedding(brain, tmp_path):
    fill(brain, [invitation(game(10), 2, calendars=())])
    embedder = brain.embedder
    embedded = embedder.calls if hasattr(embedder, "calls") else None
    fill(brain, [invitation(game(10), 2)])  # unchanged, but for the calendar that an earlier version left out
    assert titles(brain) == ["Game at 10"]
    assert embedded is None or embedder.calls == embedded
    brain.close()
    with Brain(settings_in(tmp_path), embedder=HashedTokenEmbedder()) as again:
        assert titles(again) == ["Game at 10"]


def test_without_invitations_there_is_no_file(brain):
    fill(brain)
    assert titles(brain) == []
    brain.query("What is on tomorrow?")
    assert not list(brain.settings.db_path.glob("brain.calendar.*"))


def test_a_damaged_file_is_begun_anew(brain, caplog):
    fill(brain, [invitation(game(10), 2)])
    brain.close()
    [file] = brain.settings.db_path.glob("brain.calendar.*.sqlite3")
    file.write_bytes(b"no database at all, but long enough to be one" * 100)
    assert titles(brain) == []
    assert "ingest the mail again" in caplog.text
    fill(brain, [invitation(game(10), 2)])
    assert titles(brain) == ["Game at 10"]


# On the command line.


@pytest.fixture
def kitchen(tmp_path, monkeypatch):
    file = tmp_path / "kitchen.ics"
    file.write_text(
        ics(f"{LESSON}RRULE:FREQ=WEEKLY", "UID:b\nSUMMARY:Spring break\nDTSTART;VALUE=DATE:20260316"), newline=""
    )
    for name, value in {
        "ENV": "embedded",
        "DATA_DIR": tmp_path,
        "CALENDARS": file,
        "TIMEZONE": "America/Chicago",
    }.items():
        monkeypatch.setenv(f"BRAIN_{name}", str(value))
    return file


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["this week", "--now", "2026-03-04T08:00"], {"window": ["2026-03-02", "2026-03-08"], "events": ["Piano"]}),
        (["before", "spring", "break", "--now", "2026-03-11T08:00"],
         {"window": ["2026-03-11", "2026-03-15"], "events": []}),
        (["today", "--now", "2026-03-10T12:30+00:00", "--zone", "Pacific/Auckland"],
         {"window": ["2026-03-11", "2026-03-11"], "events": ["Piano"]}),
        (["gibberish"], {"window": None, "events": []}),
        (["when is spring break?", "--now", "2026-03-11T08:00"], {"window": None, "events": ["Spring break"]}),
    ],
)  # fmt: skip
def test_events_as_json(command, kitchen, words, said):
    status, out, _ = command("events", *words, "--json")
    assert status == 0
    assert json.loads(out) == said


def test_events_as_text(command, kitchen, monkeypatch):
    monkeypatch.setenv("BRAIN_NOW", "2026-03-09T23:30")
    assert (
        command("events", "tomorrow")[1]
        == "Tuesday 10 March 2026\n  Tuesday 10 March 2026, 4:00 pm to 4:30 pm: Piano\n"
    )
    assert command("events", "yesterday")[1] == "Sunday 8 March 2026\n  nothing in the calendars\n"
    assert "names no day" in command("events", "whatever")[1]
    assert "Tuesday 10 March 2026, 4:00 pm" in command("ask", "When is piano?")[1]
    assert "Tuesday 3 March 2026" in command("ask", "What's on tomorrow?", "--now", "2026-03-02T08:00")[1]


@pytest.mark.parametrize("words", [("--now", "soon"), ("--zone", "Nowhere")])
def test_what_can_t_be_a_moment_or_a_zone(command, kitchen, words):
    status, _, err = command("events", "today", *words)
    assert status != 0
    assert words[1] in err
