"""The functions of the household's earlier modules, so that their callers move by changing an import.

All of them use one brain, opened from the environment at the first call. ``use(brain)`` puts another in its place, as a
test does, and ``close()`` gives the database up. New code holds a ``Brain`` of its own instead.
"""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any

from brain_pipeline.brain import Brain, open_brain
from brain_pipeline.records import Report, Source

_lock = threading.RLock()
_held: list[Brain] = []  # none or one


def use(brain: Brain | None) -> None:
    """Takes ``brain`` from now on, and closes the one before; None goes back to the environment's."""
    with _lock:
        for before in _held:
            if before is not brain:
                before.close()
        _held[:] = [] if brain is None else [brain]


def close() -> None:
    """Gives the database up; the next call opens the environment's brain again."""
    use(None)


def _brain() -> Brain:
    with _lock:
        if not _held:
            _held.append(open_brain())
        return _held[0]


def query(question: str, top_k: int | None = None, source: str = "all") -> dict[str, Any]:
    """What ``GET /brain/query`` answers: ``answer``, ``sources``, ``confidence`` and ``query_time_ms``.

    Arguments and errors are those of ``Brain.aquery``.
    """
    answer = _brain().query(question, top_k=top_k, source=source)
    return {
        "answer": answer.text,
        "sources": list(map(_source, answer.sources)),
        "confidence": answer.confidence,
        "query_time_ms": answer.query_time_ms,
    }


def _source(source: Source) -> dict[str, Any]:
    return {
        "attribution": source.attribution,
        "subject": source.subject,
        "date": source.day.isoformat() if source.day else None,
        "score": round(source.score, 4),
        "source_type": source.source_type,
    }


def answer(question: str, top_k: int | None = None, source: str = "all") -> str:
    """The answer's text, with its "Found in:" lines below it."""
    return str(_brain().query(question, top_k=top_k, source=source))


def stats() -> dict[str, Any]:
    """What ``GET /brain/stats`` answers."""
    held = _brain().stats()
    return {
        "total_documents": held.total_documents,
        "total_chunks": held.total_chunks,
        "collection": held.collection,
        "db_path": held.db_path,
        "last_ingest": held.last_ingest.isoformat() if held.last_ingest else None,
    }


def ingest_email(message: bytes | str, **fields: Any) -> Report:
    """Brings in one email; see ``Brain.ingest_newsletter`` for what may be given."""
    return _brain().ingest_email(message, **fields)


def ingest_newsletter(message: bytes | str, **fields: Any) -> Report:
    """Brings in one newsletter; see ``Brain.ingest_newsletter``."""
    return _brain().ingest_newsletter(message, **fields)


def get_embedding(text: str) -> list[float]:
    """The vector that ``text`` has as stored mail."""
    return _brain().embedder.get_text_embedding(text)


async def get_embedding_async(text: str) -> list[float]:
    """``get_embedding`` for callers that await."""
    return await _brain().embedder.aget_text_embedding(text)


def learn_assignment(pattern: str, member: str) -> None:
    """Notes that mail of a pattern was said to be a member's; see ``Brain.learn_assignment``."""
    _brain().learn_assignment(pattern, member)


def lookup_assignment(sender: str = "", subject: str = "", text: str = "", list_id: str = "") -> list[dict[str, Any]]:
    """Whom a mail like this concerns, each with ``member``, ``probability`` and ``why``; none where that is a guess."""
    found = _brain().lookup_assignment(sender=sender, list_id=list_id, subject=subject, text=text)
    return list(map(asdict, found))
