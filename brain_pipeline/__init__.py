"""Ask a household's own emails and newsletters a question, and be told where the answer was found."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brain_pipeline.brain import Brain as Brain
    from brain_pipeline.brain import open_brain as open_brain
    from brain_pipeline.settings import Settings as Settings

__all__ = ["Brain", "Settings", "open_brain"]

# onnxruntime, which Chroma imports, reports to its vendor unless this stands before its import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_HOMES = {"Brain": "brain_pipeline.brain", "open_brain": "brain_pipeline.brain", "Settings": "brain_pipeline.settings"}


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first used: Chroma and LlamaIndex take seconds."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
