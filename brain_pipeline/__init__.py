"""Ask a household's own emails and newsletters a question, and be told where the answer was found."""

from __future__ import annotations
