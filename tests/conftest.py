"""Fixtures that more than one test file uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from ollama_server import OllamaServer, black_holed_url, refused_url
from other_programs import OtherPrograms

from brain_pipeline import cli

# How long an example takes says more of the machine than of the code; in CI the examples are the same every time.
hypothesis_settings.register_profile("here", deadline=None)
hypothesis_settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis_settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    """A model server that works until a test says ``ollama.fail(Fault...)``."""
    with OllamaServer() as server:
        yield server


@pytest.fixture
def nobody() -> Iterator[str]:
    """The URL of a server that refuses connections."""
    with refused_url() as url:
        yield url


@pytest.fixture
def black_hole() -> Iterator[str]:
    """The URL of a server that never answers a connection attempt."""
    with black_holed_url() as url:
        yield url


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The ``brain`` command, run in this process: words in; status, stdout and stderr out."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["brain", *map(str, words)])
        code: object = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code or 0
        said = capsys.readouterr()
        return int(str(code)), said.out, said.err

    return run


@pytest.fixture(scope="session")
def other_programs(tmp_path_factory: pytest.TempPathFactory) -> OtherPrograms:
    """Databases that other programs wrote."""
    return OtherPrograms.unpack(tmp_path_factory.mktemp("chroma"))


@pytest.fixture(autouse=True)
def _nobody_elses_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the environment nor the home of whoever runs the tests reaches them."""
    for name in list(os.environ):
        if name.startswith("BRAIN_") and not name.startswith("BRAIN_TEST_") and name != "BRAIN_SHARED":
            monkeypatch.delenv(name)
    for name in ("CHROMA_DB_PATH", "CHROMA_URL", "OLLAMA_BASE_URL", "OLLAMA_EMBED_MODEL", "LLM_URL", "LLM_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BRAIN_ALLOWED_HOSTS", "testserver")  # what Starlette's client calls every application
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data-home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache-home"))
