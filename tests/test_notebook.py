"""The brain in a notebook: LlamaIndex's objects are the product's own, records show themselves, the tour runs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
import uvloop
from household import HOUSEHOLD, fill, mail, settings_for
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine

from brain_pipeline import Settings
from brain_pipeline.brain import Brain
from brain_pipeline.errors import ModelUnreachable
from brain_pipeline.records import NOT_FOUND, Answer, Source, Stats
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

TOUR = Path(__file__).parents[1] / "notebooks" / "explore.ipynb"
QUESTION = "What do we need for the zoo field trip?"


def brain_of(folder, **more):
    settings = Settings.load(data_dir=folder, timezone="UTC", **more)
    return fill(Brain(settings, embedder=HashedTokenEmbedder(), llm=ScriptedLLM("A slip and $5.")), HOUSEHOLD)


@pytest.fixture
def brain(tmp_path):
    with brain_of(tmp_path) as made:
        yield made


# LlamaIndex's own objects.


def without_boundary(conversation):
    texts = [message.content for message in conversation]
    boundary = texts[-1].partition("<<")[2].partition(" ")[0]
    return [text.replace(boundary, "") for text in texts]


def test_the_query_engine_gives_what_the_product_gives(brain):
    assert isinstance(brain.query_engine, RetrieverQueryEngine)
    for question in (QUESTION, "When is the piano recital?", "Who won the chess olympiad?"):
        answer, response = brain.query(question), brain.query_engine.query(question)
        assert response.response == answer.text
        assert response.metadata["confidence"] == answer.confidence
        assert [(node.node_id, node.score) for node in response.source_nodes] == [
            (source.id, source.score) for source in answer.sources
        ]
        assert [node.metadata["found_in"] for node in response.source_nodes] == [
            source.attribution for source in answer.sources
        ]
    product, engine = brain.llm.conversations[:2]
    assert without_boundary(engine) == without_boundary(product)
    assert brain.llm.calls == 4  # none for the question that the mail does not answer


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_everything_works_inside_a_running_loop(brain, run):
    async def cell():
        engine = brain.query_engine
        return [
            engine.query(QUESTION).response,
            (await engine.aquery(QUESTION)).response,
            brain.query(QUESTION).text,
            brain.explain(QUESTION).candidates[0].source.subject,
            brain.retriever.retrieve(QUESTION)[0].metadata["subject"],
            brain.index.as_retriever(similarity_top_k=1).retrieve(QUESTION)[0].metadata["subject"],
        ]

    slip = "Field Trip Permission Slip"
    first, *others = run(cell())
    assert first.startswith("A slip and $5.")
    assert others == [first, first, slip, slip, slip]
    assert "nest_asyncio" not in sys.modules


class NothingOfSchool(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):  # noqa: ARG002  (the base class's signature)
        return [node for node in nodes if "school" not in node.metadata["sender"]]


def test_an_experiment_with_one_part_keeps_the_others(brain):
    engine = RetrieverQueryEngine(brain.retriever, brain.synthesizer, [*brain.postprocessors, NothingOfSchool()])
    assert engine.query(QUESTION).response == NOT_FOUND
    assert brain.query_engine.query(QUESTION).source_nodes
    other = brain.query_engine.with_retriever(brain.index.as_retriever(similarity_top_k=1))
    assert [node.metadata["found_in"] for node in other.query(QUESTION).source_nodes] == [
        "Found in: Field Trip Permission Slip, 2025-09-15"
    ]


def test_without_a_language_model_the_engine_quotes(tmp_path):
    with brain_of(tmp_path, llm_provider="excerpts") as brain:
        brain = Brain(brain.settings, embedder=HashedTokenEmbedder())  # noqa: PLW2901
        response = brain.query_engine.query(QUESTION)
        brain.close()
    assert "signed permission slip" in response.response


def test_the_engine_s_errors_are_ours(nobody, tmp_path):
    settings = settings_for(nobody, data_dir=tmp_path)
    with fill(Brain(settings, embedder=HashedTokenEmbedder())) as brain, pytest.raises(ModelUnreachable):
        brain.query_engine.query(QUESTION)


# How records look in a cell.

HOSTILE = """<script>alert(1)</script> <img src=x onerror=alert(2)> "quoted' & \u202e $5 and $10 </div></table>"""
TAGS = {"div", "b", "bdi", "i", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"}


class Checked(HTMLParser):
    """Collects the text of HTML and holds it to the few tags and attributes that cells are made of."""

    def __init__(self, html):
        super().__init__()
        self.text, self.open = "", []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS
        assert {name for name, _ in attrs} <= {"class", "style", "dir"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def source_of(text):
    return Source("1", "<1@x>", text, datetime(2025, 9, 15, tzinfo=UTC).date(), text, "email", 0.9234, text)


@given(text=st.text() | st.just(HOSTILE))
def test_whatever_mail_holds_is_text_in_a_cell(text):
    stats = Stats(1, 2, text, text, datetime(2025, 9, 15, 18, 30, tzinfo=UTC))
    for record in (source_of(text), Answer(text, (source_of(text),), "high", 12), stats):
        html = record._repr_html_()
        assert text.replace("\r", "") in Checked(html).text.replace("\r", "")
        assert html.startswith('<div class="tex2jax_ignore mathjax_ignore"')


def test_an_explanation_of_hostile_mail_is_text_in_a_cell(tmp_path):
    with brain_of(tmp_path) as brain:
        fill(brain, [mail(HOSTILE, f"The zoo field trip: {HOSTILE}")])
        html = brain.explain(QUESTION)._repr_html_()
    text = Checked(html).text
    assert "<script>alert(1)</script>" in text
    assert "You help a family find things" in text
    assert "below " in text


def test_what_is_unknown_says_so_in_a_cell(brain):
    nothing = brain.explain("Who won the chess olympiad?")._repr_html_()
    assert "No candidate is worth asking" in Checked(nothing).text
    assert "never" in Checked(Stats(0, 0, "c", "p", None)._repr_html_()).text
    assert NOT_FOUND in Checked(brain.query("Who won the chess olympiad?")._repr_html_()).text


def test_an_answer_reads_well_as_text_elsewhere(brain):
    assert str(brain.query(QUESTION)).endswith("Found in: Field Trip Permission Slip, 2025-09-15")


def test_the_tour_runs_from_its_first_cell_to_its_last(tmp_path):
    executed = tmp_path / "executed.ipynb"
    command = [sys.executable, "-m", "jupyter", "execute", str(TOUR), f"--output={executed}"]
    subprocess.run(command, check=True, capture_output=True, cwd=TOUR.parent, timeout=110)  # noqa: S603
    cells = [cell for cell in json.loads(executed.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in cells)
    outputs = json.dumps([cell["outputs"] for cell in cells])
    assert "Found in: Field Trip Permission Slip, 2025-09-15" in outputs
    assert "copy of Field Trip Permission Slip, 2025-09-15" in outputs
    assert "Found in: Invoice 2024-518, water heater, 2024-12-10" in outputs
    assert "image/png" in outputs


def test_the_tour_is_kept_without_outputs():
    cells = [cell for cell in json.loads(TOUR.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
