"""The bundled sample: the mail of an invented family, September 2024 to January 2026, and its calendar."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def sample_mail() -> Path:
    """The directory of the sample's ``.eml`` files."""
    return Path(str(files(__name__) / "mail"))


def sample_calendar() -> Path:
    """The family's calendar, an ``.ics`` file."""
    return Path(str(files(__name__) / "calendar.ics"))
