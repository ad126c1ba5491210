"""Ask a household's own emails and newsletters a question, and be told where the answer was found."""

from __future__ import annotations

import os

# onnxruntime, which Chroma imports, reports to its vendor unless this stands before its import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
