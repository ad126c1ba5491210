"""Fixtures that more than one test file uses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ollama_server import OllamaServer, black_holed_url, refused_url


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
