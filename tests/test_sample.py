from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date, timedelta
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from html.parser import HTMLParser
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from brain_pipeline.sample import sample_mail

FILES = sorted(sample_mail().glob("*.eml"))
SHOWCASE = "2025-09-15-field-trip-permission-slip.eml"
QUESTIONS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "family_questions.jsonl").read_text(encoding="utf-8").splitlines()
]
UNANSWERABLE = {"unanswerable_far", "unanswerable_near", "smalltalk"}
KINDS = {
    "names", "amounts", "dates", "negation", "siblings", "last_year", "moved", "series", "other_language", "long_mail",
    "newsletter_table", "paraphrase", "plain", *UNANSWERABLE,
}  # fmt: skip

WEEKDAYS = [
    ("mon", "montag", "lunes"),
    ("tue", "dienstag", "martes"),
    ("wed", "mittwoch", "miércoles"),
    ("thu", "donnerstag", "jueves"),
    ("fri", "freitag", "viernes"),
    ("sat", "samstag", "sábado"),
    ("sun", "sonntag", "domingo"),
]
MONTHS = [
    ("jan", "januar", "enero"),
    ("feb", "februar", "febrero"),
    ("mar", "märz", "marzo"),
    ("apr", "april", "abril"),
    ("may", "mai", "mayo"),
    ("jun", "juni", "junio"),
    ("jul", "juli", "julio"),
    ("aug", "august", "agosto"),
    ("sep", "september", "septiembre"),
    ("oct", "oktober", "octubre"),
    ("nov", "november", "noviembre"),
    ("dec", "dezember", "diciembre"),
]


def one_of(names: list[str]) -> str:
    return "|".join(names)


ENGLISH_DATE = re.compile(
    rf"\b({one_of([day[0] for day in WEEKDAYS])})[a-z]*,? ({one_of([month[0] for month in MONTHS])})[a-z]*\.? "
    r"(\d{1,2})\b(?:, (\d{4}))?",
    re.IGNORECASE,
)
FOREIGN_DATE = re.compile(
    rf"\b({one_of([name for day in WEEKDAYS for name in day[1:]])}),?(?: den)? (\d{{1,2}})\.?(?: de)? "
    rf"({one_of([name for month in MONTHS for name in month[1:]])})\b",
    re.IGNORECASE,
)


class _Visible(HTMLParser):
    """Collects what a browser would show as text."""

    SILENT = frozenset({"head", "style", "script", "title"})

    def __init__(self) -> None:
        super().__init__()
        self.silenced_by: list[str] = []
        self.pieces: list[str] = []

    def handle_starttag(self, tag, attrs):
        hidden = "display:none" in (dict(attrs).get("style") or "")
        if (self.silenced_by and tag == self.silenced_by[0]) or (
            not self.silenced_by and (tag in self.SILENT or (hidden and tag != "img"))
        ):
            self.silenced_by.append(tag)

    def handle_endtag(self, tag):
        if self.silenced_by and tag == self.silenced_by[0]:
            self.silenced_by.pop()

    def handle_data(self, data):
        if not self.silenced_by:
            self.pieces.append(data)


def parse(name: str) -> EmailMessage:
    return BytesParser(policy=policy.default).parsebytes((sample_mail() / name).read_bytes())


def visible(name: str) -> str:
    """Subject and every text part of a message, white space collapsed."""
    message = parse(name)
    pieces = [message["subject"] or ""]
    for part in message.walk():
        if part.get_content_type() == "text/html":
            reader = _Visible()
            reader.feed(part.get_content())
            pieces.extend(reader.pieces)
        elif part.get_content_maintype() == "text":
            pieces.append(part.get_content())
    return " ".join(" ".join(pieces).split())


def named_days(text: str, sent: date):
    """(day as written, weekday as written) for every date in ``text`` that stands beside a weekday."""
    for day_name, month, day, year in ENGLISH_DATE.findall(text):
        yield meant(int(day), place(month, MONTHS) + 1, year, sent), place(day_name, WEEKDAYS)
    for day_name, day, month in FOREIGN_DATE.findall(text):
        yield meant(int(day), place(month, MONTHS) + 1, "", sent), place(day_name, WEEKDAYS)


def place(name: str, table: list[tuple[str, ...]]) -> int:
    return next(number for number, names in enumerate(table) if name.lower() in names)


def meant(day: int, month: int, year: str, sent: date) -> date:
    """The date that a writer means by a day and a month: mail looks ahead, and back two months at most."""
    years = [int(year)] if year else [sent.year - 1, sent.year, sent.year + 1]
    return next(d for d in (date(y, month, day) for y in years) if year or d > sent - timedelta(days=60))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_message_is_well_formed_and_named_by_its_day(path):
    message = parse(path.name)
    assert not [defect for part in message.walk() for defect in part.defects]
    assert not [defect for value in message.values() for defect in value.defects]
    sent = message["date"].datetime
    assert sent.date().isoformat() == path.name[:10]
    assert sent.utcoffset() is not None
    assert re.fullmatch(r"<[^<>@\s]+@[^<>@\s]+\.example>", message["message-id"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_weekdays_are_those_of_the_calendar(path):
    sent = parse(path.name)["date"].datetime
    wrong = [str(day) for day, weekday in named_days(visible(path.name), sent.date()) if day.weekday() != weekday]
    assert not wrong
    # The sender's clock: the United States' or, for the grandmother, Germany's, with the daylight saving of that day.
    zones = ("America/Chicago", "America/New_York", "Europe/Berlin")
    assert sent.utcoffset() in [sent.astimezone(ZoneInfo(zone)).utcoffset() for zone in zones]


def test_the_calendar_check_sees_dates_in_three_languages():
    texts = " ".join(visible(path.name) for path in FILES)
    assert len(ENGLISH_DATE.findall(texts)) > 100
    assert len(FOREIGN_DATE.findall(texts)) > 8
    assert list(named_days("Monday, September 16 and viernes 19 de septiembre", date(2025, 9, 15))) == [
        (date(2025, 9, 16), 0),
        (date(2025, 9, 19), 4),
    ]


def test_the_showcase_mail():
    message = parse(SHOWCASE)
    assert message["subject"] == "Field Trip Permission Slip"
    assert message["date"].datetime.isoformat() == "2025-09-15T15:42:07-05:00"
    text = visible(SHOWCASE)
    assert all(need in text for need in ("permission slip", "$5", "packed lunch", "green class shirt", "Friday"))


def test_only_reserved_domains_and_numbers_are_used():
    for path in FILES:
        message = parse(path.name)
        everything = [*(str(value) for value in message.values())]
        everything += [part.get_content() for part in message.walk() if part.get_content_maintype() == "text"]
        text = "\n".join(everything).replace("http://www.w3.org/", "")
        hosts = re.findall(r"@([\w.-]+\w)", text) + re.findall(r"https?://([\w.-]+)", text)
        assert all(host == "media" or host.endswith(".example") for host in hosts), path.name
        assert all(number.startswith("01") for number in re.findall(r"\b555-(\d{4})\b", text)), path.name


def test_the_sample_is_small_and_varied():
    sizes = [path.stat().st_size for path in FILES]
    assert 60 <= len(FILES) <= 80
    assert max(sizes) < 60_000
    assert sum(sizes) < 400_000
    messages = [parse(path.name) for path in FILES]
    parts = [part for message in messages for part in message.walk()]
    assert {part.get_content_type() for part in parts} >= {
        "text/plain", "text/html", "text/calendar", "multipart/alternative", "multipart/mixed"
    }  # fmt: skip
    assert {(part["content-transfer-encoding"] or "7bit").lower() for part in parts} == {
        "7bit", "8bit", "quoted-printable", "base64"
    }  # fmt: skip
    assert {"iso-8859-1", "utf-8", "us-ascii"} <= {part.get_content_charset() for part in parts}
    assert sum(message.get_content_type() == "text/html" for message in messages) >= 10
    assert sum(message["list-id"] is not None for message in messages) >= 10
    assert [message["subject"] for message in messages].count(None) == 1
    assert sum(part.is_attachment() for part in parts) >= 2
    assert any(b"\nSubject:" in path.read_bytes() and b"=?iso-8859-1?Q?" in path.read_bytes() for path in FILES)
    assert sum(len(visible(path.name)) > 2_000 for path in FILES) >= 8
    ids = Counter(message["message-id"] for message in messages)
    assert sorted(ids.values())[-2:] == [1, 2]


def test_every_question_is_complete():
    assert len({question["id"] for question in QUESTIONS}) == len(QUESTIONS)
    assert len({question["question"] for question in QUESTIONS}) == len(QUESTIONS)
    known = {path.name for path in FILES}
    for question in QUESTIONS:
        assert question["kind"] in KINDS, question["id"]
        assert question["split"] in {"tune", "test"}
        answerable = question["kind"] not in UNANSWERABLE
        for field in ("gold", "keys", "answer"):
            assert bool(question[field]) == answerable, question["id"]
        assert set(question["gold"]) <= known, question["id"]
        if "now" in question:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", question["now"])
            ZoneInfo(question["zone"])


def test_every_key_stands_in_every_gold_mail():
    texts = {path.name: visible(path.name).casefold() for path in FILES}
    missing = [
        (question["id"], name, key)
        for question in QUESTIONS
        for name in question["gold"]
        for key in question["keys"]
        if key.casefold() not in texts[name]
    ]
    assert not missing


def test_no_answer_lies_in_the_future_of_its_question():
    late = [
        (question["id"], name)
        for question in QUESTIONS
        if "now" in question
        for name in question["gold"]
        if name[:10] > question["now"][:10]
    ]
    assert not late


def test_every_kind_is_covered_and_split_evenly():
    kinds = Counter(question["kind"] for question in QUESTIONS)
    assert set(kinds) == KINDS
    assert min(kinds.values()) >= 10
    assert len(QUESTIONS) >= 150
    assert kinds["unanswerable_far"] + kinds["unanswerable_near"] >= 40
    for kind in KINDS:
        split = Counter(question["split"] for question in QUESTIONS if question["kind"] == kind)
        assert split["tune"] - split["test"] in {0, 1}, kind


def test_the_showcase_question_leads_to_the_showcase_mail():
    (showcase,) = [q for q in QUESTIONS if q["question"] == "What do the kids need for the field trip?"]
    assert SHOWCASE in showcase["gold"]
