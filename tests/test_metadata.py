from __future__ import annotations

from datetime import date, timedelta, timezone
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain_pipeline.errors import ConfigError
from brain_pipeline.index.metadata import MetadataReader, date_order, parse_day
from brain_pipeline.settings import Settings

CENTRAL = timezone(timedelta(hours=-5))
READER = MetadataReader(CENTRAL)
DAY = date(2025, 5, 6)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Tue, 06 May 2025 19:42:11 -0500", DAY),
        ("Tue, 06 May 2025 23:59:00 -0500 (CDT)", DAY),  # already the 7th in UTC; the sender's clock counts
        ("06 May 25 07:00 GMT", DAY),
        ("2025-05-06", DAY),
        ("20250506", DAY),
        ("2025-05-06T23:30:00-05:00", DAY),
        ("2025-05-06T19:42", DAY),
        ("2025-05-06 19:42:11", DAY),
        (1746578531, DAY),  # 7 May 00:42 UTC is the evening of the 6th here
        ("1746578531", DAY),
        (1746578531.5, DAY),
        (1746578531000, DAY),
        ("May 6, 2025 7pm", DAY),
        ("06.05.2025", DAY),
        ("5/6/2025", DAY),
        ("13/5/2025", date(2025, 5, 13)),
        *((bad, None) for bad in ("", "12", "6 May", "Tuesday", "2025-13-40", "99/99/2025", "soon", -5, float("nan"))),
        *((bad, None) for bad in ("2025", 2025, "15", 99_999_999)),
        *((bad, None) for bad in (True, "1e400", float("inf"), "0000-00-00", [], {})),
    ],
)
def test_a_day_is_read_from_any_usual_form(value, expected):
    assert parse_day(value, CENTRAL) == expected


def test_the_order_of_numeric_dates_is_the_collection_s_own():
    assert date_order(["03/04/2025", "25/12/2025"]) == "day"
    assert date_order(["03/04/2025", "12/25/2025"]) == "month"
    assert date_order(["03/04/2025"]) == "month"
    assert parse_day("03/04/2025", CENTRAL, "day") == date(2025, 4, 3)
    assert parse_day("03/04/2025", CENTRAL, "month") == date(2025, 3, 4)


SUBJECTS = ("subject", "Subject", "SUBJECT", "title", "email_subject")
SENDERS = ("sender", "from", "From", "sender_email", "From-Address")
DATES = ("date", "Date", "received", "sent_at", "date_timestamp")
KINDS = ("source_type", "type", "kind", "Source")


@pytest.mark.parametrize(("subject", "sender", "when", "kind"), list(product(SUBJECTS, SENDERS, DATES, KINDS)))
def test_every_writer_s_names_are_understood(subject, sender, when, kind):
    row = {subject: "Slip", sender: "a@b.example", when: "2025-05-06", kind: " NewsLetter "}
    fields = READER.read(row, "text")
    assert (fields.subject, fields.sender, fields.day, fields.kind) == ("Slip", "a@b.example", DAY, "newsletter")


def test_names_of_the_household_s_own_come_first():
    reader = MetadataReader(CENTRAL, more={"subject": ["Betreff"]})
    assert reader.read({"betreff": "Ausflug", "subject": "trip"}, "").subject == "Ausflug"


def test_what_identifies_an_email():
    base = {"subject": "Slip", "date": "2025-05-06", "sender": "a@b.example"}
    assert READER.read({**base, "Message-ID": "<1@b>"}, "x").key == "<1@b>"
    assert READER.read({**base, "email_id": 7}, "x").key == "7"
    assert READER.read(base, "x").key == READER.read(base, "another chunk").key
    assert READER.read(base, "x").key != READER.read({**base, "date": "2025-05-07"}, "x").key
    assert READER.read({**base, "email_id": "row-3"}, "x", "row-3").key == READER.read(base, "x").key
    sender_only = {"sender": "a@b.example"}
    assert READER.read(sender_only, "one").key != READER.read(sender_only, "two").key != ""


@pytest.mark.parametrize("row", [None, {}, {"chunk": 3}, {"subject": "", "date": None}, {"message_id": "<1@b>"}])
def test_a_row_without_subject_date_and_sender_belongs_to_no_email(row):
    assert READER.read(row, "text").key == ""


def test_a_subject_is_one_line_of_decoded_text():
    assert READER.read({"subject": "Field\r\n trip\u0085slip"}, "").subject == "Field trip slip"
    assert READER.read({"subject": "=?utf-8?q?Caf=C3=A9?= evening"}, "").subject == "Café evening"


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


@given(st.dictionaries(st.sampled_from([*SUBJECTS, *DATES, *SENDERS, *KINDS, "message_id"]) | st.text(), VALUES))
def test_any_metadata_can_be_read(row):
    fields = READER.read(row, "text", "id")
    assert fields.kind in ("email", "newsletter")
    assert len(fields.subject.splitlines()) <= 1
    assert bool(fields.key) == bool(fields.subject or fields.sender or fields.day)


def test_an_explicit_kind_outweighs_a_file_s_name():
    assert READER.read({"subject": "x", "source_type": "email", "source": "newsletters/a.eml"}, "").kind == "email"
    assert READER.read({"subject": "x", "source": "newsletter"}, "").kind == "newsletter"


@pytest.mark.parametrize("zone", ["UTC+3", "/etc/localtime", "EST5EDT,M3.2.0,M11.1.0", "Mars", "..", "Europe"])
def test_a_zone_that_can_t_be_used_is_refused_at_once(zone):
    with pytest.raises(ConfigError, match="Europe/Berlin"):
        Settings.load(timezone=zone)
