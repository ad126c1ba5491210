"""Answers without a language model: the sentences of the sources that best match the question, word for word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding

from brain_pipeline.ask.plain import PlainText
from brain_pipeline.index.chunk import sentences
from brain_pipeline.records import Source

LENGTH = 320  # characters of an excerpt, about what a phone shows without scrolling
INTRODUCTION = "From the emails, word for word:"


async def excerpt(question: str, sources: Sequence[Source], embedder: BaseEmbedding) -> str:
    """Verbatim sentences that best match the question, from the best source and any that matches as well.

    Args:
        question: in the person's own words.
        sources: what may be quoted, best first; not empty.
        embedder: tells how near a passage is to the question.

    Raises:
        ModelError: the embedding model failed.
    """
    plain = PlainText(sources)
    windows = [(source, window) for source in sources for window in _windows(plain.whole(source.passage))]
    if not windows:
        return f"{INTRODUCTION} {sources[0].subject}"
    asked = np.asarray(await embedder.aget_query_embedding(question))
    vectors = np.asarray(await embedder.aget_text_embedding_batch([window for _, window in windows]))
    nearness = vectors @ asked / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked))
    best = windows[int(np.argmax([near + source.score for (source, _), near in zip(windows, nearness, strict=True)]))]
    return f"{INTRODUCTION} “{best[1]}”"


def _windows(passage: str) -> list[str]:
    """Runs of whole sentences, one from each sentence on, as long as fit."""
    pieces = sentences(passage)
    windows = []
    for start in range(len(pieces)):
        lengths = list(accumulate(len(piece) for piece in pieces[start:]))
        fitting = max(1, sum(length <= LENGTH for length in lengths))
        windows.append(_readable("".join(pieces[start : start + fitting])))
        if start + fitting == len(pieces):
            break
    return [window for window in dict.fromkeys(windows) if window]


def _readable(text: str) -> str:
    """Without the line breaks of a mail's narrow lines; lists and tables keep theirs."""
    return re.sub(r"[ \t]*\n[ \t]*(?![ \t]*(?:[*•\-\u2013|#>]|\d+[.)]|\n|$))", " ", text.strip())
