"""What holds for any bytes, and for any message that is built and then read."""

from __future__ import annotations

import email.policy
from collections import Counter
from datetime import datetime, timedelta, timezone
from email.headerregistry import Address
from email.message import EmailMessage

from hypothesis import given, settings
from hypothesis import strategies as st

from brain_pipeline.mail.message import read_message
from brain_pipeline.mail.parts import whole_text
from brain_pipeline.mail.text import clean
from brain_pipeline.records import Mail, Skip

FRAGMENTS = st.sampled_from(
    [
        b"From: ",
        b"Subject: ",
        b"Date: ",
        b"Content-Type: multipart/mixed; boundary=b\n\n",
        b"Content-Type: multipart/alternative; boundary=b\n",
        b"Content-Type: text/html; charset=",
        b"Content-Type: text/calendar\n\n",
        b"Content-Type: message/rfc822\n\n",
        b"Content-Type: application/ms-tnef\n\n",
        b"Content-Transfer-Encoding: base64\n",
        b"\n--b\n",
        b"\n--b--\n",
        b"=?utf-8?q?",
        b"?=",
        b"=?x?B?",
        b"<div style='",
        b"begin 644 x\n",
        b"BEGIN:VEVENT\n",
        b"name*0*=",
        b"utf-16",
        b"utf-7",
        b"\xff\xfe",
        *(bytes([byte]) for byte in b'\n\r\0<>("@;,\xc3'),
    ]
)


@settings(deadline=None)
@given(st.binary() | st.lists(FRAGMENTS | st.binary(max_size=6), max_size=40).map(b"".join))
def test_any_bytes_are_a_mail_or_a_skip(raw):
    mail = read_message(raw)
    assert mail == read_message(raw)
    if isinstance(mail, Skip):
        assert mail.reason
        return
    assert isinstance(mail, Mail)
    repr(mail).encode("utf-8")
    for text in (mail.subject, mail.text, mail.quoted, mail.sender_name, mail.sender_address, *mail.recipients):
        assert clean(text) == text
    assert "\n" not in mail.subject
    assert mail.date is None or mail.date.isoformat()


WORDS = st.text(st.characters(categories=("L", "N"), max_codepoint=0xFFFF), min_size=1, max_size=12)
LATIN = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzäöüßéèñçàåøæ"), min_size=1, max_size=12)
CYRILLIC = st.text(st.sampled_from("абвгдежзийклмнопрстуфхцчшщъыьэюя"), min_size=1, max_size=12)
KANA = st.text(st.sampled_from("あいうえおかきくけこ日本学校"), min_size=1, max_size=12)
CHARSETS = st.sampled_from(
    [
        ("utf-8", WORDS), ("iso-8859-1", LATIN), ("windows-1252", LATIN), ("iso-8859-15", LATIN), ("koi8-r", CYRILLIC),
        ("windows-1251", CYRILLIC), ("iso-2022-jp", KANA), ("shift_jis", KANA), ("euc-jp", KANA),
    ]
)  # fmt: skip
MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1)).map(lambda one: one.replace(microsecond=0))  # noqa: DTZ001
OFFSETS = st.integers(-12 * 4, 14 * 4).map(lambda quarters: timezone(timedelta(minutes=15 * quarters)))


def without_spaces(text):
    return "".join(text.split())


@st.composite
def texts(draw):
    charset, words = draw(CHARSETS)
    return charset, draw(st.lists(st.lists(words, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=6))


@settings(max_examples=60, deadline=None)  # the standard library folds long headers slowly
@given(
    subject=st.lists(WORDS, min_size=1, max_size=10).map(" ".join),
    name=st.lists(WORDS, min_size=1, max_size=3).map(" ".join),
    moment=st.builds(lambda moment, zone: moment.replace(tzinfo=zone), MOMENTS, OFFSETS),
    body=texts(),
    encoding=st.sampled_from(["base64", "quoted-printable", "8bit"]),
    files=st.integers(0, 3),
)
def test_what_is_built_is_read(*, subject, name, moment, body, encoding, files):
    charset, lines = body
    text = "\n".join(lines)
    message = EmailMessage(policy=email.policy.SMTP)
    message["Subject"] = subject
    message["From"] = Address(name, "ada", "example.org")
    message["To"] = "bo@example.org, cy@example.org"
    message["Date"] = moment
    message.set_content(text, charset=charset, cte=encoding)
    for level in range(files):
        message.add_attachment(b"\0\1", maintype="application", subtype="octet-stream", filename=f"{level}.bin")
    mail = read_message(message.as_bytes())
    assert isinstance(mail, Mail)
    # Where it folds between two encoded words, the standard library's writer drops the space.
    assert without_spaces(mail.subject) == without_spaces(subject)
    assert without_spaces(mail.sender_name) == without_spaces(name)
    assert mail.sender_address == "ada@example.org"
    assert mail.recipients == ("bo@example.org", "cy@example.org")
    assert mail.date == moment
    assert mail.date.utcoffset() == moment.utcoffset() or moment.utcoffset() == timedelta(0)
    assert Counter(whole_text(mail).split()) >= Counter(clean(text).split())


@settings(deadline=None)
@given(body=texts(), depth=st.integers(1, 30), kind=st.sampled_from(["mixed", "related", "signed", "x-odd"]))
def test_text_is_found_at_any_depth(body, depth, kind):
    _, lines = body
    raw = b"".join(b"Content-Type: multipart/%s; boundary=b%d\n\n--b%d\n" % (kind.encode(), n, n) for n in range(depth))
    raw += b"Content-Type: text/plain; charset=utf-8\n\n" + "\n".join(lines).encode()
    mail = read_message(b"Subject: x\n" + raw)
    assert Counter(whole_text(mail).split()) == Counter(clean("\n".join(lines)).split())
