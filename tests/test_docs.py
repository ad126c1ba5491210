"""What the documents tell a reader to do works: their commands, their Python, their how-tos."""

from __future__ import annotations

import json
import mailbox
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from service import Service

from brain_pipeline import Settings, open_brain
from brain_pipeline.mail.mailboxes import iter_messages
from brain_pipeline.sample import sample_mail

ROOT = Path(__file__).parents[1]
DOCUMENTS = {name: (ROOT / name).read_text() for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")}
# What can't be run in a test, and why.
NOT_RUN = {
    "make run": "installs an environment from the package index, then serves; `brain demo` is in test_sample.py",
    "make test": "is this",
    "make lint": "is a step of .ci/run of its own",
    "ollama pull nomic-embed-text && ollama pull qwen2.5-coder:7b": "needs Ollama and downloads gigabytes",
    "python -m build": "writes into the checkout; test_package.py does it elsewhere",
    'pip install "$(ls dist/*.whl)[embedded]"': "needs the package index; test_package.py does it when slow tests run",
    "brain mcp": "speaks a protocol; test_mcp.py does",
}
PLAIN = re.compile(r"(?P<settings>(?:(?:export |; )|\w+=\S+ ?)*)(?:\.venv/bin/)?brain (?P<words>.*)")
READ_ONLY = ("ask", "stats", "parse", "doctor", "curl")


def fenced(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands():
    """Every command of every document, each with the ``export`` lines above it."""
    for name, text in DOCUMENTS.items():
        for block in fenced(text, "sh"):
            exports = []
            for line in re.sub(r"\\\n\s*", "", block).splitlines():
                command = re.sub(r"\s+#\s.*", "", line).strip()
                if command.startswith("export "):
                    exports.append(command)
                if command:
                    yield pytest.param(command, exports, id=f"{name}: {command[:60]}")


def runnable():
    return [each for each in commands() if each.values[0] not in NOT_RUN]


@pytest.fixture(scope="module")
def household(tmp_path_factory):
    """A home like the one that the documents speak of: mail where they look for it, and a brain that holds some."""
    home = tmp_path_factory.mktemp("home")
    (home / "Mail").mkdir()
    (home / "Downloads").mkdir()
    takeout = mailbox.mbox(home / "Mail" / "takeout.mbox")
    for file in sorted(sample_mail().glob("*.eml"))[:6]:
        takeout.add(file.read_bytes())
    takeout.close()
    shutil.make_archive(str(home / "Downloads" / "takeout"), "zip", home / "Mail")
    (home / "questions.jsonl").write_text(
        json.dumps({"question": "When is picture day?", "gold": ["2025-09-10-picture-day-2025.eml"]}) + "\n"
    )
    programs = home / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "brain").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m brain_pipeline.cli "$@"\n')
    (programs / "brain").chmod(0o755)
    with open_brain(Settings.load(environment="embedded", data_dir=home / "data", timezone="UTC")) as brain:
        brain.ingest(iter_messages([sample_mail()]))
    return home


@pytest.fixture(scope="module")
def environment(household):
    return {
        "HOME": str(household),
        "PATH": f"{household / '.venv' / 'bin'}:{os.environ['PATH']}",
        "BRAIN_ENV": "embedded",
        "BRAIN_DATA_DIR": str(household / "data"),
        "BRAIN_PORT": "0",
        "XDG_CACHE_HOME": str(household / "cache"),
    }


@pytest.fixture(scope="module")
def served(household, environment):
    """The address of the service that the documents ask at 127.0.0.1:8000."""
    shutil.copytree(household / "data", household / "served")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Service(port, {**environment, "BRAIN_DATA_DIR": str(household / "served")}, household / "log") as service:
        yield service.url.removeprefix("http://")


def filled_in(command, household, other_programs, request):
    """A command with this household's places in it."""
    if "/path/to/chroma" in command:
        copied = household / "copied" / "chroma"
        if not copied.exists():
            shutil.copytree(other_programs.folder / "chroma-1.0.20-default-ef", copied)
        command = command.replace("/path/to/chroma", str(copied))
    if "127.0.0.1:8000" in command:
        command = command.replace("127.0.0.1:8000", request.getfixturevalue("served"))
        command = command.replace("curl ", "curl --silent --show-error --fail ")
    return command.replace("--mail DIR", f"--mail {sample_mail()}")


def in_a_shell(script, household, environment):
    """Status and output of a script; a service is stopped with Ctrl-C once it serves."""
    with subprocess.Popen(  # noqa: S603
        ["/bin/bash", "-ec", script],
        cwd=household,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            if script.endswith(" serve"):
                assert "Serving http://" in process.stdout.readline(), process.stderr.read()
                os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=60)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out, err


@pytest.mark.parametrize(("documented", "exports"), runnable())
def test_a_documented_command_works(
    documented, exports, household, environment, other_programs, request, monkeypatch, command
):
    script = "; ".join([*exports, filled_in(documented, household, other_programs, request)])
    plain = PLAIN.fullmatch(script)
    if plain and plain["words"] != "serve":  # in this process: importing what each needs takes seconds
        monkeypatch.chdir(household)
        settings = shlex.split(re.sub(r"export |; ", " ", plain["settings"]))
        for name, value in (*environment.items(), *(each.split("=", 1) for each in settings)):
            monkeypatch.setenv(name, value.replace("~", str(household)))
        status, out, err = command(*(word.replace("~", str(household)) for word in shlex.split(plain["words"])))
    else:
        status, out, err = in_a_shell(script, household, environment)
    assert status == 0, out + err
    if any(word in script for word in READ_ONLY):
        assert out.strip(), script


def test_what_is_not_run_is_still_documented():
    documented = {each.values[0] for each in commands()}
    assert set(NOT_RUN) <= documented


def test_commands_named_in_passing_exist():
    helped = subprocess.run([sys.executable, "-m", "brain_pipeline.cli", "--help"], capture_output=True, text=True)  # noqa: PLW1510
    for text in DOCUMENTS.values():
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for words in re.findall(r"`(?:[A-Z_]+=\S+ )*make ([a-z-]+)`", prose):
            subprocess.run(["make", "--dry-run", words], cwd=ROOT, check=True, capture_output=True)  # noqa: S603, S607
        for name in re.findall(r"`(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?brain ([a-z]+)[^`]*`", prose):
            assert re.search(rf"\b{name}\b", helped.stdout), name


def test_the_readme_s_python_runs(household, monkeypatch, brain, scripted_llm):
    monkeypatch.setenv("BRAIN_ENV", "embedded")
    monkeypatch.setenv("BRAIN_DATA_DIR", str(household / "data"))
    app = FastAPI()
    names = {"app": app, "TestClient": lambda app: TestClient(app, base_url="http://127.0.0.1")}
    for block in fenced(DOCUMENTS["README.md"], "python"):
        if "household_brain" not in block:  # what callers wrote before
            exec(block, names)  # noqa: S102  (our own document)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/brain/stats").json()["total_documents"] > 60
    assert names["answer"].sources
    names["brain"].close()
    names["test_the_dashboard_asks_the_brain"](FastAPI(), brain, scripted_llm)


# The how-tos of ARCHITECTURE.md, followed in a copy of the package.


@pytest.fixture
def copied(tmp_path):
    for folder in ("brain_pipeline", "configs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def how_to(title):
    """The text of a how-to, and its snippets."""
    text = DOCUMENTS["ARCHITECTURE.md"].split("## How to")[1]
    text = text.split(f"**{title}**")[1].split("\n**")[0]
    [module] = re.findall(r"`(brain_pipeline/[\w/]+(?:\.py|/))`", text)
    return module, fenced(text, "python")


def run_in(copied, *words):
    environment = {
        **os.environ,
        "PYTHONPATH": str(copied),
        "BRAIN_ENV": "embedded",
        "BRAIN_DATA_DIR": str(copied / "x"),
    }
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=copied, env=environment, capture_output=True, text=True)  # noqa: S603, PLW1510
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_another_writer_s_metadata_by_one_line(copied):
    module, [line] = how_to("Understand another writer's metadata.")
    path = copied / module
    text = path.read_text()
    changed, count = re.subn(r"^    SUBJECT: \(SUBJECT, .*\n", line, text, flags=re.MULTILINE)
    assert count == 1
    read = (
        "from datetime import UTC; from brain_pipeline.index.metadata import MetadataReader;"
        "print(MetadataReader(UTC).read({'betreff': 'Zoo'}, 'x', '1').subject)"
    )
    assert run_in(copied, "-c", read) == ""
    path.write_text(changed)
    assert run_in(copied, "-c", read) == "Zoo"


def test_a_postprocessor_by_one_module(copied):
    module, [written, listed] = how_to("Add a postprocessor.")
    path = copied / module
    text = path.read_text()
    changed, count = re.subn(r"^    return \[OnePerEmail\(.*\n", listed, text, flags=re.MULTILINE)
    assert count == 1
    before, found, after = changed.partition("def postprocessors(")
    assert found
    path.write_text(f"{before}{written}\n\n{found}{after}")
    ask = (
        "from brain_pipeline import open_brain\n"
        "brain = open_brain()\n"
        "brain.ingest_email('The zoo trip needs boots and a coat.', subject='Zoo trip')\n"
        "brain.ingest_email('The zoo trip needs money.', subject='Zoo trip money', date=__import__('datetime')"
        ".datetime(2025, 9, 15))\n"
        "print([each.removed for each in brain.explain('zoo trip boots').candidates if each.source.day is None])\n"
    )
    assert run_in(copied, "-c", ask) == "['removed by NoUnknownDates']"


def test_a_command_by_one_module(copied):
    folder, [written] = how_to("Add a command.")
    [name] = re.findall(r"`(\w+\.py)`", DOCUMENTS["ARCHITECTURE.md"].split("**Add a command.**")[1])
    (copied / folder / name).write_text(written)
    assert run_in(copied, "-m", "brain_pipeline.cli", "where") == str(copied / "x" / "embedded" / "chroma")
    assert "where" in run_in(copied, "-m", "brain_pipeline.cli", "--help")
