"""What is read of attachments, and what is said of those that can't be read."""

from __future__ import annotations

import struct
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain_pipeline.mail import tnef
from brain_pipeline.mail.attachments import read_attachment
from brain_pipeline.mail.calendars import calendar_text
from brain_pipeline.mail.message import read_message
from brain_pipeline.records import Attachment


def pdf_of(text):
    """A PDF of one page that says ``text``."""
    drawing = b"BT /F1 12 Tf 72 720 Td (" + text.encode() + b") Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources 5 0 R >>",
        b"<< /Length %d >>\nstream\n" % len(drawing) + drawing + b"\nendstream",
        b"<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>",
    ]
    data, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(data))
        data += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return (
        data
        + b"xref\n0 6\n0000000000 65535 f \n"
        + table
        + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(data)
    )


def test_pdf():
    reading = read_attachment("flyer.pdf", "application/octet-stream", pdf_of("Zoo trip on Friday"))
    assert reading.attachment == Attachment("flyer.pdf", "application/octet-stream", "Zoo trip on Friday")
    assert reading.note == ""


@pytest.mark.parametrize("content", [b"", b"%PDF-1.4\nnothing", pdf_of("x")[:200], pdf_of("")])
def test_a_pdf_without_text_is_named_with_the_reason(content):
    reading = read_attachment("flyer.pdf", "application/pdf", content)
    assert reading.attachment.text == ""
    assert reading.note.startswith("attachment flyer.pdf: the PDF ")


def test_pdf_without_the_extra_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    reading = read_attachment("flyer.pdf", "application/pdf", pdf_of("x"))
    assert "family-brain[pdf]" in reading.note


@settings(deadline=None)
@given(st.binary(max_size=300), st.integers(0, 600))
def test_a_damaged_pdf_never_raises(junk, at):
    whole = pdf_of("Zoo trip")
    read_attachment("flyer.pdf", "application/pdf", whole[:at] + junk + whole[at:])


@pytest.mark.parametrize(
    ("name", "media_type", "content", "text"),
    [
        ("list.txt", "application/octet-stream", b"milk, caf\xe9", "milk, café"),
        ("list.csv", "text/csv", b"a,b\r\n1,2", "a,b\n1,2"),
        ("page.html", "application/octet-stream", b"<p>Zoo<p>trip", "Zoo\n\ntrip"),
        ("page", "text/html", b"<p hidden>no</p>yes", "yes"),
        ("zoo.ics", "application/octet-stream", b"BEGIN:VEVENT\nSUMMARY:Zoo\nEND:VEVENT", "Zoo"),
        ("x.txt", "text/plain", bytes(range(256)), ""),
        ("photo.jpg", "image/jpeg", b"\xff\xd8", ""),
        ("style.css", "text/css", b"p{}", ""),
    ],
)
def test_by_type_and_by_name(name, media_type, content, text):
    assert read_attachment(name, media_type, content).attachment == Attachment(name, media_type, text)


def test_calendar_text_is_kept_for_the_calendar():
    assert read_attachment("", "text/calendar", b"BEGIN:VEVENT\nEND:VEVENT").calendar == "BEGIN:VEVENT\nEND:VEVENT"


def test_calendars_read_as_people_do():
    ics = (
        "BEGIN:VCALENDAR\r\nBEGIN:VTIMEZONE\r\nDTSTART:19700101T000000\r\nEND:VTIMEZONE\r\nBEGIN:VEVENT\r\n"
        "SUMMARY;LANGUAGE=en:Field\\, trip\r\n  to the zoo\r\nDTSTART;VALUE=DATE:20250915\r\nDTEND:20250915T160000Z\r\n"
        "ORGANIZER;CN=Ada:mailto:ada@example.org\r\nDESCRIPTION:Bring\\nboots\r\nUID:1\r\nbroken line\r\n"
        "BEGIN:VALARM\r\nDESCRIPTION:ring\r\nEND:VALARM\r\nEND:VEVENT\r\nBEGIN:VTODO\r\nSUMMARY:Pay\r\nEND:VTODO\r\n"
    )
    assert calendar_text(ics) == (
        "Field, trip to the zoo\nWhen: 2025-09-15\nUntil: 2025-09-15 16:00 UTC\nOrganizer: ada@example.org\n"
        "Bring\nboots\n\nPay"
    )


def tnef_of(*attributes):
    """A TNEF stream of ``(level, id, data)`` attributes."""
    data = struct.pack("<IH", 0x223E9F78, 1)
    for level, number, content in attributes:
        data += struct.pack("<BII", level, number, len(content)) + content + struct.pack("<H", sum(content) & 0xFFFF)
    return data


WINMAIL = tnef_of(
    (1, 0x0002800C, b"Bus at eight.\0"),
    (2, 0x00069002, bytes(14)),
    (2, 0x00018010, b"list.txt\0"),
    (2, 0x0006800F, b"milk and eggs"),
)


def test_winmail_is_unwrapped():
    raw = b"Subject: x\nContent-Type: application/ms-tnef; name=winmail.dat\n\n" + WINMAIL
    mail = read_message(raw)
    assert mail.text == "Bus at eight."
    assert mail.attachments == (Attachment("list.txt", "application/octet-stream", "milk and eggs"),)


def test_winmail_without_the_extra_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "tnefparse", None)
    raw = b"Subject: x\nContent-Type: application/ms-tnef; name=winmail.dat\n\n" + WINMAIL
    mail = read_message(raw)
    assert mail.attachments == (Attachment("winmail.dat", "application/ms-tnef"),)
    assert "family-brain[tnef]" in mail.notes[0]


@settings(deadline=None)
@given(st.binary(max_size=80), st.integers(0, len(WINMAIL)))
def test_damaged_winmail_never_raises(junk, at):
    tnef.unwrap(WINMAIL[:at] + junk + WINMAIL[at:])
