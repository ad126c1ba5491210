"""Mail in files, folders and archives: every message once, and a reason for all else."""

from __future__ import annotations

import io
import os
import sys
import tracemalloc
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain_pipeline.errors import MailError
from brain_pipeline.mail.mailboxes import iter_messages, mbox
from brain_pipeline.mail.mailboxes.mbox import split_mbox
from brain_pipeline.records import RawMessage, Skip

MESSAGE = b"Subject: %d\n\nBus at eight.\n"
SEPARATOR = b"From ada@example.org Mon Sep 15 09:00:00 2025\n"


def box(count, separator=SEPARATOR):
    return b"".join(separator + MESSAGE % n + b"\n" for n in range(count))


def contents(*paths):
    return [one.content for one in iter_messages(paths) if isinstance(one, RawMessage)]


def reasons(*paths):
    return [one.reason for one in iter_messages(paths) if isinstance(one, Skip)]


@pytest.mark.parametrize(
    "separator",
    [
        SEPARATOR,
        b"From - Mon Sep 15 09:00:00 2025\n",
        b"From MAILER-DAEMON Mon Sep  1 9:00 2025\n",
        b"From 1841@xxx Mon Sep 15 09:00:00 +0000 2025\r\n",
        b"From ada@example.org  Mon, 15 Sep 2025 09:00:00 +0200\n",
        b"From ada@example.org Mon Sep 15 09:00:00 EDT 2025 remote from here\n",
    ],
)
def test_mbox_separators(separator):
    found = list(split_mbox(io.BytesIO(box(3, separator)), "a"))
    if b"remote" in separator:
        assert len(found) == 1
    else:
        assert found == [RawMessage(f"a#{n + 1}", MESSAGE % n) for n in range(3)]


@pytest.mark.parametrize(
    "line",
    [
        b"From the school: closed on Monday\n",
        b"From Monday Sep 15 on, all is new\n",
        b"From now on\nSubject: of discussion\n",
        b"From ada@example.org Mon Sep 15 09:00:00 2025\nno header follows\n",
    ],
)
def test_from_in_a_text_does_not_split(line):
    first = SEPARATOR + MESSAGE % 1 + b"\n" + line + b"\n"
    assert contents(io.BytesIO(first + box(1))) == [MESSAGE % 1 + b"\n" + line, MESSAGE % 0]


def test_escaped_from_lines_lose_one_mark():
    body = b"Subject: x\n\n>From here\n>>From there\n\n> reply\n>From a reply\n"
    assert contents(io.BytesIO(SEPARATOR + body)) == [
        b"Subject: x\n\nFrom here\n>From there\n\n> reply\n>From a reply\n"
    ]


def test_messages_may_follow_without_a_blank_line():
    assert len(contents(io.BytesIO((SEPARATOR + b"Subject: x\n\nbody\n") * 3))) == 3


def test_a_huge_message_is_skipped_and_the_next_one_read(monkeypatch):
    monkeypatch.setattr(mbox, "MAX_MESSAGE_BYTES", 10_000)
    huge = SEPARATOR + b"Subject: x\n\n" + b"y" * 20_000 + b"\n\n"
    found = list(split_mbox(io.BytesIO(huge + box(1)), "a"))
    assert [type(one) for one in found] == [Skip, RawMessage]
    assert found[0].origin == "a#1"


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([b"a", b"", b">From x", b"From x", b"From: y", b"> q"]), max_size=6), max_size=5)
)
def test_mboxrd_gives_back_what_was_put_in(bodies):
    messages = [b"Subject: x\n\n" + b"".join(line + b"\n" for line in body) for body in bodies]
    quoted = [
        b"".join(b">" + line if line.lstrip(b">").startswith(b"From ") else line for line in message.splitlines(True))
        for message in messages
    ]
    found = contents(io.BytesIO(b"".join(SEPARATOR + message + b"\n" for message in quoted))) if quoted else []
    # A line that begins with > just above an escaped one makes it a reply's, which keeps its mark.
    assert [one.replace(b">", b"") for one in found] == [one.replace(b">", b"") for one in messages]


def test_memory_is_that_of_one_message(tmp_path):
    path = tmp_path / "big.mbox"
    message = (
        SEPARATOR + b"Subject: x\n\n" + b"a line of sixty bytes or so, as they mostly are in messages\n" * 400 + b"\n"
    )
    with path.open("wb") as file:
        for _ in range(400):
            file.write(message)
    tracemalloc.start()
    count = sum(1 for _ in iter_messages([path]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 400
    assert peak < path.stat().st_size / 10


def test_folders_are_read_by_name_at_any_depth(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "1.eml").write_bytes(MESSAGE % 2)
    (tmp_path / "a.eml").write_bytes(MESSAGE % 0)
    (tmp_path / "c.mbox").write_bytes(box(2))
    (tmp_path / "17").write_bytes(MESSAGE % 3)
    (tmp_path / "Inbox").write_bytes(box(1))
    (tmp_path / "Inbox.msf").write_bytes(b"index")
    (tmp_path / "photo.jpg").write_bytes(b"From the beach")
    (tmp_path / "README").write_bytes(b"Only words.")
    origins = [one.origin.removeprefix(f"{tmp_path}/") for one in iter_messages([tmp_path])]
    assert origins == [
        "17",
        "Inbox#1",
        "Inbox.msf",
        "README",
        "a.eml",
        "c.mbox#1",
        "c.mbox#2",
        "photo.jpg",
        "b/1.eml",
    ]
    assert reasons(tmp_path) == ["not a mail file"] * 3


def test_maildir(tmp_path):
    for folder in ("cur", "new", "tmp", ".School/cur", ".School.Class 2/new"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "1757.M1P2.host,S=30:2,S").write_bytes(MESSAGE % len(folder))
    assert sorted(contents(tmp_path)) == sorted(MESSAGE % n for n in (3, 3, 11, 19))


def test_emlx(tmp_path):
    plist = b'<?xml version="1.0" encoding="UTF-8"?>\n<plist></plist>\n'
    message = MESSAGE % 1
    (tmp_path / "1.emlx").write_bytes(b"%-10d\n" % len(message) + message + plist)
    (tmp_path / "2.partial.emlx").write_bytes(b"999999\n" + message + plist)
    (tmp_path / "3.emlx").write_bytes(message)
    assert contents(tmp_path) == [message] * 3


def zip_of(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    file.seek(0)
    return file


def test_zip(tmp_path):
    members = {
        "Takeout/Mail/All.mbox": box(2),
        "../../etc/cur/1": MESSAGE % 5,
        "one.eml": MESSAGE % 6,
        "x.jpg": b"x",
        "inner.zip": zip_of({}).read(),
        "__MACOSX/one.eml": b"x",
    }
    found = list(iter_messages([zip_of(members)]))
    assert [one.content for one in found if isinstance(one, RawMessage)] == [MESSAGE % n for n in (0, 1, 5, 6)]
    assert [(one.origin, one.reason) for one in found if isinstance(one, Skip)] == [
        ("input/x.jpg", "not a mail file"),
        ("input/inner.zip", "a zip file within a zip file"),
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_zip_bomb_is_skipped_and_the_rest_read():
    members = {
        "a.eml": b"Subject: x\n\n" + bytes(60_000_000),
        "b.mbox": box(1) + bytes(60_000_000),
        "c.eml": MESSAGE % 1,
    }
    found = list(iter_messages([zip_of(members)]))
    assert [one.origin for one in found if isinstance(one, Skip) and "bomb" in one.reason] == [
        "input/a.eml",
        "input/b.mbox",
    ]
    assert found[-1] == RawMessage("input/c.eml", MESSAGE % 1)


def test_a_damaged_member_is_skipped():
    whole = bytearray(zip_of({"a.eml": os.urandom(2000), "b.eml": MESSAGE % 1}).read())
    whole[60:80] = bytes(20)
    found = list(iter_messages([io.BytesIO(bytes(whole))]))
    assert [type(one) for one in found] == [Skip, RawMessage]


def test_a_damaged_zip_is_told_of(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(MailError, match="damaged zip"):
        contents(path)
    assert "damaged zip" in reasons(tmp_path)[0]


@pytest.mark.parametrize("content", [MESSAGE % 1, box(2), zip_of({"a.eml": MESSAGE % 1}).read()])
def test_standard_input_need_not_seek(content, monkeypatch, tmp_path):
    (tmp_path / "-").touch()
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as end:
        end.write(content)
    with os.fdopen(reader) as end:
        monkeypatch.setattr(sys, "stdin", end)
        origins = [one.origin for one in iter_messages([type(tmp_path)("-")])]
    assert all(origin.startswith("-") for origin in origins)
    assert len(origins) == (2 if content.startswith(b"From ") else 1)


def test_an_open_file_stays_open():
    file = io.BytesIO(MESSAGE % 1)
    assert contents(file) == [MESSAGE % 1]
    assert not file.closed


def test_an_eml_file_is_one_message_whatever_it_holds(tmp_path):
    for name, content in (("a.eml", b"no header at all"), ("b.eml", b""), ("c.eml", box(2))):
        (tmp_path / name).write_bytes(content)
        assert contents(tmp_path / name) == [content]


def test_a_page_is_read_when_it_is_named(tmp_path):
    path = tmp_path / "news.html"
    path.write_bytes(b"<html><p>News")
    assert contents(path) == [b"<html><p>News"]
    assert contents(tmp_path) == []


def test_what_does_not_exist_is_told_of_before_anything_is_read(tmp_path):
    with pytest.raises(MailError, match="does not exist"):
        iter_messages([tmp_path, tmp_path / "nowhere"])


def test_what_is_no_mail_is_told_of(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"Only words.")
    with pytest.raises(MailError, match=r"notes\.txt is not mail"):
        contents(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_a_skip_in_a_folder_and_an_error_by_name(tmp_path):
    path = tmp_path / "a.eml"
    path.write_bytes(MESSAGE % 1)
    path.chmod(0)
    assert "can't be read" in reasons(tmp_path)[0]
    with pytest.raises(MailError, match="can't be read"):
        contents(path)
