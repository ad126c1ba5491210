"""The collection as LlamaIndex's vector store, whoever wrote it."""

from __future__ import annotations

from typing import Any

import numpy as np
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode, VectorStoreQueryResult
from llama_index.vector_stores.chroma import ChromaVectorStore
from pydantic import PrivateAttr
from typing_extensions import override

from brain_pipeline.index.store import Row, Store

SPARE = 4  # candidates asked of Chroma for each node wanted, since its own order may not be the cosine's
FEWEST = 50


class FamilyVectorStore(ChromaVectorStore):
    """Chroma with true cosine scores, on collections of any distance and any writer.

    LlamaIndex's own class scores ``exp(-distance)``, which is 0 on un-normalised l2 vectors, and needs the collection
    to exist. Writing, deleting and filtered queries are its own.
    """

    _store: Store = PrivateAttr()

    def __init__(self, store: Store) -> None:
        super().__init__(chroma_collection=store, collection_name=store.settings.collection)
        self._store = store

    @property  # type: ignore[misc]
    def _collection(self) -> Any:  # type: ignore[override]  # it may be made or dropped while this lives
        return self._store.collection()

    @override
    @classmethod
    def class_name(cls) -> str:
        return "FamilyVectorStore"

    @override
    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nodes nearest to the question by cosine, best first.

        Raises:
            DimensionMismatch: the question's vector is not as long as the collection's.
            StoreError: the database can't be used.
        """
        plain = query.mode == VectorStoreQueryMode.DEFAULT and query.filters is None and not kwargs
        if self._store.collection() is None or (plain and query.query_embedding):
            vector = np.asarray(query.query_embedding or [], dtype=np.float32)
            found = self._store.nearest(vector, max(FEWEST, SPARE * query.similarity_top_k))
            ids = list(found)[: query.similarity_top_k]
            rows = {row.id: row for row in self._store.get(ids)}
            kept = [id_ for id_ in ids if id_ in rows]
            return VectorStoreQueryResult(
                nodes=[as_node(rows[id_]) for id_ in kept], similarities=[found[id_] for id_ in kept], ids=kept
            )
        return super().query(query, **kwargs)


def as_node(row: Row) -> TextNode:
    """A row as a node with the row's own id, text and metadata, without LlamaIndex's copy of the node in it."""
    metadata = {key: value for key, value in row.metadata.items() if not key.startswith("_node_")}
    return TextNode(id_=row.id, text=row.text, metadata=metadata)
