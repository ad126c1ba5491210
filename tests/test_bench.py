"""The benchmarks' own arithmetic, and what they show: times themselves are never asserted."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import ollama
import pytest
from bench import corpus
from bench.figures import Goal, Line, Spread, interleaved
from bench.plot import GROWTH, growth_svg
from bench.processes import model_server
from bench.rows import NOT_QUICK, ROWS
from bench.same import share_same_as_where
from bench.table import BEGIN, END, RESULTS, Results, into_readme, table

README = Path(__file__).parents[1] / "README.md"
POINTS = [
    {
        "chunks": chunks,
        "ms": {"brain": 8.0, "floor": 6.0, "stock": 9.0},
        "memory_mb": {"brain": 200.0, "floor": 100.0, "stock": 150.0},
    }
    for chunks in (1_000, 9_000)
]


def a_line():
    samples = {"brain": [3.0, 1.0, 2.0], "floor": [1.0, 1.0, 4.0], "stock": [4.0]}
    return Line.of("a question", "ms", samples, {"floor": Goal(1.15), "stock": Goal(1.0)}, chunks=7)


def test_a_spread_has_quartiles_and_ends():
    assert Spread.of([4, 1, 3, 2, 5]) == Spread(n=5, min=1, q1=2, median=3, q3=4, max=5)
    assert Spread.of([2.0]) == Spread(n=1, min=2, q1=2, median=2, q3=2, max=2)


def test_a_ratio_is_the_brain_s_median_over_the_other_s():
    assert [(each.against, each.ratio, each.goal.met(each.ratio)) for each in a_line().comparisons] == [
        ("floor", 2.0, False),
        ("stock", 0.5, True),
    ]


def test_goals_have_a_direction():
    assert Goal(1.15).met(1.15)
    assert not Goal(1.15).met(1.16)
    assert Goal(0.85, at_least=True).met(0.85)
    assert not Goal(0.85, at_least=True).met(0.84)


def test_rounds_are_interleaved_and_the_first_are_not_counted():
    asked = []

    def contender(name):
        return lambda each: asked.append((each, name)) or float(each)

    samples = interleaved({"a": contender("a"), "b": contender("b")}, [1, 2, 3], warm_up=1)
    assert samples == {"a": [2.0, 3.0], "b": [2.0, 3.0]}
    assert [each for each, _ in asked] == [1, 1, 2, 2, 3, 3]
    assert {(each, name) for each, name in asked} == {(each, name) for each in (1, 2, 3) for name in "ab"}


def test_the_table_has_a_line_for_everything_compared():
    results = Results({}, {"query": [a_line()]}, {"query": {}})
    assert table(results).splitlines()[2:] == [
        "| a question | 2 ms | floor: 1 | 2.00 | ≤ 1.15, missed |",
        "|  |  | stock: 4 | 0.50 | ≤ 1 |",
    ]


def test_results_are_read_as_they_were_written(tmp_path):
    results = Results({"cores": 2})
    results.add("query", [a_line()], {"rounds": 3})
    results.write(tmp_path / "results.json")
    again = Results.read(tmp_path / "results.json")
    assert again == results
    assert again.settings["query"]["rounds"] == 3


def test_only_the_table_of_the_readme_changes():
    readme = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    results = Results({}, {"query": [a_line()]})
    assert into_readme(readme, results) == f"before\n{BEGIN}\n{table(results)}\n{END}\nafter\n"


def test_the_readme_shows_the_newest_results():
    assert table(Results.read(RESULTS)) in README.read_text()


def test_the_results_are_of_rows_that_there_are():
    assert set(Results.read(RESULTS).rows) <= set(ROWS)
    assert set(ROWS) > NOT_QUICK


def test_the_plot_shows_the_newest_growth():
    [points] = [line.about["points"] for line in Results.read(RESULTS).rows["growth"] if "points" in line.about]
    assert GROWTH.read_text() == growth_svg(points)


def test_the_plot_is_an_svg_with_a_line_for_each_in_both_panels():
    drawn = ET.fromstring(growth_svg(POINTS))  # noqa: S314  (our own)
    lines = [path for path in drawn.iter("{http://www.w3.org/2000/svg}path") if "L" in path.get("d")]
    assert len(lines) == 6
    assert "memory of the process" in "".join(drawn.itertext())


def test_the_corpus_is_the_same_every_time_and_one_mail_in_ten_is_a_newsletter():
    rows = list(corpus.chunks(0, 400))
    assert rows == list(corpus.chunks(0, 400))
    assert len({id_ for id_, *_ in rows}) == 400
    kinds = [about["source_type"] for *_, about in rows]
    assert kinds.count("newsletter") == 40
    assert all(60 <= len(text.split()) <= 170 for _, _, text, _ in rows)


def test_a_question_is_nearest_to_the_chunks_about_its_topic():
    [question] = corpus.questions(1, 1_000)
    topic, variant = corpus.place(question)
    near = corpus.centres() @ corpus.vector_at(topic, variant)
    assert np.argmax(near) == topic
    assert question.split()[3] in corpus.words_of(topic)


@pytest.fixture(scope="module")
def models():
    with model_server() as running:
        yield running


def test_the_model_server_embeds_as_ollama_does(models):
    asked = corpus.questions(2, 1_000)
    with ollama.Client(models.url) as client:
        vectors = client.embed("any", asked).embeddings
    expected = [corpus.vector_at(*corpus.place(question)) for question in asked]
    assert np.allclose(vectors, expected, atol=1e-6)


@pytest.mark.parametrize("stream", [True, False])
def test_the_model_server_answers_from_the_first_mail_as_ollama_does(models, stream):
    said = "Dear all. Please be there on Friday at 3:15 pm and bring $7. Please be there on Monday."
    with ollama.Client(models.url) as client:
        replies = client.chat("any", [{"role": "user", "content": said}], stream=stream)
        whole = "".join(each.message.content for each in replies) if stream else replies.message.content
    assert whole == "That is what the letter says. Please be there on Friday at 3:15 pm and bring $7."


def test_asking_about_one_kind_finds_what_where_finds(tmp_path):
    database = str(corpus.collection_of(tmp_path, 1_500))
    for kind in ("email", "newsletter"):
        assert share_same_as_where(database, corpus.questions(20, 1_500), kind) == 1.0, kind
