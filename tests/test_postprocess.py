"""The postprocessors on their own, in LlamaIndex's own query engines."""

from __future__ import annotations

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, TextNode

from brain_pipeline.ask.postprocess import FOUND_IN, Cap, FoundIn, OnePerEmail, SortByScore
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM


def node(text, score, **metadata):
    return NodeWithScore(node=TextNode(text=text, metadata=metadata), score=score)


def test_the_best_chunk_stands_for_its_email():
    nodes = [node("a", 0.2, message_id="<1>", subject="S"), node("b", 0.9, message_id="<1>", subject="S")]
    nodes.append(node("c", 0.5, message_id="<2>", subject="T"))
    assert [n.text for n in OnePerEmail().postprocess_nodes(nodes)] == ["b", "c"]


def test_rows_that_can_t_be_attributed_are_no_source():
    assert OnePerEmail().postprocess_nodes([node("x", 0.9), node("y", 0.8, chunk=1)]) == []


def test_best_first_and_equals_as_they_came():
    nodes = [node("a", 0.2), node("b", 0.9), node("c", 0.9), node("d", 0.5)]
    assert [n.text for n in SortByScore().postprocess_nodes(nodes)] == ["b", "c", "d", "a"]


def test_the_cap():
    assert len(Cap().postprocess_nodes([node(str(n), 0.5) for n in range(9)])) == 3
    with pytest.raises(ValueError, match="limit"):
        Cap(limit=0)


@pytest.mark.parametrize(
    ("metadata", "line"),
    [
        ({"subject": "Slip", "date": "Tue, 06 May 2025 19:42:11 -0500"}, "Found in: Slip, 2025-05-06"),
        ({"Subject": "Slip", "received": "2025-05-06"}, "Found in: Slip, 2025-05-06"),
        ({"subject": "Slip"}, "Found in: Slip, unknown date"),
        ({"sender": "a@b.example"}, "Found in: (no subject), unknown date"),
    ],
)
def test_the_attribution(metadata, line):
    (found,) = FoundIn().postprocess_nodes([node("x", 0.5, **metadata)])
    assert found.metadata[FOUND_IN] == line


def test_they_work_in_any_query_engine():
    nodes = [
        TextNode(text=f"The zoo trip, part {n}", metadata={"message_id": "<1>", "subject": "Zoo", "date": "2025-05-06"})
        for n in range(5)
    ]
    nodes.append(TextNode(text="The zoo opens at nine", metadata={"message_id": "<2>", "subject": "Hours"}))
    llm = ScriptedLLM("It opens at nine.")
    engine = VectorStoreIndex(nodes, embed_model=HashedTokenEmbedder()).as_query_engine(
        llm=llm,
        similarity_top_k=6,
        node_postprocessors=[OnePerEmail(), SortByScore(), Cap(), FoundIn()],
    )
    response = engine.query("When does the zoo open?")
    found = [source.metadata[FOUND_IN] for source in response.source_nodes]
    assert sorted(found) == ["Found in: Hours, unknown date", "Found in: Zoo, 2025-05-06"]
    assert str(response) == "It opens at nine."
    assert llm.prompts[0].count("The zoo trip, part") == 1
