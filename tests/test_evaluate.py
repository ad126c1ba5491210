from __future__ import annotations

import json
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain_pipeline.errors import InvalidRequest
from brain_pipeline.evaluate import (
    LabelledQuestion,
    Outcome,
    area_under_curve,
    calibration_error,
    evaluate,
    figures,
    read_questions,
    render,
)


def asked(text: str, *gold: str, **more) -> LabelledQuestion:
    return LabelledQuestion(text, frozenset(gold), **more)


# Five questions, three of them answerable, and what a retriever made of them.
FOUND = {
    asked("first", "a", kind="plain"): [("a", 0.9), ("b", 0.2)],
    asked("third", "a", "z", kind="plain"): [("b", 0.8), ("c", 0.5), ("z", 0.4)],
    asked("lost", "a", kind="hard"): [("b", 0.2)],
    asked("nothing", kind="unanswerable"): [],
    asked("nearly", kind="unanswerable"): [("b", 0.5)],
}


def retrieve(question):
    return FOUND[question]


def test_the_figures_by_hand():
    found = evaluate(FOUND, retrieve).overall
    assert (found.n_answerable, found.n_unanswerable) == (3, 2)
    assert found.recall_at_1 == pytest.approx(1 / 3)
    assert found.recall_at_3 == found.recall_at_5 == pytest.approx(2 / 3)
    assert found.mrr == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert found.auc == pytest.approx((2 + 2 + 1) / 6)  # 0.9 and 0.8 beat 0 and 0.5; 0.2 beats 0 only
    assert found.refused_answerable == pytest.approx(1 / 3)
    assert found.refused_unanswerable == pytest.approx(1 / 2)
    assert found.high_precision == pytest.approx(1 / 2)
    # One question a bin: scores 0.9 (right), 0.8, 0.2, 0 and 0.5 (none of them right).
    assert found.ece == pytest.approx((0.1 + 0.8 + 0.2 + 0.0 + 0.5) / 5)
    assert found.key_facts is None


def test_figures_are_broken_down_by_kind():
    by_kind = evaluate(FOUND, retrieve).by_kind
    assert {kind: (f.n_answerable, f.n_unanswerable) for kind, f in by_kind.items()} == {
        "plain": (2, 0),
        "hard": (1, 0),
        "unanswerable": (0, 2),
    }
    assert by_kind["plain"].recall_at_3 == 1.0
    assert by_kind["plain"].auc is None


def test_misses_are_what_a_person_would_complain_of():
    misses = evaluate(FOUND, retrieve).misses
    assert [miss.question.question for miss in misses] == ["third", "lost", "nearly"]


def test_answers_are_looked_through_for_the_key_facts():
    questions = [asked("one", "a", keys=("May 9", "$5")), asked("two", "a", keys=("May 9",)), asked("three")]
    answers = {"one": "By  may 9, and bring $5.", "two": "No idea."}
    found = evaluate(questions, lambda _: [("a", 0.9)], lambda question: answers[question.question])
    assert found.overall.key_facts == pytest.approx(1 / 2)


def test_no_questions_have_no_figures():
    found = evaluate([], retrieve)
    assert found.overall.n_answerable == 0
    assert found.overall.recall_at_1 is None
    assert found.overall.ece is None
    assert render(found)


def test_the_object_holds_what_was_promised():
    promised = {
        *("recall_at_1", "recall_at_3", "recall_at_5", "mrr", "auc", "refused_answerable", "refused_unanswerable"),
        *("high_precision", "ece", "n_answerable", "n_unanswerable"),
    }
    written = json.loads(json.dumps(evaluate(FOUND, retrieve).as_json()))
    assert promised <= written.keys()
    assert written["by_kind"]["hard"]["n_answerable"] == 1


def test_a_table_shows_figures_an_earlier_run_and_the_misses():
    table = render(evaluate(FOUND, retrieve), baseline={"recall_at_1": 0.25, "by_kind": {}})
    assert "recall_at_1               0.333  was    0.250" in table
    assert "hard                        1  recall@3 0.000  refused 1.000" in table
    assert "unanswerable                2  recall@3 -  refused 0.500" in table
    assert "right email at 3       0.80  third" in table
    assert "right email not found  0.20  lost" in table
    assert "answered from nothing  0.50  nearly" in table
    assert "nothing  0.00" not in table


def test_a_long_question_is_cut_in_the_table():
    table = render(evaluate([asked("why " * 100, "a")], lambda _: []))
    assert max(map(len, table.splitlines())) < 100


SCORES = st.lists(st.floats(0, 1), max_size=20)


@given(SCORES, SCORES)
def test_the_area_equals_counting_pairs(positive, negative):
    pairs = [(p > n) + (p == n) / 2 for p in positive for n in negative]
    expected = sum(pairs) / len(pairs) if pairs else None
    found = area_under_curve(positive, negative)
    assert found == (pytest.approx(expected) if pairs else None)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_the_calibration_error_equals_its_definition(rows):
    bins = {}
    for score, right in rows:
        bins.setdefault(min(int(score * 10), 9), []).append((score, right))
    expected = sum(
        len(held) / len(rows) * abs(sum(s for s, _ in held) / len(held) - sum(r for _, r in held) / len(held))
        for held in bins.values()
    )
    scores, right = zip(*rows, strict=True)
    assert calibration_error(scores, right) == pytest.approx(expected)
    assert 0 <= expected <= 1


@given(
    st.lists(
        st.tuples(st.sets(st.sampled_from("abc")), st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 1)))),
        max_size=12,
    )
)
def test_every_figure_is_a_share(rows):
    outcomes = [Outcome(asked("?", *gold), tuple(sorted(found, key=lambda pair: -pair[1]))) for gold, found in rows]
    found = figures(outcomes)
    assert found.n_answerable + found.n_unanswerable == len(rows)
    for name in ("recall_at_1", "recall_at_3", "mrr", "auc", "refused_answerable", "refused_unanswerable", "ece"):
        value = getattr(found, name)
        assert value is None or 0 <= value <= 1 + 1e-9, name
    if found.n_answerable:
        assert found.recall_at_1 <= found.recall_at_3 <= found.recall_at_5
        assert found.recall_at_1 <= found.mrr


def test_questions_are_read_from_lines(tmp_path):
    path = tmp_path / "set.jsonl"
    path.write_text(
        '{"question": "Where?", "gold": ["a.eml", "b.eml"], "keys": ["gym"], "kind": "plain", '
        '"now": "2026-01-20T07:00", "zone": "America/Chicago"}\n\n'
        '{"question": "Who?", "gold": [], "type": "no_answer", "answer": null}\n'
    )
    first, second = read_questions(path)
    assert (first.gold, first.keys, first.kind) == ({"a.eml", "b.eml"}, ("gym",), "plain")
    assert first.asked == datetime(2026, 1, 20, 7)  # noqa: DTZ001  (on the household's clock)
    assert (second.gold, second.kind, second.now) == (frozenset(), "no_answer", None)


@pytest.mark.parametrize(
    "line",
    ["nonsense", "[]", '{"question": "x"}', '{"gold": []}', '{"question": "x", "gold": 3}',
     '{"question": "x", "gold": "a.eml"}',
     '{"question": "x", "gold": [], "now": "soon"}'],
)  # fmt: skip
def test_a_line_that_is_no_question_is_named(tmp_path, line):
    path = tmp_path / "set.jsonl"
    path.write_text(f'{{"question": "x", "gold": []}}\n{line}\n')
    with pytest.raises(InvalidRequest, match="line 2"):
        read_questions(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidRequest, match="nowhere"):
        read_questions(tmp_path / "nowhere.jsonl")


def test_what_the_model_reads_and_how_long_retrieval_takes_are_told():
    asked = [LabelledQuestion(str(number), frozenset({"a"})) for number in range(3)]
    tokens = {"0": 100, "1": 300, "2": None}  # the last is not worth asking a model about
    overall = evaluate(asked, lambda _: [("a", 0.9)], prompt_tokens=lambda question: tokens[question.question]).overall
    assert overall.prompt_tokens == 200
    assert 0 < overall.latency_ms <= overall.latency_p95_ms
