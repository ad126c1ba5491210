"""Real awkward mail, newsletters and mailboxes, read as their expected answers say."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import pytest

from brain_pipeline.mail.mailboxes import iter_messages
from brain_pipeline.mail.message import read_message
from brain_pipeline.mail.parts import whole_text
from brain_pipeline.records import Mail, RawMessage

SHARED = Path(os.environ.get("BRAIN_SHARED") or Path(__file__).parents[2] / "shared") / "mail"


def rows(name):
    path = SHARED / name
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []
    return [pytest.param(row, id=row["file"]) for row in found]


def one_line(text):
    return " ".join(text.split())


def read(name):
    mail = read_message((SHARED / name).read_bytes())
    assert isinstance(mail, Mail), mail
    return mail


def is_sound(mail):
    everything = repr(mail) + mail.subject + mail.text + mail.quoted + mail.sender + "".join(mail.recipients)
    everything.encode("utf-8")
    return "\n" not in mail.subject and "\0" not in everything


@pytest.mark.parametrize("row", rows("expected.jsonl"))
def test_awkward_message(row):
    mail = read(row["file"])
    assert is_sound(mail)
    found = {
        "subject": mail.subject or None,
        "date": mail.date,
        "from": mail.sender_address.lower() or None,
        "phrase": one_line(row["phrase"] or "") in one_line(whole_text(mail)),
    }
    wanted = {
        "subject": one_line(row["subject"]) if row["subject"] else None,
        "date": datetime.fromisoformat(row["date"]) if row["date"] else None,
        "from": row["from"].lower() if row["from"] else None,
        "phrase": True,
    }
    assert {name: found[name] for name in row["strict"]} == {name: wanted[name] for name in row["strict"]}


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.name) for path in sorted((SHARED / "torture").glob("*.eml"))]
)
def test_no_message_crashes_or_loses_its_text(path):
    raw = path.read_bytes()
    mail = read_message(raw)
    if raw.startswith(b"\xd0\xcf\x11\xe0"):
        assert "Outlook" in mail.reason
        return
    assert isinstance(mail, Mail)
    assert is_sound(mail)
    assert mail == read_message(raw)
    body = raw.replace(b"\r\n", b"\n").partition(b"\n\n")[2]
    if b"ontent-" not in raw and body.isascii():
        words = set(body.decode("ascii").split())
        assert words <= set(whole_text(mail).split())


@pytest.mark.parametrize("row", rows("newsletters_expected.jsonl"))
def test_newsletter(row):
    mail = read(row["file"])
    # The expected phrases keep C1 bytes of Windows-1252 that a reader sees as quotation marks.
    phrase = "".join(c.encode("latin-1").decode("cp1252") if "\x80" <= c <= "\x9f" else c for c in row["phrase"])
    assert one_line(phrase) in one_line(mail.text)
    lines = mail.text.split("\n")
    assert not [text for text in row["hidden_text"] if text in lines]
    if row["unsubscribe"]:
        assert mail.kind == "newsletter"
        assert not [line for line in lines if "unsubscribe" in line.lower() and len(line) < 300]
    if row["date"]:
        assert mail.date == datetime.fromisoformat(row["date"])


@pytest.mark.parametrize("row", rows("mbox_expected.jsonl"))
def test_mailbox(row):
    messages = list(iter_messages([SHARED / row["file"]]))
    assert len(messages) == row["n_messages"]
    mails = [read_message(message.content) for message in messages if isinstance(message, RawMessage)]
    for mail, wanted in zip(mails, row.get("messages", []), strict=False):
        assert (mail.message_id, mail.subject) == (wanted["message_id"], wanted["subject"])
        assert all(line in mail.text for line in wanted["body_lines_starting_From"])
