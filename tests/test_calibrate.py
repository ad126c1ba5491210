from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain_pipeline.ask.calibrate import SAMPLE, Labelled, dumps, fit, loads, self_calibrate
from brain_pipeline.ask.score import FEATURES, MINILM, UNKNOWN_MODEL, logistic, logits

DIMENSION = 64
TOPICS = ["zoo", "dentist", "piano", "soccer", "garden", "camp", "library", "bakery"]


def embed(texts: list[str]) -> np.ndarray:
    """Word vectors, summed: texts with words in common point the same way."""
    rows = []
    for text in texts:
        words = [np.random.default_rng(abs(hash_of(word))).normal(size=DIMENSION) for word in text.split()]
        rows.append(np.sum(words, axis=0))
    return np.array(rows)


def hash_of(word: str) -> int:
    return int.from_bytes(word.encode()[:8], "big")


def mailbox(size: int = 80) -> list[str]:
    draw = np.random.default_rng(1)
    return [
        " ".join(f"{draw.choice(TOPICS)}{draw.integers(400)}" for _ in range(8)) + ". "
        + " ".join(f"{draw.choice(TOPICS)}{draw.integers(400)}" for _ in range(8)) + "."
        for _ in range(size)
    ]  # fmt: skip


def calibrated(vectors: np.ndarray, ask=embed, start=UNKNOWN_MODEL):
    return self_calibrate(mailbox(), vectors, ask, start, model="a-model", stamp="version 1")


def test_a_collection_s_own_background_becomes_the_zero_of_the_cosine():
    found = calibrated(embed(mailbox()))
    assert found.cosine_mean == pytest.approx(_unrelated_cosine(), abs=0.02)
    assert 0.05 < found.cosine_spread < 0.3
    assert found.weights == UNKNOWN_MODEL.weights
    assert (found.model, found.stamp) == ("a-model", "version 1")


def _unrelated_cosine() -> float:
    first, second = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in np.split(embed(mailbox()), 2))
    return float((first @ second.T).mean())


def test_a_model_whose_cosines_run_high_is_calibrated_to_the_same_scores():
    def raised(texts):
        rows = embed(texts)
        return np.hstack([rows / np.linalg.norm(rows, axis=1, keepdims=True), np.ones((len(rows), 1))])

    plain, high = calibrated(embed(mailbox())), calibrated(raised(mailbox()), raised)
    assert high.cosine_mean == pytest.approx((1 + plain.cosine_mean) / 2)
    assert high.cosine_spread == pytest.approx(plain.cosine_spread / 2)


def test_the_length_of_vectors_does_not_matter():
    vectors = embed(mailbox())
    assert calibrated(vectors * 20).cosine_mean == pytest.approx(calibrated(vectors).cosine_mean)


def test_vectors_of_another_model_make_the_cosine_count_for_less():
    strange = np.random.default_rng(5).normal(size=(80, DIMENSION))
    assert calibrated(strange).weights[0] < 0.5 * UNKNOWN_MODEL.weights[0]
    assert calibrated(strange).weights[1:] == UNKNOWN_MODEL.weights[1:]


def test_the_same_mail_gives_the_same_calibration():
    vectors = embed(mailbox())
    assert calibrated(vectors) == calibrated(vectors)


@pytest.mark.parametrize("texts", [[], [""] * 30, ["Too short."] * 30, mailbox(3)])
def test_too_little_mail_leaves_the_default(texts):
    vectors = np.ones((len(texts), DIMENSION))
    found = self_calibrate(texts, vectors, embed, MINILM, model="a-model", stamp="1")
    assert found == replace(MINILM, model="a-model", stamp="1")


def test_vectors_that_are_all_alike_leave_the_default():
    found = calibrated(np.ones((80, DIMENSION)), lambda texts: np.ones((len(texts), DIMENSION)))
    assert (found.cosine_mean, found.cosine_spread) == (UNKNOWN_MODEL.cosine_mean, UNKNOWN_MODEL.cosine_spread)


def test_a_sample_is_small_enough_to_embed_in_seconds():
    asked = []
    texts = mailbox(SAMPLE)
    self_calibrate(texts, embed(texts), lambda questions: asked.append(len(questions)) or embed(questions), MINILM,
                   model="", stamp="")  # fmt: skip
    assert asked == [150]


def questions(count: int, seed: int = 0, gap: float = 0.5) -> list[Labelled]:
    """Labelled questions of five emails: in three of four, one answers and has higher cosine and coverage."""
    draw = np.random.default_rng(seed)
    made = []
    for i in range(count):
        evidence = np.column_stack([
            draw.uniform(0.1, 0.4, 5), draw.uniform(0.1, 0.5, 5), np.zeros(5), draw.integers(0, 2, 5), np.full(5, 1.8),
        ])  # fmt: skip
        right = np.zeros(5, dtype=bool)
        if i % 4:
            right[0] = True
            evidence[0, :2] += gap * draw.uniform(0.2, 1.0)
            evidence[0, 3] = 0
        made.append(Labelled(evidence, right))
    return made


def best_scores(labelled, calibration):
    best = [logistic(logits(q.evidence, calibration)) for q in labelled]
    return np.array([s.max() for s in best]), np.array(
        [q.right[s.argmax()] for q, s in zip(labelled, best, strict=True)]
    )


def test_labels_make_the_score_the_share_that_is_right():
    skewed = replace(MINILM, bias=MINILM.bias - 6)
    learnt = fit(questions(200), skewed, model="m", stamp="s")
    scores, right = best_scores(questions(400, seed=1), learnt)
    before, _ = best_scores(questions(400, seed=1), skewed)
    assert abs(scores.mean() - right.mean()) < 0.06 < abs(before.mean() - right.mean())
    assert right[scores > 0.7].mean() > 0.85
    assert (learnt.model, learnt.stamp) == ("m", "s")


def test_few_labels_change_little_and_many_change_more():
    def moved(count):
        return abs(fit(questions(count), MINILM, model="", stamp="").weights[1] - MINILM.weights[1])

    assert moved(4) < moved(300)


def test_no_labels_leave_the_default():
    nothing_found = Labelled(np.zeros((0, len(FEATURES))), np.zeros(0, dtype=bool))
    for labelled in ([], [nothing_found]):
        assert fit(labelled, MINILM, model="m", stamp="s") == replace(MINILM, model="m", stamp="s")


def test_labels_never_turn_evidence_into_its_opposite():
    perverse = [Labelled(q.evidence, ~q.right) for q in questions(200)]
    learnt = fit(perverse, MINILM, model="", stamp="")
    assert all(weight * sign >= 0 for weight, sign in zip(learnt.weights, (1, 1, -1, -1, 1), strict=True))


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_any_labels_give_finite_weights(rows):
    labelled = [
        Labelled(np.array([[cosine, coverage, 0.0, 0.0, 1.0]]), np.array([right])) for cosine, coverage, right in rows
    ]
    learnt = fit(labelled, MINILM, model="", stamp="")
    assert np.isfinite([*learnt.weights, learnt.bias]).all()


def test_a_calibration_survives_being_kept():
    calibration = replace(MINILM, stamp="version 3")
    assert loads(dumps(calibration)) == calibration


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", "{}", '{"features": ["cosine"]}', dumps(MINILM).replace("coverage", "charm"),
     dumps(MINILM).replace('"bias"', '"bios"')],
)  # fmt: skip
def test_what_is_no_calibration_is_not_read_as_one(text):
    assert loads(text) is None
