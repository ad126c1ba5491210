"""A small invented household for tests that need some mail and not the sample mailbox."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from multiprocessing.synchronize import Event
from typing import Any

from brain_pipeline.brain import Brain
from brain_pipeline.records import Kind, Mail
from brain_pipeline.settings import Settings

CENTRAL = timezone(timedelta(hours=-5))


def mail(subject: str, text: str, *, day: int = 15, kind: Kind = "email", **more: Any) -> Mail:
    """A mail of September 2025."""
    sent = datetime(2025, 9, day, 18, 30, tzinfo=CENTRAL)
    return Mail(
        message_id=more.pop("message_id", f"<{'-'.join(subject.lower().split())}-{day}@school.example>"),
        subject=subject,
        date=more.pop("date", sent),
        sender_name=more.pop("sender_name", "Ms. Okafor"),
        sender_address=more.pop("sender_address", "okafor@school.example"),
        kind=kind,
        text=text,
        **more,
    )


SLIP = mail("Field Trip Permission Slip", "Every child needs a signed permission slip and $5 for the zoo field trip.")
BAKE = mail("Bake sale", "Please bring cookies to the bake sale in the gym on Saturday at nine.", day=18)
PIANO = mail("Piano recital", "The piano recital is on Sunday at two in the church hall.", day=20)
WEEKLY = mail("Otter weekly", "Library books are due on Monday. The field day is in May.", day=12, kind="newsletter")
HOUSEHOLD = (SLIP, BAKE, PIANO, WEEKLY)


def fill(brain: Brain, mails: Iterable[Mail] = HOUSEHOLD) -> Brain:
    """Brings mails into a brain."""
    brain.ingest_mails((f"mail {number}", each) for number, each in enumerate(mails))
    return brain


def settings_for(ollama_url: str, **more: Any) -> Settings:
    """Settings with both models on one Ollama server and short patience."""
    given = {
        "ollama_base_url": ollama_url,
        "llm_url": ollama_url,
        "embed_connect_timeout": 0.5,
        "embed_read_timeout": 1,
        "llm_connect_timeout": 0.5,
        "llm_read_timeout": 1,
        "request_timeout": 3,
        "timezone": "America/Chicago",
        "warm_up": False,
    }
    return Settings.load(**{**given, **more})


@contextmanager
def held_elsewhere(settings: Settings) -> Iterator[multiprocessing.process.BaseProcess]:
    """Another process that holds the database; killed at the end, unless the test does that before."""
    context = multiprocessing.get_context("spawn")
    opened = context.Event()
    holder = context.Process(target=_hold, args=(settings, opened))
    holder.start()
    try:
        assert opened.wait(20)
        yield holder
    finally:
        holder.kill()
        holder.join()


def _hold(settings: Settings, opened: Event) -> None:
    with Brain(settings) as brain:
        brain.stats()
        opened.set()
        time.sleep(20)
