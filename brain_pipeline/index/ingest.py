"""Mail in, index changed: every message becomes stored chunks or a named skip, once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding

from brain_pipeline.index.catalog import Catalog
from brain_pipeline.index.chunk import Chunk, chunk_id, chunk_mail
from brain_pipeline.index.invitations import Invitation, invitation
from brain_pipeline.index.metadata import CHUNK_COUNT, CONTENT_HASH, DOCUMENT_ID, FINGERPRINT
from brain_pipeline.index.store import Metadata
from brain_pipeline.models.tokens import token_counter
from brain_pipeline.records import Mail, Report, Skip

MAILS_AT_ONCE = 32  # looked up in the collection together
REQUESTS_AT_ONCE = 2  # whose chunks are written together
IN_FLIGHT = 4  # Chroma lets nothing else run while it writes, so the model needs work for as long
WAITING = 6  # batches ready for the model, so that it works on while mail is read


@dataclass(frozen=True, slots=True)
class _Change:
    """One mail's chunks, and how many rows it had in the collection before."""

    chunks: Sequence[Chunk]
    stored: int


def ingest(
    messages: Iterable[tuple[str, Mail | Skip]],
    catalog: Catalog,
    embedder: BaseEmbedding,
    *,
    remember: Metadata,
    on_progress: Callable[[Report], None] = lambda _: None,
) -> Report:
    """Brings messages into the catalog; those it holds already, unchanged, are not embedded again.

    The next messages are read while the embedding model works. The collection is whole at every moment: an ingestion
    that is stopped, or killed, is finished by running it again.

    Args:
        messages: where each message stood, and what was read there.
        catalog: where they go.
        embedder: makes the vectors.
        remember: what a collection made here keeps of its making.
        on_progress: called after each message with the report so far.

    Raises:
        ModelError: the embedding model failed; what was written before stays.
        StoreError: the database can't be written.
    """
    catalog.prepare(remember)
    report = Report()
    changes = _changes(messages, catalog, report, on_progress)
    embedding: deque[tuple[list[_Change], Future[list[list[float]]]]] = deque()
    pool = ThreadPoolExecutor(IN_FLIGHT, "embedding")
    try:
        with catalog.changing():
            for batch in _batches(changes, REQUESTS_AT_ONCE * embedder.embed_batch_size):
                texts = [chunk.embedded for chunk in _in_order(batch)]
                embedding.append((batch, pool.submit(embedder.get_text_embedding_batch, texts)))
                if len(embedding) > WAITING:
                    _write(catalog, *embedding.popleft())
            while embedding:
                _write(catalog, *embedding.popleft())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    _tell(catalog)
    return report


def _changes(
    messages: Iterable[tuple[str, Mail | Skip]],
    catalog: Catalog,
    report: Report,
    on_progress: Callable[[Report], None],
) -> Iterator[_Change]:
    """The mails that the collection does not hold yet, or holds otherwise; the first copy of a mail counts."""
    seen: set[str] = set()
    for group in _grouped(messages, MAILS_AT_ONCE):
        read: list[list[Chunk]] = []
        told: dict[str, Invitation | None] = {}
        for origin, mail in group:
            if isinstance(mail, Skip):
                report.skipped.append((origin, mail.reason))
                on_progress(report)
            else:
                read.append(chunk_mail(mail, zone=catalog.settings.zone, count=token_counter()))
                id_ = read[-1][0].row.id
                told.setdefault(id_, invitation(id_, mail, catalog.settings.zone))
        catalog.keep_invitations(told)
        stored = {row.id: row.metadata for row in catalog.store.get([chunks[0].row.id for chunks in read])}
        for chunks in read:
            if change := _change(chunks, stored, catalog, seen, report):
                yield change
            on_progress(report)


def _change(
    chunks: list[Chunk], stored: Mapping[str, Metadata], catalog: Catalog, seen: set[str], report: Report
) -> _Change | None:
    first = chunks[0].row
    key, fingerprint = str(first.metadata[DOCUMENT_ID]), str(first.metadata[FINGERPRINT])
    known = stored.get(first.id)
    if key in seen or fingerprint in seen or (known is None and catalog.twin(fingerprint, of=first.id) is not None):
        report.unchanged += 1
        return None
    seen |= {key, fingerprint} - {""}
    if known is None:
        report.new += 1
        return _Change(chunks, 0)
    if known.get(CONTENT_HASH) == first.metadata[CONTENT_HASH]:
        report.unchanged += 1
        return None
    report.updated += 1
    return _Change(chunks, int(known.get(CHUNK_COUNT, 0)))


def _write(catalog: Catalog, changes: Sequence[_Change], embedding: Future[list[list[float]]]) -> None:
    vectors = np.asarray(embedding.result(), dtype=np.float32)
    catalog.write([chunk.row for chunk in _in_order(changes)], vectors, outdated=[*_outdated(changes)])
    _tell(catalog)


def _tell(catalog: Catalog) -> None:
    catalog.ingested(datetime.now(UTC).astimezone(catalog.settings.zone))


def _in_order(changes: Sequence[_Change]) -> list[Chunk]:
    """A mail's first chunk comes last: it holds the mail's hash, so it stands for the others having been written."""
    return [chunk for change in changes for chunk in reversed(change.chunks)]


def _outdated(changes: Sequence[_Change]) -> Iterator[str]:
    for change in changes:
        key = str(change.chunks[0].row.metadata[DOCUMENT_ID])
        yield from (chunk_id(key, index) for index in range(len(change.chunks), change.stored))


def _grouped(messages: Iterable[tuple[str, Mail | Skip]], size: int) -> Iterator[list[tuple[str, Mail | Skip]]]:
    iterator = iter(messages)
    while group := list(islice(iterator, size)):
        yield group


def _batches(changes: Iterable[_Change], chunks: int) -> Iterator[list[_Change]]:
    """Changes in lists of at least so many chunks each, but for the last."""
    batch: list[_Change] = []
    size = 0
    for change in changes:
        batch.append(change)
        size += len(change.chunks)
        if size >= chunks:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
