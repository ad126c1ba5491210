"""Which words of a passage a question has too, for a reader who wants to see why it was found."""

from __future__ import annotations

import re

from brain_pipeline.ask.question import content_terms
from brain_pipeline.index.terms import terms


def matching_words(question: str, text: str) -> list[str]:
    """The distinct words of a text that share a content term with a question, as they stand there, in order."""
    asked = set(content_terms(question))
    words = dict.fromkeys(re.sub(r"^\W+|\W+$", "", word) for word in text.split())
    return [word for word in words if asked.intersection(terms(word))]
