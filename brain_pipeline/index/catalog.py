"""The collection and its keyword index as one: opened together, written together, kept in step."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path

from platformdirs import user_cache_path

from brain_pipeline.errors import StoreError
from brain_pipeline.index.keywords import Entry, KeywordIndex
from brain_pipeline.index.metadata import FINGERPRINT, MetadataReader, date_order, is_numeric_date
from brain_pipeline.index.store import Metadata, Row, Store, Vectors
from brain_pipeline.index.terms import date_words
from brain_pipeline.settings import Settings

log = logging.getLogger(__name__)

QUERY_PREFIX, DOCUMENT_PREFIX = "embed_query_prefix", "embed_document_prefix"  # kept with a collection made here
_LAST_INGEST = "last_ingest"
_SAMPLE = 50  # rows looked at to see whether a collection writes dates as numbers


class Catalog:
    """What the brain knows: a Chroma collection, and a keyword index over the same rows.

    The keyword index is made for collections that other programs wrote, and brought up to date when the two differ in
    number. It is written before the collection: rows it knows and the collection does not are never found, so a crash
    in between loses nothing, and the next run of the same ingestion writes both.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = Store(settings)
        self._keywords: KeywordIndex | None = None
        self._stamp = ""
        self._reader: MetadataReader | None = None
        self._opening = threading.RLock()

    def close(self) -> None:
        """Closes both; using the catalog again opens them again."""
        with self._opening:
            self._close_keywords()
            self.store.close()

    @property
    def reader(self) -> MetadataReader:
        """Reads the rows' metadata, with numeric dates the way round that this collection writes them."""
        with self._opening:
            if self._reader is None:
                zone, more = self.settings.zone, self.settings.metadata_aliases
                reader = MetadataReader(zone, more=more)
                if any(is_numeric_date(self._sent(reader, row)) for row in islice(self.store.rows(), _SAMPLE)):
                    reader = MetadataReader(zone, date_order(self._sent(reader, r) for r in self.store.rows()), more)
                self._reader = reader
            return self._reader

    @staticmethod
    def _sent(reader: MetadataReader, row: Row) -> str:
        return reader.read(row.metadata, row.text, row.id).sent

    def keywords(self) -> KeywordIndex | None:
        """The keyword index, in step with the collection; None when there is no collection."""
        collection = self.store.collection()
        if collection is None:
            return None
        with self._opening:
            stamp = str(collection.id)
            if self._keywords is None or self._stamp != stamp:  # another collection of that name, made meanwhile
                self._close_keywords()
                self._keywords, self._stamp = self._open_keywords(stamp), stamp
            return self._keywords

    def _close_keywords(self) -> None:
        if self._keywords is not None:
            self._keywords.close()
        self._keywords = self._reader = None

    def _open_keywords(self, stamp: str) -> KeywordIndex:
        path = self._keyword_file()
        try:
            index = KeywordIndex(path)
        except StoreError:  # damaged or of another format: all that is in it can be made again
            KeywordIndex.delete(path)
            index = KeywordIndex(path)
        if index.stamp != stamp:
            log.info("making the keyword index of %s", self.settings.collection)
            index.rebuild(map(self.entry, self.store.rows()), stamp)
        elif index.count() != self.store.count():
            log.info("bringing the keyword index of %s up to date", self.settings.collection)
            stored, indexed = self.store.ids(), index.ids()
            index.remove(indexed - stored)
            index.add(map(self.entry, self.store.get(sorted(stored - indexed))))
        return index

    def _keyword_file(self) -> Path:
        name = f"brain.keywords.{self.settings.collection}.sqlite3"
        if self.settings.chroma_url is None:
            return self.settings.db_path / name
        server = hashlib.sha256(self.settings.chroma_url.encode()).hexdigest()[:16]
        return user_cache_path("family-brain") / server / name

    @property
    def last_ingest(self) -> datetime | None:
        """When mail was last brought in, None when it never was."""
        keywords = self.keywords()
        noted = keywords.noted(_LAST_INGEST) if keywords else ""
        return datetime.fromisoformat(noted) if noted else None

    def ingested(self, moment: datetime) -> None:
        """Keeps the moment of an ingestion."""
        if (keywords := self.keywords()) is not None:
            keywords.note(_LAST_INGEST, moment.isoformat(timespec="seconds"))

    def entry(self, row: Row) -> Entry:
        """A row as the keyword index takes it."""
        fields = self.reader.read(row.metadata, row.text, row.id)
        return Entry(
            id=row.id,
            email=fields.key,
            subject=fields.subject,
            sender=fields.sender,
            dates=date_words(fields.day),
            text=row.text,
            kind=fields.kind,
            fingerprint=str(row.metadata.get(FINGERPRINT, "")),
        )

    def create(self, remember: Callable[[], Metadata]) -> None:
        """Makes the database and the collection when they are missing; ``remember`` is kept with a new one."""
        if self.store.collection() is None:
            self.store.collection(create=True, remember=remember())

    def write(self, rows: Sequence[Row], vectors: Vectors, *, outdated: Sequence[str] = ()) -> None:
        """Writes rows with their vectors, of shape (rows, dimension), and deletes the ``outdated`` ones first."""
        keywords = self.keywords()
        if keywords is not None:
            keywords.add(map(self.entry, rows))
        self.store.delete(outdated)
        self.store.upsert(rows, vectors)
        if keywords is not None and outdated:
            keywords.remove(outdated)

    def delete(self, ids: Iterable[str]) -> None:
        """Deletes rows."""
        gone = list(ids)
        self.store.delete(gone)
        if (keywords := self.keywords()) is not None:
            keywords.remove(gone)
