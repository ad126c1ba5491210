"""One relevance score: how likely a passage answers a question, in [0, 1]. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brain_pipeline.ask.question import Floats, Question
from brain_pipeline.index.keywords import Passage, as_held

_UNINDEXED = Passage("", "", "", "")
NEAR = 0.5  # of the log-odds, at most: a preference among mail that fits, no evidence by itself
FEATURES = ("cosine", "coverage", "year_missing", "fact_missing", "length")


@dataclass(frozen=True, slots=True)
class Calibration:
    """How features become a score.

    The score is the logistic function of ``bias`` plus the weighted features (see ``features``).

    Attributes:
        weights: one per feature, in the order of ``FEATURES``.
        bias: the logit of a passage without any evidence.
        cosine_mean: what the model gives for a sentence and a passage that have nothing to do with each other.
        cosine_spread: the standard deviation of that.
        model: the embedding model it was made for; empty for any.
        stamp: what else it was made from, in the caller's words; empty for the shipped ones.
    """

    weights: tuple[float, ...]
    bias: float
    cosine_mean: float
    cosine_spread: float
    model: str = ""
    stamp: str = ""


MINILM = Calibration(
    weights=(0.45, 4.6, -2.0, -1.5, 1.3), bias=-6.05, cosine_mean=0.157, cosine_spread=0.113, model="all-minilm"
)
# Of a model that nobody measured, the cosine is taken to run high, as it does for most: too low a score admits not
# knowing, too high a one claims to.
UNKNOWN_MODEL = Calibration(weights=MINILM.weights, bias=MINILM.bias, cosine_mean=0.5, cosine_spread=0.1)


_MINILM_NAMES = {"all-minilm", "all-minilm-l6-v2"}


def default_calibration(model: str) -> Calibration:
    """The shipped calibration for an embedding model, by its name."""
    return MINILM if model.casefold().rpartition("/")[2].partition(":")[0] in _MINILM_NAMES else UNKNOWN_MODEL


def features(asked: Question, cosines: Sequence[float], passages: Sequence[Passage | None]) -> Floats:
    """What speaks for and against each candidate.

    Args:
        asked: the question.
        cosines: between the question's vector and each candidate's, in [-1, 1], shape (n,).
        passages: the candidates' terms, in the same order; None for a chunk that is not in the keyword index.

    Returns:
        Shape (n, 5), the columns of ``FEATURES``: the cosine; the share of the question's weight found in the passage
        and its headers, in [0, 1]; 1 when a year that is asked for is in neither the passage nor its date; 1 when the
        passage holds no fact of the kind that is asked for, such as an amount; the logarithm of one plus the number
        of content terms, since half of eight terms found proves more than half of two.
    """
    weights, total = asked.weights.tolist(), asked.weights.sum() or 1.0
    terms = [(tuple(map(as_held, forms)), weight) for forms, weight in zip(asked.forms, weights, strict=True)]
    found = [_found(asked, terms, total, passage or _UNINDEXED) for passage in passages]
    evidence = np.full((len(found), len(FEATURES)), math.log1p(len(asked.forms)))
    evidence[:, 0] = np.nan_to_num(cosines)
    evidence[:, 1:4] = np.array(found).reshape(-1, 3)
    return evidence


def _found(
    asked: Question, terms: Sequence[tuple[tuple[str, ...], float]], total: float, passage: Passage
) -> tuple[float, float, float]:
    if asked.when and len(asked.when.terms) == len(terms) and not asked.when.nearness(passage):
        return 0.0, not all(map(passage.holds, asked.years)), True  # "this weekend" in mail of another month
    # "January 9" stands for "Friday".
    named = asked.when.terms if asked.when and asked.when.terms and asked.when.nearness(passage) == 1.0 else ()
    held, text = 0.0, passage.terms
    for number, (forms, weight) in enumerate(terms):
        for form in forms:  # loops, because a generator for each would take most of a question's time here
            if form in text:
                held += weight
                break
        else:
            held += weight if number in named else 0.0
    return held / total, not all(map(passage.holds, asked.years)), not all(map(passage.holds, asked.facts))


def logits(evidence: Floats, calibration: Calibration) -> Floats:
    """The log-odds that each candidate answers, shape (n,), from features of shape (n, 5)."""
    standard = evidence.copy()
    standard[:, 0] = (standard[:, 0] - calibration.cosine_mean) / calibration.cosine_spread
    weighted: Floats = standard @ np.array(calibration.weights)
    return weighted + calibration.bias


def logistic(odds: Floats) -> Floats:
    """``1 / (1 + exp(-odds))``, without overflow."""
    probability: Floats = np.exp(-np.logaddexp(0.0, -odds))
    return probability


def score(
    asked: Question,
    cosines: Sequence[float],
    passages: Sequence[Passage | None],
    calibration: Calibration = MINILM,
    preferences: Sequence[float] | None = None,
) -> Floats:
    """The relevance of each candidate, in [0, 1]; 0 throughout for a question that asks nothing, such as a greeting.

    Args:
        asked: the question.
        cosines: between the question's vector and each candidate's, shape (n,).
        passages: the candidates' terms, in the same order; None for a chunk that is not in the keyword index.
        calibration: of the collection and its embedding model.
        preferences: what else speaks for each candidate, in log-odds, shape (n,).

    Returns:
        Scores of shape (n,).
    """
    if not asked.forms:
        return np.zeros(len(cosines))
    odds = logits(features(asked, cosines, passages), calibration)
    if asked.when:
        odds += NEAR * np.array([asked.when.nearness(passage or _UNINDEXED) for passage in passages])
    if preferences is not None:
        odds += np.asarray(preferences)
    return logistic(odds)
