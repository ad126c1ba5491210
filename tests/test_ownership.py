"""Who may open the database, while others look and ask."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import pytest

from brain_pipeline.errors import StoreLocked
from brain_pipeline.index.ownership import Ownership

# Another process, which looks for ever, or holds the database until its input ends.
LOOKS = """
import sys
from pathlib import Path
from brain_pipeline.index.ownership import Ownership
ownership = Ownership(Path(sys.argv[1]))
print(flush=True)
while True:
    ownership.elsewhere()
"""
HOLDS = """
import sys
from pathlib import Path
from brain_pipeline.index.ownership import Ownership
ownership = Ownership(Path(sys.argv[1]))
ownership.announce("http://127.0.0.1:9")
ownership.take()
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def others(tmp_path):
    """Starts processes that run a program over ``tmp_path``."""
    started = []

    def start(program):
        piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        started.append(subprocess.Popen([sys.executable, "-c", program, tmp_path], **piped))  # noqa: S603
        assert started[-1].stdout.readline()

    start.started = started
    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def ownership(tmp_path):
    return Ownership(tmp_path)


def test_whoever_looks_keeps_nobody_from_taking(ownership, others):
    ownership.take()
    ownership.give_up()
    others(LOOKS)
    others(LOOKS)
    for _ in range(200):
        ownership.take()
        ownership.give_up()


def test_looking_says_who_serves_and_writes_nothing(ownership, others, tmp_path):
    assert ownership.elsewhere() is None
    assert not list(tmp_path.iterdir())
    others(HOLDS)
    written = (tmp_path / "brain.owner.json").stat().st_ino
    assert ownership.elsewhere().url == "http://127.0.0.1:9"
    assert (tmp_path / "brain.owner.json").stat().st_ino == written
    with pytest.raises(StoreLocked, match=r"which serves http://127\.0\.0\.1:9") as locked:
        ownership.take()
    assert locked.value.owner == ownership.holder()


def test_a_second_brain_of_the_serving_process_keeps_its_address(ownership, tmp_path):
    ownership.announce("http://127.0.0.1:9")
    ownership.take()
    second = Ownership(tmp_path / "." / ".." / tmp_path.name)
    second.take()
    assert second.holder().url == "http://127.0.0.1:9"
    second.give_up()
    ownership.give_up()
    ownership.announce("")
    ownership.take()
    assert ownership.holder().url == ""
    ownership.give_up()


def test_whoever_reads_the_owner_reads_all_of_it(ownership):
    ownership.take()
    stop = threading.Event()

    def write():
        while not stop.is_set():
            ownership.announce("http://127.0.0.1:9")

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(300):
            assert json.loads(ownership._owner_file.read_text())["pid"]
    finally:
        stop.set()
        for writer in writers:
            writer.join()
        ownership.announce("")
        ownership.give_up()


CLAIMS = HOLDS.replace("ownership.take()\n", "")


def test_a_service_claims_a_database_that_is_not_there_and_its_end_gives_it_up(tmp_path, others, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ownership = Ownership(tmp_path)
    assert ownership.elsewhere() is None
    others(CLAIMS)
    assert ownership.elsewhere().url == "http://127.0.0.1:9"
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    with pytest.raises(StoreLocked, match=r"which serves http://127\.0\.0\.1:9"):
        ownership.announce("http://127.0.0.1:10")
    ownership.take()  # a claim opens nothing, so it keeps nobody from opening
    ownership.give_up()
    others.started[-1].kill()
    others.started[-1].wait()
    assert ownership.elsewhere() is None
    ownership.announce("http://127.0.0.1:10")
    assert Ownership(tmp_path).elsewhere() is None  # it is this process's own
    ownership.announce("")


def test_without_a_cache_folder_nothing_is_claimed(tmp_path, monkeypatch, caplog):
    (tmp_path / "cache").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Ownership(tmp_path).announce("http://127.0.0.1:10")
    assert "no claim" in caplog.text
    Ownership(tmp_path).announce("")
