"""One relevance score: how likely a passage answers a question, in [0, 1]. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brain_pipeline.index.keywords import Passage
from brain_pipeline.index.terms import terms

Floats = NDArray[np.float64]

STOP_WORDS = frozenset(
    terms(
        "a an and any are as at be been by can could did do does for from had has have he her his how i in is it its "
        "many me much my of on or our she should so that the their them they this to us was we were what when where "
        "which who whom whose why will with would you your"
    )
)


@dataclass(frozen=True, slots=True)
class Query:
    """What a question asks for: its content terms and what each is worth, by rarity in the collection.

    ``weights`` are inverse document frequencies, ``log(1 + (N - n + 0.5) / (n + 0.5))`` as in BM25 (Robertson and
    Zaragoza 2009, section 3.2); a term unknown to the collection weighs most.
    """

    terms: tuple[str, ...]
    weights: Floats


@dataclass(frozen=True, slots=True)
class Calibration:
    """How features become a score.

    Attributes:
        weights: of the cosine and of the coverage.
        model: the embedding model it was made for; empty for any.
        stamp: the collection version it was made for; empty for any.
    """

    weights: tuple[float, float] = (0.5, 0.5)
    model: str = ""
    stamp: str = ""


def content_terms(question: str) -> tuple[str, ...]:
    """The distinct terms of a question without its question words; all of them when nothing else is left."""
    found = tuple(dict.fromkeys(terms(question)))
    return tuple(term for term in found if term not in STOP_WORDS) or found


def query(question: str, frequencies: Mapping[str, int], rows: int) -> Query:
    """Weighs a question's terms.

    Args:
        question: in plain words.
        frequencies: in how many chunks each of its ``content_terms`` stands.
        rows: how many chunks there are.
    """
    words = content_terms(question)
    counts = (min(frequencies.get(word, 0), rows) for word in words)
    return Query(words, np.array([math.log1p((rows - n + 0.5) / (n + 0.5)) for n in counts]))


def coverage(asked: Query, passage: Passage | None) -> float:
    """The share, in [0, 1], of the question's weight that stands in the passage and its headers."""
    total = asked.weights.sum()
    if passage is None or not total:
        return 0.0
    held = {*passage.head, *passage.body}
    return float(sum(weight for term, weight in zip(asked.terms, asked.weights, strict=True) if term in held) / total)


def score(
    asked: Query,
    cosines: Sequence[float],
    passages: Sequence[Passage | None],
    calibration: Calibration = Calibration(),
) -> Floats:
    """The relevance of each candidate, in [0, 1].

    Args:
        asked: the question's terms and their weights.
        cosines: between the question's vector and each candidate's, shape (n,).
        passages: the candidates' terms, in the same order; None for a chunk that is not in the keyword index.
        calibration: of the collection and its embedding model.

    Returns:
        Scores of shape (n,).
    """
    covered = [coverage(asked, passage) for passage in passages]
    relevance: Floats = np.column_stack([cosines, covered]) @ np.array(calibration.weights)
    return np.clip(relevance, 0.0, 1.0)
