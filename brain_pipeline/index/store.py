"""The Chroma collection: beside ``chroma``, which opens it, the only importer of Chroma.

Reading creates nothing: a database or a collection that does not exist reads as empty.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeVar, cast

import numpy as np
from chromadb.api.client import Client
from chromadb.api.collection_configuration import CreateCollectionConfiguration
from chromadb.api.models.Collection import Collection
from chromadb.api.types import GetResult, Include
from chromadb.errors import NotFoundError
from numpy.typing import NDArray

from brain_pipeline.errors import DimensionMismatch, StoreError
from brain_pipeline.index.chroma import DATABASE, check_file, foreign_errors, open_database, open_server
from brain_pipeline.index.ownership import Ownership
from brain_pipeline.settings import Settings

Vectors = NDArray[np.float32]
Metadata = Mapping[str, Any]
Result = TypeVar("Result")

COUNTED_FOR = 1.0  # seconds until the rows that others wrote to a server are noticed
PAGE = 5_000  # rows read at once; Chroma fails above 32,766
EMBED_MODEL = "embed_model"  # what a collection made here remembers of its making
USUAL_MODELS = {384: "all-minilm", 768: "nomic-embed-text", 1024: "mxbai-embed-large"}  # by their dimensions


@dataclass(frozen=True, slots=True)
class Row:
    """One stored chunk: its id, text and metadata as some program wrote them."""

    id: str
    text: str
    metadata: Metadata


class Store:
    """One collection of one Chroma database, embedded or on a server (``settings.chroma_url``).

    It opens when first used and may be used from several threads. Every method raises ``StoreError`` when the database
    can't be used, and ``StoreLocked`` when another process owns it.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ownership = Ownership(settings.db_path)
        self._client: Client | None = None
        self._collection: Collection | None = None
        self._counted: tuple[object, int] = None, 0  # the database's state, and the rows it held then
        self._writes = 0
        self._opening = threading.RLock()

    @property
    def location(self) -> str:
        """The database's path, or the server's URL."""
        return self.settings.chroma_url or str(self.settings.db_path)

    def collection(
        self, *, create: bool = False, remember: Metadata | None = None, space: str = "cosine"
    ) -> Collection | None:
        """The Chroma collection, or None when there is none and ``create`` is false.

        Args:
            create: make the database and the collection when they are missing.
            remember: what a collection made here keeps of its making, in its metadata.
            space: the distance of a collection made here.
        """
        with self._opening:
            if self._collection is None and (create or self._database_exists()):
                with self._foreign_errors():
                    self._collection = self._open(create=create, remember=remember, space=space)
            return self._collection

    def close(self) -> None:
        """Closes the database and gives up its ownership; using the store again opens it again."""
        with self._opening:
            if self._client is not None:
                self._client.close()
                self._client = self._collection = None
                if self.settings.chroma_url is None:
                    self.ownership.give_up()

    def _database_exists(self) -> bool:
        return self.settings.chroma_url is not None or (self.settings.db_path / DATABASE).is_file()

    def _open(self, *, create: bool, remember: Metadata | None, space: str) -> Collection | None:
        if self._client is None:
            self._client = self._connect()
        try:
            return self._client.get_collection(self.settings.collection, embedding_function=None)
        except NotFoundError:
            if not create:
                return None
        return self._client.create_collection(
            self.settings.collection,
            metadata=dict(remember) if remember else None,
            configuration=cast("CreateCollectionConfiguration", {"hnsw": {"space": space}}),
            embedding_function=None,
        )

    def _connect(self) -> Client:
        if self.settings.chroma_url is not None:
            return open_server(self.settings)
        self.settings.db_path.mkdir(mode=0o700, parents=True, exist_ok=True)  # the family's mail is nobody else's
        self.ownership.take()
        try:
            return open_database(self.settings.db_path, self.settings.collection)
        except BaseException:
            self.ownership.give_up()
            raise

    @contextmanager
    def _foreign_errors(self) -> Iterator[None]:
        try:
            with foreign_errors(self.location, server=self.settings.chroma_url is not None):
                yield
        except StoreError:
            self._collection = None  # it may have been dropped or made anew: look again next time
            raise

    def _asked(self, question: Callable[[Collection], Result]) -> Result | None:
        """What the collection says, None when there is none; one that was dropped meanwhile is looked for again."""
        for last in (False, True):
            collection = self.collection()
            if collection is None:
                break
            try:
                with self._foreign_errors():
                    return question(collection)
            except StoreError as error:
                if last or not isinstance(error.__cause__, NotFoundError):
                    raise
        return None

    def _read(self, **wanted: Any) -> GetResult | None:
        return self._asked(lambda collection: collection.get(**wanted))

    def count(self) -> int:
        """The number of stored chunks.

        Chroma counts them one by one, so an embedded database is asked again only when its file has changed, and a
        server only after ``COUNTED_FOR`` seconds, or a change of ours.
        """
        state, (counted, rows) = self._state(), self._counted
        if state is None or state != counted:
            rows = self._asked(lambda collection: collection.count()) or 0
            self._counted = state, rows
        return rows

    def _state(self) -> object:
        """What every change of the database changes, a server's some time after; None when it is not known."""
        if self._collection is None:
            return None
        if self.settings.chroma_url is not None:
            return self._collection.id, self._writes, time.monotonic() // COUNTED_FOR
        try:
            kept = (self.settings.db_path / DATABASE).stat()
        except OSError:
            return None
        return self._collection.id, kept.st_mtime_ns, kept.st_size

    @property
    def metadata(self) -> Metadata:
        """What the collection remembers of its making; empty for those of other programs."""
        collection = self.collection()
        return (collection.metadata or {}) if collection is not None else {}

    def remember(self, facts: Metadata) -> bool:
        """Keeps facts with the collection; false where Chroma can't.

        The metadata of a collection from before Chroma 1.0 says which distance it has, and can't be written again.
        """

        def modify(collection: Collection) -> bool:
            kept = collection.metadata or {}
            if any(key.startswith("hnsw:") for key in kept):
                return False
            collection.modify(metadata={**kept, **facts})
            return True

        return self._asked(modify) or False

    def dimension(self) -> int | None:
        """The length of the collection's vectors, None while it has none."""
        some = self._some_vector()
        return len(some) if some is not None else None

    def _some_vector(self) -> Vectors | None:
        found = self._read(limit=1, include=["embeddings"])
        vectors = found["embeddings"] if found is not None else None
        return np.asarray(vectors[0], dtype=np.float32) if vectors is not None and len(vectors) else None

    def rows(self) -> Iterator[Row]:
        """Every row, read in pages."""
        start = 0
        while page := self._read(limit=PAGE, offset=start, include=["metadatas", "documents"]):
            yield from _rows(page)
            start += PAGE
            if len(page["ids"]) < PAGE:
                return

    def ids(self) -> set[str]:
        """The id of every row."""
        found = self._read(include=[])
        return set(found["ids"]) if found is not None else set()

    def get(self, ids: Sequence[str]) -> Iterator[Row]:
        """The rows of those ids that exist, read in pages; an id that is named twice is read once."""
        wanted = list(dict.fromkeys(ids))  # Chroma refuses duplicates
        for start in range(0, len(wanted), PAGE):
            page = self._read(ids=wanted[start : start + PAGE], include=["metadatas", "documents"])
            yield from _rows(page) if page is not None else ()

    def sample(self, size: int) -> tuple[list[Row], Vectors]:
        """Rows drawn at random, at most ``size``, always the same of one collection; vectors of (rows, dimension)."""
        ids = sorted(self.ids())
        drawn = [ids[i] for i in np.random.default_rng(0).permutation(len(ids))[:size]]
        found = self._read(ids=drawn, include=["metadatas", "documents", "embeddings"]) if drawn else None
        if found is None:
            return [], np.empty((0, 0), np.float32)
        return _rows(found), np.asarray(found["embeddings"], dtype=np.float32)

    def nearest(self, vector: Vectors, limit: int) -> dict[str, float]:
        """The ids of the ``limit`` rows nearest by the collection's own distance, each with its cosine, best first.

        The cosine, in [-1, 1], is the only score that is comparable across l2, inner-product and cosine collections.
        Chroma's own distance tells it in cosine space; elsewhere it is computed here from the stored vectors. Where
        vectors vary in length the two orders differ: ask for enough.

        Args:
            vector: the question's, of shape (dimension,).
            limit: how many rows.

        Raises:
            DimensionMismatch: the vector is not as long as the collection's.
        """

        def query(collection: Collection) -> dict[str, float]:
            known = space_of(collection) == "cosine"
            wanted: Include = ["distances" if known else "embeddings"]
            found: Any = collection.query(query_embeddings=vector[np.newaxis], n_results=limit, include=wanted)
            ids = found["ids"][0]
            if known:
                return _best_first(ids, 1 - np.asarray(found["distances"][0]))
            return _by_cosine(vector, ids, found["embeddings"][0])

        try:
            return self._asked(query) or {}
        except StoreError:
            self.require_dimension(len(vector))
            raise

    @property
    def in_order(self) -> bool:
        """Whether the collection's own distance orders rows as their cosines do."""
        collection = self.collection()
        return collection is not None and space_of(collection) == "cosine"

    def cosines(self, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        """Those of the given rows that exist, each with its cosine, best first.

        Raises:
            DimensionMismatch: the vector is not as long as the collection's.
        """
        found = self._read(ids=list(ids), include=["embeddings"]) if ids else None
        if found is None:
            return {}
        embeddings: Any = found["embeddings"]
        if found["ids"] and len(embeddings[0]) != len(vector):
            self.require_dimension(len(vector))
        return _by_cosine(vector, found["ids"], embeddings)

    def upsert(self, rows: Sequence[Row], vectors: Vectors) -> None:
        """Writes rows in their order, with vectors of shape (rows, dimension), in place of those with the same ids.

        The collection must exist: see ``collection(create=True)``.

        Raises:
            DimensionMismatch: the vectors are not as long as the collection's.
        """

        def write(collection: Collection) -> bool:
            for start in range(0, len(rows), PAGE):
                page = rows[start : start + PAGE]
                collection.upsert(
                    ids=[row.id for row in page],
                    embeddings=vectors[start : start + PAGE],
                    documents=[row.text for row in page],
                    metadatas=[dict(row.metadata) for row in page],
                )
                self._writes += 1
            return True

        try:
            written = self._asked(write)
        except StoreError:
            self.require_dimension(vectors.shape[1])
            raise
        if not written:
            raise StoreError(f"The collection {self.settings.collection} has gone; ingest again to make it anew.")

    def delete(self, ids: Sequence[str]) -> None:
        """Deletes those of the given rows that exist."""
        if ids:
            self._asked(lambda collection: collection.delete(ids=list(ids)))
            self._writes += 1

    def check(self) -> None:
        """Reads the database through, and searches it once, so that damage shows now and not at some question."""
        if self.collection() is not None and self.settings.chroma_url is None:
            with self._foreign_errors():
                check_file(self.settings.db_path)
        if (some := self._some_vector()) is not None:
            self.nearest(some, 1)

    def require_dimension(self, given: int) -> None:
        """Checks that vectors of ``given`` dimensions fit the collection; any fit while it holds none.

        Raises:
            DimensionMismatch: they don't; the message names both models.
        """
        stored = self.dimension()
        if stored is None or stored == given:
            return
        written_by = self.metadata.get(EMBED_MODEL)
        if not written_by:
            usual = USUAL_MODELS.get(stored)
            written_by = f"a model it does not name, perhaps {usual}" if usual else "a model it does not name"
        raise DimensionMismatch(
            f"The collection {self.settings.collection} holds vectors of {stored} dimensions, written by {written_by}; "
            f"the model {self.settings.embed_model} gives {given}. Set OLLAMA_EMBED_MODEL to the model that wrote the "
            "collection, or name another collection in BRAIN_COLLECTION."
        )


def _rows(found: GetResult) -> list[Row]:
    texts, metadatas = found["documents"] or (), found["metadatas"] or ()
    return [Row(id_, text or "", data or {}) for id_, text, data in zip_longest(found["ids"], texts, metadatas)]


def _by_cosine(vector: Vectors, ids: Sequence[str], vectors: Any) -> dict[str, float]:
    if not ids:
        return {}
    query, stored = np.asarray(vector, dtype=np.float64), np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(stored, axis=1) * np.linalg.norm(query)
    return _best_first(ids, (stored @ query) / np.where(lengths > 0, lengths, 1))


def _best_first(ids: Sequence[str], cosines: NDArray[np.float64]) -> dict[str, float]:
    return {ids[i]: float(cosines[i]) for i in np.argsort(-cosines, kind="stable")}


def space_of(collection: Collection) -> str:
    """The collection's distance. Of one from before Chroma 1.0, only the metadata tells the truth."""
    told = (collection.metadata or {}).get("hnsw:space")
    return str(told or (collection.configuration_json.get("hnsw") or {}).get("space"))
