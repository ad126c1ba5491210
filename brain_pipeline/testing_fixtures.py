"""Pytest fixtures for applications that ask the brain: no server, no weights, the same answer every time.

Pytest finds them by itself where the package is installed. Nothing is loaded before a test asks for one, and a fixture
of the same name in a test file or a ``conftest.py`` takes its place, also for the others: with a ``sample_mail`` of
one's own, ``brain`` holds that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from brain_pipeline.brain import Brain
    from brain_pipeline.records import RawMessage, Skip
    from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM


@pytest.fixture
def scripted_llm() -> ScriptedLLM:
    """A language model that says "A scripted answer." and remembers what it was asked."""
    from brain_pipeline.testing import ScriptedLLM  # noqa: PLC0415  (costs nothing when unused)

    return ScriptedLLM()


@pytest.fixture
def hashed_embedder() -> HashedTokenEmbedder:
    """An embedder whose vectors are near when texts share words."""
    from brain_pipeline.testing import HashedTokenEmbedder  # noqa: PLC0415

    return HashedTokenEmbedder()


@pytest.fixture
def sample_mail() -> Iterable[RawMessage | Skip]:
    """The messages of an invented family, as ``Brain.ingest`` takes them."""
    from brain_pipeline.mail.mailboxes import iter_messages  # noqa: PLC0415
    from brain_pipeline.sample import sample_mail  # noqa: PLC0415

    return list(iter_messages([sample_mail()]))


@pytest.fixture
def brain(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scripted_llm: ScriptedLLM,
    hashed_embedder: HashedTokenEmbedder,
    sample_mail: Iterable[RawMessage | Skip],
) -> Iterator[Brain]:
    """A brain over ``sample_mail`` in a directory of the test's own, whatever the environment says."""
    from brain_pipeline.brain import Brain  # noqa: PLC0415
    from brain_pipeline.settings import Settings  # noqa: PLC0415

    with monkeypatch.context() as elsewhere:
        for name in list(os.environ):
            if name.startswith(("BRAIN_", "CHROMA_", "OLLAMA_", "LLM_")):
                elsewhere.delenv(name)
        settings = Settings.load(environment="embedded", data_dir=tmp_path, timezone="UTC", warm_up=False)
    with Brain(settings, embedder=hashed_embedder, llm=scripted_llm) as made:
        made.ingest(sample_mail)
        yield made
