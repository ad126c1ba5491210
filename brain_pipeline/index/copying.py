"""A collection copied to a Chroma server, row by row, and read back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import compress
from typing import Any

import numpy as np

from brain_pipeline.errors import StoreError
from brain_pipeline.index.catalog import Catalog
from brain_pipeline.index.chroma import foreign_errors
from brain_pipeline.index.store import Store, Vectors, space_of

PAGE = 500  # rows at once: with their vectors some megabytes, well below what a server takes in one request

ROUNDING = 1e-6  # of a number of a vector of length 1

BESIDE = ("members", "calendar")

_Rows = dict[str, Any]  # as Chroma gives them: ids, embeddings, documents and metadatas of the same length

_PARTS = ("ids", "embeddings", "documents", "metadatas")
_NONE: _Rows = {part: [] for part in _PARTS}


def copy_collection(source: Store, target: Store, on_progress: Callable[[int, int], None] = lambda *_: None) -> int:
    """Copies every row with its vector, text and metadata as they are stored, whoever wrote them.

    A copy that was broken off is finished by copying again: rows that the target holds already are compared, not sent.
    At the end every row is read back from the target and compared.

    Args:
        source: what is copied; it is only read.
        target: where to; its collection is made like the source's when it is missing.
        on_progress: called with the number of rows that are copied and compared, and how many there are.

    Returns:
        The number of rows, all of which the target holds.

    Raises:
        StoreError: there is nothing to copy, the target holds other rows, or either can't be used.
    """
    ids = source.ids()
    if not ids:
        raise StoreError(f"There is no mail in {source.location} to copy.")
    held = target.ids()
    if held - ids:
        raise _other_rows(target, len(held - ids))
    if held:  # before a row is written to what may be somebody else's
        _compare(source, target, held)
    target.collection(create=True, remember=source.metadata or None, space=_space(source))
    done = 0
    for page in _pages(source):
        _write(target, _chosen(page, [id_ not in held for id_ in page["ids"]]))
        done += len(page["ids"])
        on_progress(done, len(ids))
    _compare(source, target, ids)
    if target.count() != len(ids):
        raise _other_rows(target, target.count() - len(ids))
    return len(ids)


def copy_rest(source: Catalog, target: Catalog) -> None:
    """Copies what is kept beside a collection: the family's rules of whose mail is whose, and its invitations.

    What the target has of these already is left alone. The keyword index is not copied: it is made from the rows.

    Raises:
        StoreError: a file can't be read or written.
    """
    for kind in BESIDE:
        from_, to = source.file_beside(kind), target.file_beside(kind)
        if not from_.is_file() or to.exists():
            continue
        to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = to.with_name(f"{to.name}.new")
        with (
            foreign_errors(str(to)),
            closing(sqlite3.connect(from_)) as read,
            closing(sqlite3.connect(unfinished)) as new,
        ):
            read.backup(new)
        unfinished.replace(to)


def _other_rows(target: Store, number: int) -> StoreError:
    return StoreError(
        f"The collection {target.settings.collection} of {target.location} holds {number:,} rows that the copied "
        "database does not have. Copy to a server that has no such collection yet, or delete it there."
    )


def _pages(store: Store) -> Iterator[_Rows]:
    start = 0
    while page := _read(store, limit=PAGE, offset=start):
        yield page
        start += PAGE


def _read(store: Store, **wanted: Any) -> _Rows | None:
    """What is stored of some rows, None when there are none."""
    with foreign_errors(store.location, server=store.settings.chroma_url is not None):
        collection = store.collection()
        if collection is None:
            return None
        found: Any = collection.get(include=["embeddings", "documents", "metadatas"], **wanted)
    return dict(found) if found["ids"] else None


def _chosen(rows: _Rows, which: Sequence[bool]) -> _Rows:
    return {part: list(compress(rows[part], which)) for part in _PARTS}


def _write(target: Store, rows: _Rows) -> None:
    """Adds rows; Chroma takes those without a text apart, and no empty metadata."""
    rows["metadatas"] = [metadata or None for metadata in rows["metadatas"]]
    texts = [text is not None for text in rows["documents"]]
    with foreign_errors(target.location, server=True):
        collection = target.collection()
        if collection is None:
            raise StoreError(f"The collection of {target.location} was deleted meanwhile. Copy again.")
        if any(texts):
            collection.add(**_chosen(rows, texts))
        if not all(texts):
            bare = _chosen(rows, [not has_text for has_text in texts])
            collection.add(**{part: values for part, values in bare.items() if part != "documents"})


def _compare(source: Store, target: Store, ids: set[str]) -> None:
    """Makes sure that both hold the same under each of ``ids``."""
    cosine = _space(source) == "cosine"
    for page in _pages(source):
        wanted = [id_ for id_ in page["ids"] if id_ in ids]
        if not wanted:
            continue
        ours, theirs = _by_id(page), _by_id(_read(target, ids=wanted) or _NONE)
        differing = sum(id_ not in theirs or not _same(ours[id_], theirs[id_], cosine=cosine) for id_ in wanted)
        if differing:
            raise StoreError(
                f"{differing:,} rows of the collection {target.settings.collection} of {target.location} differ from "
                "the copied database's. Delete that collection, then copy again."
            )


def _space(store: Store) -> str:
    with foreign_errors(store.location):
        collection = store.collection()
        return space_of(collection) if collection is not None else "cosine"


def _by_id(rows: _Rows) -> dict[str, tuple[Any, Any, Any]]:
    values = zip(rows["embeddings"], rows["documents"], rows["metadatas"], strict=True)
    return dict(zip(rows["ids"], values, strict=True))


def _same(ours: tuple[Any, Any, Any], theirs: tuple[Any, Any, Any], *, cosine: bool) -> bool:
    alike = _same_direction if cosine else np.array_equal
    some, other = np.asarray(ours[0], dtype=np.float32), np.asarray(theirs[0], dtype=np.float32)
    return alike(some, other) and ours[1] == theirs[1] and (ours[2] or None) == (theirs[2] or None)


def _same_direction(some: Vectors, other: Vectors) -> bool:
    """Chroma brings what a cosine collection is given to length 1, again and again, which moves last digits."""
    lengths = np.linalg.norm(some) or 1, np.linalg.norm(other) or 1
    return some.shape == other.shape and np.allclose(some / lengths[0], other / lengths[1], rtol=0, atol=ROUNDING)
