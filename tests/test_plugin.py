"""The fixtures that the package gives to other people's tests, in a test run of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

RUN = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]
OF_A_HOST = """
import os

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient


def test_the_brain_answers_from_the_sample(brain, scripted_llm):
    answer = brain.query("What do the kids need for the field trip?")
    assert answer.text == "A scripted answer."
    assert answer.sources[0].attribution.endswith("Field Trip Permission Slip, 2025-09-15")
    assert scripted_llm.calls == 1


def test_each_test_has_a_brain_of_its_own(brain, scripted_llm, tmp_path):
    assert scripted_llm.calls == 0
    assert brain.settings.db_path.is_relative_to(tmp_path)
    assert os.environ["CHROMA_DB_PATH"] == "/nowhere"  # the fixture reads past it, and leaves it


def test_an_embedder(hashed_embedder):
    assert len(hashed_embedder.get_text_embedding("zoo")) == 384


def test_the_host_s_own_service(brain):
    from api import mount_brain

    app = FastAPI()
    mount_brain(app, brain=brain)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/brain/query", params={"q": "When is picture day?"}).json()["answer"] == "A scripted answer."


class TestOwnMail:
    @pytest.fixture
    def sample_mail(self):
        return []

    def test_nothing_is_known(self, brain):
        assert brain.stats().total_documents == 0
"""
COLLECTED = """
import sys


def test_nothing_was_loaded():
    heavy = {"llama_index", "chromadb", "numpy", "pydantic", "brain_pipeline.testing", "brain_pipeline.settings"}
    assert "brain_pipeline.testing_fixtures" in sys.modules
    assert not heavy & set(sys.modules)
"""


def run_tests(folder, text):
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_host.py").write_text(text)
    environment = {**os.environ, "CHROMA_DB_PATH": "/nowhere", "BRAIN_ENV": "production"}
    return subprocess.run([*RUN, folder], cwd=folder, env=environment, capture_output=True, text=True)  # noqa: S603, PLW1510


def test_a_host_s_tests_get_a_brain_by_naming_it(tmp_path):
    run = run_tests(tmp_path, OF_A_HOST)
    assert "5 passed" in run.stdout, run.stdout


def test_a_test_run_that_asks_for_nothing_loads_nothing(tmp_path):
    run = run_tests(tmp_path, COLLECTED)
    assert "1 passed" in run.stdout, run.stdout


def test_the_fixtures_are_listed_with_what_they_are(tmp_path):
    command = [*RUN, "--fixtures", tmp_path]
    listed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout  # noqa: S603
    for name in ("brain", "scripted_llm", "hashed_embedder", "sample_mail"):
        assert f"{name} -- " in listed


@pytest.fixture
def brain():
    return "this project's own"


def test_a_fixture_of_the_same_name_wins(brain):
    assert brain == "this project's own"
