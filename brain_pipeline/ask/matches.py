"""Where a text matches a question: the words they share, and the part of a long text that shares most."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import accumulate

from brain_pipeline.ask.question import content_terms
from brain_pipeline.index.chunk import sentences
from brain_pipeline.index.terms import terms

_PIECE = 300  # characters of a sentence that is kept whole


def matching_words(question: str, text: str) -> list[str]:
    """The distinct words of a text that share a content term with a question, as they stand there, in order."""
    asked = set(content_terms(question))
    words = dict.fromkeys(re.sub(r"^\W+|\W+$", "", word) for word in text.split())
    return [word for word in words if asked.intersection(terms(word))]


def best_part(question: str, text: str, longest: int) -> slice:
    """Where the sentences stand that share most content terms with a question, and what is around them.

    It takes time linear in the length of the text.

    Args:
        question: in plain words.
        text: may be long, and need not have sentences.
        longest: characters the part may have.

    Returns:
        A part of ``text``; its beginning when nothing matches, all of it when it fits.
    """
    if len(text) <= longest:
        return slice(0, len(text))
    pieces = _pieces(text, max(1, min(_PIECE, longest)))
    ends = [0, *accumulate(map(len, pieces))]
    asked = set(content_terms(question))
    shared = [asked.intersection(terms(piece)) for piece in pieces]
    first, last = _richest(shared, ends, longest)
    middle = (ends[first] + ends[last]) / 2
    start = bisect_left(ends, middle - longest / 2)
    stop = bisect_right(ends, ends[start] + longest) - 1
    return slice(ends[start], ends[stop])


def _richest(shared: list[set[str]], ends: list[int], longest: int) -> tuple[int, int]:
    """The pieces, from one up to another, that fit and have most of the shared terms, the shortest such run."""
    within: Counter[str] = Counter()
    best, found, start = (0, 0), (0, 0), 0
    for stop, words in enumerate(shared, start=1):
        within.update(words)
        while ends[stop] - ends[start] > longest or (start < stop - 1 and _redundant(shared[start], within)):
            within.subtract(shared[start])
            within += Counter()
            start += 1
        rank = (len(within), ends[start] - ends[stop])
        if words and rank > best:
            best, found = rank, (start, stop)
    return found


def _redundant(words: set[str], within: Counter[str]) -> bool:
    return all(within[word] > 1 for word in words)


def _pieces(text: str, longest: int) -> list[str]:
    """Sentences, long ones in runs of words; joined together they are the text."""
    run = re.compile(rf"(?s).{{1,{longest}}}(?<=\s)|.{{1,{longest}}}")
    return [
        piece
        for sentence in sentences(text)
        for piece in ([sentence] if len(sentence) <= longest else run.findall(sentence))
    ]
