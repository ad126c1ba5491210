"""The two models of a brain, made at first use."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms.llm import LLM

from brain_pipeline.index.catalog import DOCUMENT_PREFIX, QUERY_PREFIX, Catalog
from brain_pipeline.models import build_embedder, build_llm, default_prefixes


class Models:
    """The embedding model and the language model of a collection.

    Args:
        catalog: the collection, which may remember how it was written.
        embedder: used instead of the one that the settings name.
        llm: used instead of the one that the settings name.
    """

    def __init__(self, catalog: Catalog, embedder: BaseEmbedding | None = None, llm: LLM | None = None) -> None:
        self._catalog = catalog
        self._given = embedder, llm
        self._embedder, self._llm = self._given
        self._building = threading.RLock()
        self._exits = ExitStack()

    def close(self) -> None:
        """Closes the connections of the models that were made here; used again, they are made again."""
        with self._building:
            exits = self._exits.pop_all()
            self._embedder, self._llm = self._given
        exits.close()

    @property
    def embedder(self) -> BaseEmbedding:
        """The embedding model, with the prefixes that the collection was written with."""
        with self._building:
            if self._embedder is None:
                query, document = self.prefixes
                self._embedder = build_embedder(self._catalog.settings, query_prefix=query, document_prefix=document)
                self._close_later(self._embedder)
            return self._embedder

    @property
    def llm(self) -> LLM | None:
        """The language model, None when answers are excerpts."""
        with self._building:
            if self._llm is None and self._catalog.settings.llm_provider != "excerpts":
                self._llm = build_llm(self._catalog.settings)
                self._close_later(self._llm)
            return self._llm

    def _close_later(self, model: object) -> None:
        if close := getattr(model, "close", None):  # those that keep connections have one
            self._exits.callback(close)

    @property
    def prefixes(self) -> tuple[str, str]:
        """What is put before a question and before a chunk.

        The settings' word counts first, then what the collection remembers. A collection of another program remembers
        nothing and gets none; an empty one gets what the model was trained with.
        """
        store, settings = self._catalog.store, self._catalog.settings
        kept = store.metadata
        unmarked = bool(kept) or store.count() > 0  # another program's
        foreign = QUERY_PREFIX not in kept and unmarked
        query, document = ("", "") if foreign else default_prefixes(settings.embed_model)
        query, document = kept.get(QUERY_PREFIX, query), kept.get(DOCUMENT_PREFIX, document)
        return (
            query if settings.embed_query_prefix is None else settings.embed_query_prefix,
            document if settings.embed_document_prefix is None else settings.embed_document_prefix,
        )
