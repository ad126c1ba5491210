"""What becomes of retrieved nodes: one per email, best first, at most three, each with its "Found in:" line.

Each is a LlamaIndex node postprocessor that works on its own in any query engine:
``index.as_query_engine(node_postprocessors=[OnePerEmail(), SortByScore(), Cap(), FoundIn()])``.
"""

from __future__ import annotations

from datetime import date

from dateutil import tz
from llama_index.core.bridge.pydantic import Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from typing_extensions import override

from brain_pipeline.index.metadata import EmailFields, MetadataReader
from brain_pipeline.records import attribution

FOUND_IN = "found_in"  # the metadata key of the attribution


def _household() -> MetadataReader:
    return MetadataReader(tz.tzlocal())


def fields_of(node: NodeWithScore, reader: MetadataReader) -> EmailFields:
    """What is known of the email that a node belongs to."""
    return reader.read(node.metadata, node.text, node.node_id)


class _Postprocessor(BaseNodePostprocessor):
    @override
    @classmethod
    def class_name(cls) -> str:
        return cls.__name__


class OnePerEmail(_Postprocessor):
    """Keeps the best-scored node of each email and drops nodes that can't be attributed to one."""

    reader: MetadataReader = Field(default_factory=_household)

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        best: dict[str, NodeWithScore] = {}
        for node in nodes:
            key = fields_of(node, self.reader).key
            if key and (key not in best or node.get_score() > best[key].get_score()):
                best[key] = node
        return list(best.values())


class SortByScore(_Postprocessor):
    """Best first, and the newest of equals, so that "moved to Tuesday" comes before the schedule that it changes."""

    reader: MetadataReader = Field(default_factory=_household)

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return sorted(nodes, key=lambda node: (node.get_score(), self._day(node)), reverse=True)

    def _day(self, node: NodeWithScore) -> date:
        return fields_of(node, self.reader).day or date.min


class Cap(_Postprocessor):
    """Keeps the first ``limit`` nodes."""

    limit: int = Field(default=3, ge=1)

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return nodes[: self.limit]


class FoundIn(_Postprocessor):
    """Writes each node's ``Found in: {subject}, {date}`` into its metadata, as ``found_in``."""

    reader: MetadataReader = Field(default_factory=_household)

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        for node in nodes:
            fields = fields_of(node, self.reader)
            node.metadata[FOUND_IN] = attribution(fields.subject, fields.day)
        return nodes


def postprocessors(reader: MetadataReader, limit: int | None = None) -> list[BaseNodePostprocessor]:
    """What the candidates of a question go through, in this order.

    Args:
        reader: reads the collection's metadata.
        limit: emails that may be left at most; None for all.
    """
    cap = [] if limit is None else [Cap(limit=limit)]
    return [OnePerEmail(reader=reader), SortByScore(reader=reader), *cap, FoundIn(reader=reader)]
