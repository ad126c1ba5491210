from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain_pipeline.models.thinking import strip_thinking

words = st.text("ab <\n", max_size=6).filter(lambda text: "<think" not in text)
blocks = st.text("ab <\n", max_size=6).map(lambda text: f"<think>{text}</think>")
answers = st.lists(words | blocks, max_size=5).map("".join)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Friday.", "Friday."),
        ("<think>Hm.</think>Friday.", "Friday."),
        ("<think>Hm.</think>\n\nOn <think>or not?</think> Friday.", "On Friday."),
        ("Hm, the zoo.</think>\nFriday.", "Friday."),
        ("<think>Hm, the zoo", ""),
        ("  <think>Hm, the zoo", ""),
        ("Write <think> yourself.", "Write <think> yourself."),
        ("5 < 6", "5 < 6"),
        ("", ""),
    ],
)
def test_what_remains(said, answer):
    assert strip_thinking(said) == answer


@pytest.mark.parametrize(
    ("so_far", "shown"),
    [
        ("<", ""),
        ("<thi", ""),
        ("<think>Hm", ""),
        ("<think>Hm</thi", ""),
        ("On <th", "On "),
        ("On <think>or", "On "),
        ("On <b>", "On <b>"),
    ],
)
def test_what_is_held_back_while_more_may_come(so_far, shown):
    assert strip_thinking(so_far, finished=False) == shown


@given(answers)
def test_nothing_is_shown_that_the_whole_answer_takes_back(said):
    answer = strip_thinking(said)
    for length in range(len(said)):
        assert answer.startswith(strip_thinking(said[:length], finished=False))


@given(answers)
def test_no_block_remains(said):
    assert "</think>" not in strip_thinking(said)
