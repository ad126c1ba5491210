"""Fitting the score to an embedding model and a collection: from the mail alone, or from labelled questions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brain_pipeline.ask.question import Floats
from brain_pipeline.ask.score import FEATURES, Calibration, logistic, logits
from brain_pipeline.index.chunk import sentences

SAMPLE = 500  # stored chunks to calibrate with
_PSEUDO_QUESTIONS = 150
_FEWEST = 10  # pseudo-questions, below which the mail tells too little
_WORDS = range(6, 26)  # of a sentence that can stand for a question
_SEPARATION = 2.0  # spreads by which a sentence's own passage stands out under a model that fits its collection

_SIGNS = np.array([1, 1, -1, -1, 1])  # more evidence never lowers a score
_PRIOR_QUESTIONS = 20.0  # how much labelled evidence outweighs the weights one begins with
_EMAILS = 5  # of a labelled question that are learnt from: the rest are plainly wrong
_STEPS, _TOLERANCE = 50, 1e-9


def self_calibrate(
    texts: Sequence[str],
    vectors: ArrayLike,
    embed_questions: Callable[[list[str]], ArrayLike],
    start: Calibration,
    *,
    model: str,
    stamp: str,
) -> Calibration:
    """A calibration for a collection, learnt from its own mail without labels.

    A sentence of a passage serves as the question, its own passage as the right answer, the others as wrong ones. What
    the wrong ones get is the zero of this model's cosine, and how much that varies is its unit; three collections
    under all-MiniLM-L6-v2 agree on both within 0.01. If the right passages don't stand out, the collection's vectors
    are of another model, and the cosine counts accordingly less.

    Args:
        texts: of chunks drawn at random, at most ``SAMPLE`` are of use.
        vectors: the stored ones of these chunks, of any length, shape (n, dimension).
        embed_questions: gives the vectors of questions, shape (questions, dimension).
        start: what is kept of it are its weights; it is returned when there is too little mail to learn from.
        model: the embedding model's name.
        stamp: the version of the collection.
    """
    start = replace(start, model=model, stamp=stamp)
    asked = _pseudo_questions(texts)
    if len(asked) < _FEWEST:
        return start
    questions = _unit(embed_questions([sentence for _, sentence in asked]))
    cosines = questions @ _unit(vectors).T
    own = np.zeros(cosines.shape, dtype=bool)
    own[np.arange(len(asked)), [chunk for chunk, _ in asked]] = True
    mean, spread = float(cosines[~own].mean()), float(cosines[~own].std())
    if spread < _TOLERANCE:
        return start
    separation = (float(np.median(cosines[own])) - mean) / spread
    trust = min(max(separation / _SEPARATION, 0.0), 1.0)
    weights = (start.weights[0] * trust, *start.weights[1:])
    return replace(start, weights=weights, cosine_mean=mean, cosine_spread=spread)


def _pseudo_questions(texts: Sequence[str]) -> list[tuple[int, str]]:
    draw = np.random.default_rng(0)  # the same mail gives the same calibration
    found = []
    for chunk, text in enumerate(texts):
        usable = [sentence.strip() for sentence in sentences(text) if len(sentence.split()) in _WORDS]
        if usable:
            found.append((chunk, usable[int(draw.integers(len(usable)))]))
    chosen = draw.permutation(len(found))[:_PSEUDO_QUESTIONS]
    return [found[i] for i in sorted(chosen)]


def _unit(vectors: ArrayLike) -> Floats:
    rows = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = rows / np.where(lengths > 0, lengths, 1.0)
    return unit


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question whose answer is known.

    Attributes:
        evidence: features of the best chunk of each email that was found, shape (emails, 5); see ``score.features``.
        right: which of these emails answer it, shape (emails,); none for a question that no mail answers.
    """

    evidence: Floats
    right: NDArray[np.bool_]


def fit(labelled: Sequence[Labelled], start: Calibration, *, model: str, stamp: str) -> Calibration:
    """A calibration learnt from labelled questions, by two logistic regressions.

    The first finds the weights that tell right emails from the likeliest wrong ones. Its scores would be too low for
    the best of several, so the second finds the scale and offset at which the best email's score is the share of
    questions for which it is right. Both begin from ``start`` and leave it as the labels demand: few change little.

    Args:
        labelled: questions, with and without an answer.
        start: where to begin; its cosine is kept.
        model: the embedding model's name.
        stamp: the version of the collection.
    """
    start = replace(start, model=model, stamp=stamp)
    asked = [question for question in labelled if len(question.evidence)]
    if not asked:
        return start
    likeliest = [np.argsort(-logits(question.evidence, start), kind="stable")[:_EMAILS] for question in asked]
    evidence = np.vstack([question.evidence[best] for question, best in zip(asked, likeliest, strict=True)])
    right = np.concatenate([question.right[best] for question, best in zip(asked, likeliest, strict=True)])
    learnt = _regress(_standard(evidence, start), right, np.array([*start.weights, start.bias]))
    weights = np.where(learnt[:-1] * _SIGNS > 0, learnt[:-1], 0.0)
    ranking = replace(start, weights=tuple(map(float, weights)), bias=float(learnt[-1]))

    odds = [logits(question.evidence, ranking) for question in asked]
    best = np.array([float(found.max()) for found in odds])
    first_right = np.array([question.right[found.argmax()] for question, found in zip(asked, odds, strict=True)])
    scale, offset = _regress(best[:, None], first_right, np.array([1.0, 0.0]))
    scale = max(scale, _TOLERANCE)
    return replace(
        ranking, weights=tuple(float(scale * weight) for weight in weights), bias=float(scale * ranking.bias + offset)
    )


def _standard(evidence: Floats, calibration: Calibration) -> Floats:
    standard = evidence.copy()
    standard[:, 0] = (standard[:, 0] - calibration.cosine_mean) / calibration.cosine_spread
    return standard


def _regress(x: Floats, right: NDArray[np.bool_], prior: Floats) -> Floats:
    """Coefficients and intercept of a logistic regression with a Gaussian prior, by Newton's method.

    The prior is centred on ``prior`` and as strong as ``_PRIOR_QUESTIONS`` observations of each feature's spread.

    Args:
        x: shape (n, k).
        right: shape (n,).
        prior: k coefficients and the intercept to shrink towards, shape (k + 1,).
    """
    design = np.column_stack([x, np.ones(len(x))])
    precision = np.diag([*(_PRIOR_QUESTIONS * np.maximum(x.var(axis=0), 0.01) / 4), 0.01])

    def loss(coefficients: Floats) -> float:
        odds, moved = design @ coefficients, coefficients - prior
        return float(np.logaddexp(0.0, odds).sum() - odds[right].sum() + moved @ precision @ moved / 2)

    coefficients = prior.copy()
    for _ in range(_STEPS):
        expected = logistic(design @ coefficients)
        gradient = design.T @ (expected - right) + precision @ (coefficients - prior)
        curvature = (design * (expected * (1 - expected))[:, None]).T @ design + precision
        step = np.linalg.solve(curvature, gradient)
        # Far from the optimum the curvature is nearly flat and a whole step would overshoot.
        while np.abs(step).max() > _TOLERANCE and loss(coefficients - step) > loss(coefficients):
            step /= 2
        coefficients = coefficients - step
        if np.abs(step).max() <= _TOLERANCE:
            break
    return coefficients


def dumps(calibration: Calibration) -> str:
    """A calibration as text, to be kept beside the collection."""
    return json.dumps({"features": FEATURES, **asdict(calibration)})


def loads(text: str) -> Calibration | None:
    """The calibration that ``dumps`` wrote; None when it is of other features, or no calibration at all."""
    try:
        fields = json.loads(text)
        if tuple(fields.pop("features")) != FEATURES:
            return None
        return Calibration(**fields | {"weights": tuple(map(float, fields["weights"]))})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
