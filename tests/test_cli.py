"""The command line as a person uses it, wrong input included."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from email.message import EmailMessage
from pathlib import Path

import httpx
import pytest

from brain_pipeline.index.ownership import Ownership
from brain_pipeline.records import NOT_FOUND
from brain_pipeline.settings import Settings

BRAIN = [sys.executable, "-m", "brain_pipeline.cli"]


@pytest.fixture(autouse=True)
def _embedded(monkeypatch, tmp_path):
    monkeypatch.setenv("BRAIN_ENV", "embedded")
    monkeypatch.setenv("CHROMA_DB_PATH", str(tmp_path / "chroma"))
    monkeypatch.setenv("BRAIN_TIMEZONE", "America/Chicago")


@pytest.fixture
def brain(command):
    return command


@pytest.fixture
def slip(tmp_path):
    mail = EmailMessage()
    mail["Subject"] = "Field Trip Permission Slip"
    mail["From"] = "Ms. Okafor <okafor@school.example>"
    mail["Date"] = "Mon, 15 Sep 2025 15:42:07 -0500"
    mail["Message-ID"] = "<slip@school.example>"
    mail.set_content("For the field trip the kids need a signed permission slip and $5.\n")
    path = tmp_path / "slip.eml"
    path.write_bytes(bytes(mail))
    return path


def test_from_mail_to_answer(brain, slip):
    assert brain("ingest", slip)[:2] == (0, "1 new, 0 updated, 0 unchanged, 0 skipped\n")
    assert brain("ingest", slip)[:2] == (0, "0 new, 0 updated, 1 unchanged, 0 skipped\n")
    code, out, _ = brain("ask", "What do the kids need for the field trip?")
    assert code == 0
    assert "a signed permission slip and $5" in out
    assert "Found in: Field Trip Permission Slip, 2025-09-15" in out
    code, out, _ = brain("stats")
    assert code == 0
    assert "1 emails in 1 chunks" in out


def test_a_question_that_the_mail_does_not_answer(brain, slip):
    brain("ingest", slip)
    assert brain("ask", "xylophone zebra quantum")[:2] == (0, f"{NOT_FOUND}\n")


def test_nothing_there_yet(brain, tmp_path):
    code, out, err = brain("ask", "Anything?")
    assert (code, out) == (0, f"{NOT_FOUND}\n")
    assert "brain ingest PATH" in err
    assert "0 emails" in brain("stats")[1]
    assert not (tmp_path / "chroma").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("ask", "  "), 1, "The question is empty"),
        (("ask", "Why?", "--top-k", "0"), 1, "1 or more"),
        (("ingest", "nowhere.mbox"), 1, "nowhere.mbox does not exist"),
        (("stats", "--env", "moon"), 1, "Known environments"),
        (("serve", "--port", "99999"), 1, "port"),
        (("frobnicate",), 2, "No such command"),
        (("ask",), 2, "Missing argument"),
    ],
)
def test_wrong_input_is_a_sentence(brain, words, code, said):
    got, _, err = brain(*words)
    assert (got, "Traceback" in err) == (code, False)
    assert said in err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("ask", "What do the kids need for the \udcff field trip?"), 0),
        (("members", "learn", "domain:school.example", "H\udcff"), 0),
        (("members", "learn", "name:Ada\udcff", "Hazel"), 0),
        (("forget", "--yes", "<\udcff@school.example>"), 1),
    ],
)
def test_words_that_are_no_text_are_taken_as_far_as_they_are(brain, slip, words, code):
    brain("ingest", slip)
    got, _, err = brain(*words)
    assert (got, "Traceback" in err) == (code, False), err


def test_a_file_whose_name_is_no_text_is_read_and_named(brain, slip, tmp_path):
    folder = tmp_path / "mail"
    folder.mkdir()
    (folder / "slip\udcff.eml").write_bytes(slip.read_bytes())
    (folder / "empty\udcff.eml").write_bytes(b"")
    code, out, err = brain("ingest", folder)
    assert code == 0, err
    assert "1 new, 0 updated, 0 unchanged, 1 skipped" in out
    assert "empty" in out + err


def test_mail_that_can_t_be_read_is_named_and_is_a_failure_when_it_is_all_there_is(brain, slip, tmp_path):
    (tmp_path / "empty.eml").touch()
    code, out, _ = brain("ingest", tmp_path / "empty.eml")
    assert code == 1
    assert re.search(r"skipped .*empty\.eml: \w", out)
    code, out, _ = brain("ingest", slip, tmp_path / "empty.eml")
    assert code == 0
    assert out.startswith("1 new, 0 updated, 0 unchanged, 1 skipped")


def test_parse_shows_what_is_read_and_stores_nothing(brain, slip, tmp_path):
    (tmp_path / "empty.eml").touch()
    code, out, _ = brain("parse", "--json", slip, tmp_path / "empty.eml")
    assert code == 0
    read, skipped = map(json.loads, out.splitlines())
    assert read == {
        "file": str(slip),
        "message_id": "<slip@school.example>",
        "subject": "Field Trip Permission Slip",
        "date": "2025-09-15T15:42:07-05:00",
        "from": "okafor@school.example",
        "kind": "email",
        "text": "For the field trip the kids need a signed permission slip and $5.",
        "attachments": [],
        "skipped": None,
    }
    assert skipped.keys() == read.keys()
    assert (skipped["text"], bool(skipped["skipped"])) == (None, True)
    assert "email: Field Trip Permission Slip\n2025-09-15 15:42-05:00, from Ms. Okafor" in brain("parse", slip)[1]
    assert not (tmp_path / "chroma").exists()


def test_output_that_nobody_reads_on_is_no_error(tmp_path, slip):
    with (tmp_path / "long.mbox").open("wb") as box:
        for _ in range(3000):
            box.write(b"From okafor@school.example Mon Sep 15 15:42:07 2025\n" + slip.read_bytes() + b"\n")
    parse = [*BRAIN, "parse", str(tmp_path / "long.mbox")]
    with subprocess.Popen(parse, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as piped:  # noqa: S603
        assert piped.stdout.readline()
        piped.stdout.close()
        assert piped.stderr.read() == ""


def test_ctrl_c_stops_an_ingestion_with_a_sentence(brain, tmp_path, slip):
    with (tmp_path / "long.mbox").open("wb") as box:
        for number in range(5_000):
            mail = slip.read_bytes().replace(b"slip@", b"slip%d@" % number).replace(b"$5", b"$%d" % number)
            box.write(b"From okafor@school.example Mon Sep 15 15:42:07 2025\n" + mail + b"\n")
    ingest = [*BRAIN, "ingest", str(tmp_path / "long.mbox")]
    with subprocess.Popen(ingest, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ingesting:  # noqa: S603
        while not list(tmp_path.glob("chroma/brain.keywords.*")):
            assert ingesting.poll() is None
            time.sleep(0.05)
        ingesting.send_signal(signal.SIGINT)
        out, err = ingesting.communicate(timeout=60)
    assert (ingesting.returncode, out) == (130, "")
    assert err == "brain: stopped. What was finished is kept; run the same command again to go on.\n"
    assert brain("stats")[0] == 0


def test_a_port_that_is_taken(brain):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, err = brain("serve", "--port", taken.getsockname()[1])
    assert code == 1
    assert "Choose another with BRAIN_HOST and BRAIN_PORT" in err


def test_the_doctor_finds_what_is_wrong(brain, slip, monkeypatch, nobody):
    code, out, _ = brain("doctor")
    assert code == 1
    assert "BAD database" in out
    assert "brain ingest PATH" in out
    brain("ingest", slip)
    code, out, _ = brain("doctor")
    assert (code, "BAD" in out) == (0, False)
    monkeypatch.setenv("BRAIN_LLM_PROVIDER", "ollama")
    monkeypatch.setenv("LLM_URL", nobody)
    code, out, _ = brain("doctor")
    assert code == 1
    assert f"BAD language model: No model server answers at {nobody}" in out


def test_help_answers_without_the_heavy_libraries(brain):
    code, out, _ = brain("--help")
    assert code == 0
    for command in ("ask", "ingest", "serve", "stats", "doctor", "demo"):
        assert command in out


@pytest.fixture
def served(tmp_path):
    """A brain that another process serves; its URL."""
    log = tmp_path / "serve.log"
    with log.open("w") as output:
        server = subprocess.Popen(  # noqa: S603  (our own command)
            [*BRAIN, "serve", "--port", "0"], stdout=output, stderr=subprocess.STDOUT
        )
        try:
            for _ in range(300):
                if (found := re.search(r"Serving (http://\S+)", log.read_text())) and _answers(found[1]):
                    break
                assert server.poll() is None, log.read_text()
                time.sleep(0.1)
            yield found[1]
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(20) in (0, -signal.SIGINT), log.read_text()


def _answers(url):
    try:
        return httpx.get(f"{url}/healthz").is_success
    except httpx.TransportError:
        return False


def test_while_a_brain_is_served_the_commands_hand_their_work_to_it(brain, served, slip, tmp_path):
    # Nothing exists yet: the first mail makes the database, through the server, which creates nothing by itself.
    assert not Settings.load().db_path.exists()
    assert "0 emails" in brain("stats")[1]
    code, _, err = brain("serve", "--port", "0")
    assert code == 1
    assert f"which serves {served}" in err
    assert not Settings.load().db_path.exists()
    assert brain("ingest", slip)[:2] == (0, "1 new, 0 updated, 0 unchanged, 0 skipped\n")
    owner = Ownership(Settings.load().db_path).elsewhere()
    assert (owner.url, owner.pid != os.getpid()) == (served, True)
    upload = {"files": ("slip.eml", slip.read_bytes(), "message/rfc822")}
    assert httpx.post(f"{served}/brain/ingest", files=upload).json() == {
        "new": 0,
        "updated": 0,
        "unchanged": 1,
        "skipped": [],
    }
    second = tmp_path / "vet.eml"
    second.write_bytes(
        slip.read_bytes().replace(b"slip@", b"vet@").replace(b"field trip the kids need", b"vet we bring")
    )
    (tmp_path / "empty.eml").touch()
    code, out, _ = brain("ingest", second, tmp_path / "empty.eml")
    assert code == 0
    assert out.startswith("1 new, 0 updated, 0 unchanged, 1 skipped")
    assert str(tmp_path / "empty.eml") in out
    assert httpx.get(f"{served}/brain/stats").json()["total_documents"] == 2
    assert "For the vet we bring" in brain("ask", "What do we bring for the vet?")[1]
    assert "2 emails" in brain("stats")[1]
    assert f"which serves it at {served}" in brain("doctor")[1]
    assert brain("ask", " ")[0] == 1
    assert brain("forget", "vet@school.example", "--yes")[:2] == (0, "deleted vet@school.example, 1 passage\n")
    assert httpx.get(f"{served}/brain/stats").json()["total_documents"] == 1
    code, _, err = brain("serve", "--port", "0")
    assert code == 1
    assert f"in use by process {owner.pid}" in err


def test_an_upload_that_is_no_mail_is_named(served):
    files = [("files", ("../../etc/passwd", b"\x00\x01\x02" * 50)), ("files", ("cat.jpg", b"\xff\xd8\xff\xe0" * 50))]
    body = httpx.post(f"{served}/brain/ingest", files=files).json()
    assert (body["new"], len(body["skipped"])) == (0, 2)
    assert all(Path(skipped["origin"]).parts[0] != "/" for skipped in body["skipped"])
    assert httpx.post(f"{served}/brain/ingest").status_code == 422


def test_an_email_is_forgotten_when_that_is_confirmed(brain, slip, monkeypatch):
    brain("ingest", slip)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert brain("forget", "<slip@school.example>")[0] == 1
    assert "1 emails" in brain("stats")[1]
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    code, out, _ = brain("forget", "<slip@school.example>")
    assert (code, out.strip()) == (0, "deleted <slip@school.example>, 1 passage")
    assert "0 emails" in brain("stats")[1]
    code, _, err = brain("forget", "<slip@school.example>", "-y")
    assert code == 1
    assert "There is no email <slip@school.example>" in err
