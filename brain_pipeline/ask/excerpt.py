"""Answers without a language model: the sentences of the sources that best match the question, word for word."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Sequence
from datetime import date
from itertools import accumulate

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding

from brain_pipeline.ask.events import line_of, others_in
from brain_pipeline.ask.figures import claims, known
from brain_pipeline.ask.matches import best_part
from brain_pipeline.ask.plain import PlainText
from brain_pipeline.index.chunk import sentences
from brain_pipeline.records import CALENDAR, Source

LENGTH, FURTHER = 320, 200  # characters of the best source's excerpt and of each further one's
_LOOKED_AT = 2_000  # characters of a passage that are compared with the question; our own chunks have fewer
_MOST_WINDOWS = 100  # texts to embed of a source whose lines are short
INTRODUCTION = "From the emails, word for word:"
CALENDAR_INTRODUCTION = "In the calendar:"


async def excerpt(question: str, sources: Sequence[Source], embedder: BaseEmbedding) -> str:
    """Of each source the sentences that best match the question, each source's in a line of its own; first the events.

    Args:
        question: in the person's own words.
        sources: what is quoted, best first.
        embedder: tells how near sentences are to the question.

    Raises:
        ModelError: the embedding model failed.
    """
    mails = [source for source in sources if source.source_type != CALENDAR]
    events = [source for source in sources if source.source_type == CALENDAR]
    quoted = await _quotes(question, mails, embedder) if mails else []
    return "\n".join([*_listed(events), *quoted])


def _listed(events: Sequence[Source]) -> list[str]:
    """Events with their days and times, soonest first as far as days tell."""
    if not events:
        return []
    plain = PlainText(events)
    in_order = sorted(events, key=lambda event: event.day or date.max)
    lines = [*map(line_of, in_order), *(line for event in in_order for line in others_in(event))]
    return [CALENDAR_INTRODUCTION, *map(plain.whole, lines)]


async def _quotes(question: str, sources: Sequence[Source], embedder: BaseEmbedding) -> list[str]:
    windows = await asyncio.to_thread(_all_windows, question, sources)
    asked = np.asarray(await embedder.aget_query_embedding(question))
    texts = [window for of_source in windows for window in of_source]
    vectors = np.asarray(await embedder.aget_text_embedding_batch(texts))
    nearness = iter(vectors @ asked / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)))
    best = [max(of_source, key=lambda _: next(nearness)) for of_source in windows]
    plain = PlainText(sources)
    quotes = (_quoted(plain.whole(source.subject), text) for source, text in zip(sources, best, strict=True))
    return [INTRODUCTION, *quotes]


def quote(question: str, source: Source) -> str:
    """The part of a source whose words match the question best, in quotation marks."""
    plain = PlainText((source,))
    part = source.passage[best_part(question, source.passage, LENGTH)]
    return _quoted(plain.whole(source.subject), _readable(plain.whole(part)))


def _quoted(subject: str, text: str) -> str:
    """A quotation, after the subject when that names a day, a time or an amount which the text does not."""
    told = known(text, None)
    heading = any(not readings & told for _, readings in claims(subject))
    return f"“{subject}”: “{text}”" if heading else f"“{text}”"


def _all_windows(question: str, sources: Sequence[Source]) -> list[list[str]]:
    """Of each source what may be quoted of it, at least one text."""
    plain = PlainText(sources)
    lengths = [LENGTH, *[FURTHER] * (len(sources) - 1)]
    return [
        _windows(_readable(plain.whole(source.passage[best_part(question, source.passage, _LOOKED_AT)])), length)
        or [plain.whole(source.subject) or "(no text)"]
        for source, length in zip(sources, lengths, strict=True)
    ]


def _windows(passage: str, longest: int) -> list[str]:
    """Runs of whole sentences, one from each sentence on, as long as fit."""
    pieces = sentences(passage)
    ends = [0, *accumulate(map(len, pieces))]
    windows = []
    for start in range(len(pieces)):
        stop = max(start + 1, bisect_right(ends, ends[start] + longest) - 1)
        windows.append(passage[ends[start] : ends[stop]].strip())
        if stop == len(pieces):
            break
    distinct = [window for window in dict.fromkeys(windows) if window]
    return distinct[:: len(distinct) // _MOST_WINDOWS + 1]


def _readable(text: str) -> str:
    """In whole sentences: without quote and heading marks, rules, wide gaps and the line breaks of narrow lines.

    Lists and tables keep their lines.
    """
    bare = re.sub(r"^[ \t]*(?:(?:>[ \t]?)+|#+[ \t]+)", "", text, flags=re.MULTILINE)
    bare = re.sub(r"^[ \t]*[-=_*~]{3,}[ \t]*$\n?", "", bare, flags=re.MULTILINE)
    bare = re.sub(r"[ \t]{2,}", " ", bare)
    joined = re.sub(r"(?<=[^\n])[ \t]*\n[ \t]*(?=[^\s*•\-\u2013|\d])(?!\n)", " ", bare)
    return re.sub(r"\n[ \t]+", "\n", joined).strip()
