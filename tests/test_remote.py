"""Handing work to a brain that another process serves, however slow that one is."""

from __future__ import annotations

import time

import pytest
from fastapi import FastAPI
from live import served

from brain_pipeline import remote
from brain_pipeline.errors import BrainUnavailable, ConfigError
from brain_pipeline.records import RawMessage
from brain_pipeline.remote import RemoteBrain
from brain_pipeline.settings import Settings


@pytest.fixture
def slow():
    app = FastAPI()

    @app.post("/brain/ingest")
    def ingest() -> dict[str, object]:
        time.sleep(0.6)
        return {"new": 1, "updated": 0, "unchanged": 0, "skipped": []}

    @app.get("/brain/stats")
    def stats() -> None:
        time.sleep(0.6)

    with served(app) as url:
        yield url


def test_an_ingestion_is_waited_for_as_long_as_it_takes_and_a_question_is_not(slow, monkeypatch):
    monkeypatch.setattr(remote, "LENIENCE", 0)
    with RemoteBrain(Settings.load(request_timeout=0.2), slow) as brain:
        assert brain.ingest([RawMessage("x", b"Subject: x\n\nx")], on_progress=lambda _: None).new == 1
        with pytest.raises(BrainUnavailable):
            brain.stats()


@pytest.mark.parametrize("url", ["http://198.51.100.7:8000", "http://brain.example:8000", "nonsense"])
def test_mail_is_handed_to_nobody_outside_the_household(url):
    with pytest.raises(ConfigError, match="outside the household"):
        RemoteBrain(Settings.load(), url)
