"""From nodes to an answer as a LlamaIndex response synthesizer, for query engines with one part exchanged."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from llama_index.core.base.response.schema import Response
from llama_index.core.llms.mock import MockLLM
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle
from typing_extensions import override

from brain_pipeline.ask.pipeline import Pipeline
from brain_pipeline.records import Answer


class OneCall(BaseSynthesizer):
    """Answers from nodes as ``/brain/query`` does: the same threshold, prompt, single call and checks.

    ``source_nodes`` of its response are those that the answer rests on, none when it abstains; ``metadata`` holds the
    ``confidence`` and ``query_time_ms``.

    Args:
        pipeline: what answers.
        wait_for: runs a coroutine to its end, also inside a running event loop.
    """

    def __init__(self, pipeline: Pipeline, wait_for: Callable[[Coroutine[Any, Any, Response]], Response]) -> None:
        super().__init__(llm=pipeline.llm() or MockLLM())  # without one, LlamaIndex falls back to OpenAI
        self._pipeline = pipeline
        self._wait_for = wait_for

    @override
    def synthesize(
        self,
        query: str | QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> Response:
        return self._wait_for(self.asynthesize(query, nodes))

    @override
    async def asynthesize(
        self,
        query: str | QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> Response:
        question = query if isinstance(query, str) else query.query_str
        found = tuple(map(self._pipeline.source_of, nodes))
        events = self._pipeline.stream(question, found=found)
        [answer] = [event async for event in events if isinstance(event, Answer)]
        used = {source.id for source in answer.sources}
        told = {"confidence": answer.confidence, "query_time_ms": answer.query_time_ms}
        return Response(answer.text, [node for node in nodes if node.node_id in used], told)

    @override
    def get_response(self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any) -> str:
        raise NotImplementedError("An answer needs the emails that its texts are from; call synthesize.")

    @override
    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any) -> str:
        raise NotImplementedError("An answer needs the emails that its texts are from; call asynthesize.")

    @override
    def _get_prompts(self) -> dict[str, Any]:
        return {}

    @override
    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        """The prompt is fixed: its rules keep hostile mail from giving orders."""
