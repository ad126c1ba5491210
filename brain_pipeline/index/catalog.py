"""The collection and its keyword index as one: opened together, written together, kept in step."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from platformdirs import user_cache_path

from brain_pipeline.index.invitations import Invitation, Invitations
from brain_pipeline.index.keywords import Entry, KeywordIndex
from brain_pipeline.index.metadata import FINGERPRINT, DateOrder, MetadataReader, date_order
from brain_pipeline.index.sqlite import Database, Outdated
from brain_pipeline.index.store import Metadata, Row, Store, Vectors
from brain_pipeline.index.terms import date_words
from brain_pipeline.settings import Settings

log = logging.getLogger(__name__)

QUERY_PREFIX, DOCUMENT_PREFIX = "embed_query_prefix", "embed_document_prefix"  # kept with a collection made here
_LAST_INGEST = "last_ingest"
_OUT_OF_STEP = -1  # a number of rows that no collection has
_ORDER = "date_order"  # which way round the collection writes numeric dates


class Catalog:
    """What the brain knows: a Chroma collection, and a keyword index over the same rows.

    The keyword index is made for collections that other programs wrote, and brought up to date when rows come or go
    without it. It is written before the collection: rows it knows and the collection does not are never found, and
    after a write that failed they are taken out again.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = Store(settings)
        self._keywords: KeywordIndex | None = None
        self._invitations: Invitations | None = None
        self._stamp = ""
        self._rows = 0  # in the collection when the keyword index was last in step with it
        self._writing = 0
        self._reader: MetadataReader | None = None
        self._opening = threading.RLock()

    def close(self) -> None:
        """Closes both; using the catalog again opens them again."""
        with self._opening:
            self._close_keywords()
            if self._invitations is not None:
                self._invitations.close()
            self._invitations = None
            self.store.close()

    @property
    def reader(self) -> MetadataReader:
        """Reads the rows' metadata, with numeric dates the way round that this collection writes them."""
        with self._opening:
            if self._reader is None:
                self.keywords()
            return self._reader or self._reading("month")

    def _reading(self, order: DateOrder) -> MetadataReader:
        return MetadataReader(self.settings.zone, order, self.settings.metadata_aliases)

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
            elif not self._writing and self.store.count() != self._rows:  # another program wrote, or a write failed
                self._bring_up_to_date(self._keywords)
            return self._keywords

    def _close_keywords(self) -> None:
        if self._keywords is not None:
            self._keywords.close()
        self._keywords = self._reader = None

    def _open_keywords(self, stamp: str) -> KeywordIndex:
        path = self._keyword_file()
        try:
            index = KeywordIndex(path)
        except Outdated:
            Database.delete(path)
            index = KeywordIndex(path)
        try:
            if index.stamp != stamp:
                log.info("making the keyword index of %s", self.settings.collection)
                self._reader = self._reading(date_order(self._dates()))
                index.rebuild(map(self.entry, self.store.rows()), stamp)
                index.note(_ORDER, self._reader.order)
                index.note(_LAST_INGEST, "")
                self._rows = self.store.count()
            else:
                self._reader = self._reading("day" if index.noted(_ORDER) == "day" else "month")
                self._bring_up_to_date(index)
        except BaseException:
            index.close()
            raise
        return index

    def _bring_up_to_date(self, index: KeywordIndex) -> None:
        stored, indexed = self.store.ids(), index.ids()
        if stored != indexed:
            log.info("bringing the keyword index of %s up to date", self.settings.collection)
            index.remove(indexed - stored)
            index.add(map(self.entry, self.store.get(sorted(stored - indexed))))
        self._rows = len(stored)

    def _dates(self) -> Iterator[object]:
        reader = self._reading("month")
        return (value for row in self.store.rows() for value in reader.dates(row.metadata))

    def invitations(self) -> list[Invitation]:
        """What the mails that are held told of calendars; no file is made, and none read when there is none."""
        kept = self._kept_invitations()
        told = kept.all() if kept else []
        keywords = self.keywords() if told else None
        held = keywords.passages(each.id for each in told) if keywords else {}
        return [each for each in told if each.id in held]

    def keep_invitations(self, mails: Mapping[str, Invitation | None]) -> None:
        """Keeps what mails told of calendars, by the ids of their first chunks; None where one tells nothing."""
        kept = self._kept_invitations(create=any(mails.values()))
        if kept is not None:
            kept.keep(mails)

    def _kept_invitations(self, *, create: bool = False) -> Invitations | None:
        path = self.file_beside("calendar")
        with self._opening:
            if self._invitations is None and (create or path.is_file()):
                try:
                    self._invitations = Invitations(path)
                except Outdated:
                    log.warning("%s is damaged and begun anew; ingest the mail again for its invitations", path)
                    Database.delete(path)
                    self._invitations = Invitations(path)
            return self._invitations

    def _keyword_file(self) -> Path:
        return self.file_beside("keywords")

    def file_beside(self, kind: str) -> Path:
        """A file of the brain's own beside the collection, or, for a Chroma server's, in the user's cache."""
        name = f"brain.{kind}.{self.settings.collection}.sqlite3"
        if self.settings.chroma_url is None:
            return self.settings.db_path / name
        server = hashlib.sha256(self.settings.chroma_url.encode()).hexdigest()[:16]
        return user_cache_path("family-brain") / server / name

    @property
    def last_ingest(self) -> datetime | None:
        """When mail was last brought in, None when it never was."""
        keywords = self.keywords()
        kept = self.store.metadata.get(_LAST_INGEST) or (keywords.noted(_LAST_INGEST) if keywords else "")
        return datetime.fromisoformat(kept) if kept else None

    def ingested(self, moment: datetime) -> None:
        """Keeps the moment of an ingestion: with the collection, or beside it where Chroma can't."""
        told = moment.isoformat(timespec="seconds")
        if not self.store.remember({_LAST_INGEST: told}) and (keywords := self.keywords()) is not None:
            keywords.note(_LAST_INGEST, told)

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

    def prepare(self, remember: Metadata) -> None:
        """Makes the database and the collection when they are missing; ``remember`` is kept with an empty one."""
        self.store.collection(create=True, remember=remember)
        if not self.store.metadata.keys() & remember.keys() and self.store.count() == 0:
            self.store.remember(remember)

    def twin(self, fingerprint: str, *, of: str) -> Row | None:
        """The first chunk of another mail than ``of`` (its first chunk's id) that is wholly stored and a copy of it."""
        keywords = self.keywords()
        copies = keywords.copies(fingerprint) if keywords else []
        first = [id_ for id_ in copies if id_.endswith("-0") and id_ != of]
        return next(self.store.get(first), None)

    def write(self, rows: Sequence[Row], vectors: Vectors, *, outdated: Sequence[str] = ()) -> None:
        """Writes rows with their vectors, of shape (rows, dimension), and deletes the ``outdated`` ones first."""
        keywords = self.keywords()
        with self.changing():
            if keywords is not None:
                keywords.add(map(self.entry, rows))
            self.store.delete(outdated)
            self.store.upsert(rows, vectors)
            if keywords is not None and outdated:
                keywords.remove(outdated)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """While rows are written the two differ in number on purpose; afterwards they don't, or are brought in step.

        Many writes can share one: rows are counted at its end only.
        """
        with self._opening:
            self._writing += 1
        try:
            yield
        except BaseException:
            with self._opening:
                self._writing -= 1
                self._rows = _OUT_OF_STEP
            raise
        with self._opening:
            self._writing -= 1
            if not self._writing and self._rows != _OUT_OF_STEP:
                self._rows = self.store.count()

    def delete(self, ids: Iterable[str]) -> None:
        """Deletes rows."""
        gone = list(ids)
        keywords = self.keywords()
        with self.changing():
            self.store.delete(gone)
            if keywords is not None:
                keywords.remove(gone)
        self.keep_invitations(dict.fromkeys(gone))
