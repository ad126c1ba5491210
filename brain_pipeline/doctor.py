"""One line for each thing that can be wrong, and what to do about it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version

from brain_pipeline.brain import Brain
from brain_pipeline.errors import BrainError
from brain_pipeline.family.sources import Calendars
from brain_pipeline.index.ownership import Owner
from brain_pipeline.index.store import EMBED_MODEL
from brain_pipeline.models.gguf import check_file
from brain_pipeline.models.ollama import check_server
from brain_pipeline.settings import Settings


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at; ``remedy`` is empty when nothing is to be done."""

    ok: bool
    what: str
    remedy: str = ""


def diagnose(settings: Settings) -> Iterator[Finding]:
    """Looks at everything the brain needs, in the order in which it needs it; never raises a ``BrainError``."""
    yield Finding(ok=True, what=_versions())
    yield Finding(
        ok=True, what=f"environment {settings.environment}, time zone {settings.timezone or 'of this machine'}"
    )
    with Brain(settings) as brain:
        yield _tried("database", lambda: _database(brain))
        yield _tried("embedding model", lambda: _embedder(settings))
        yield _tried("collection's vectors", lambda: _vectors(brain))
        yield _tried("language model", lambda: _llm(settings))
    if settings.calendars:
        yield _tried("calendars", lambda: _calendars(settings))


def _tried(name: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except BrainError as error:
        return Finding(ok=False, what=f"{name}:", remedy=str(error))


def _versions() -> str:
    packages = ("family-brain", "chromadb", "llama-index-core", "fastapi")
    return f"python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in packages)


def _database(brain: Brain) -> Finding:
    store = brain.catalog.store
    where = f"database {store.location}"
    if served := _served(brain):
        return Finding(ok=True, what=f"{where} is held by process {served.pid}, which serves it at {served.url}")
    store.check()
    keywords = brain.catalog.keywords()
    if keywords is None:
        return Finding(
            ok=False,
            what=f"{where}: no collection {brain.settings.collection} there.",
            remedy="Run `brain ingest PATH`, or set CHROMA_DB_PATH to the database that holds it.",
        )
    held = brain.stats()
    what = f"{where}, collection {held.collection}: {held.total_documents} emails in {held.total_chunks} chunks"
    nameless = len(keywords.ids(email=""))
    if nameless:
        what += f"; {nameless} rows name neither subject, date nor sender and are never cited"
    return Finding(ok=True, what=what)


def _served(brain: Brain) -> Owner | None:
    return brain.catalog.store.ownership.elsewhere() if brain.settings.chroma_url is None else None


def _embedder(settings: Settings) -> Finding:
    where = "in this process"
    if settings.embed_provider == "ollama":
        where = f"at {settings.ollama_base_url}"
        check_server(
            settings.ollama_base_url,
            settings.embed_model,
            settings.embed_connect_timeout,
            settings.embed_read_timeout,
            settings.allow_public_hosts,
        )
    return Finding(ok=True, what=f"embedding model {settings.embed_model} {where}")


def _vectors(brain: Brain) -> Finding:
    if _served(brain):
        return Finding(ok=True, what="the collection's vectors are that process's to check")
    given = len(brain.embedder.get_query_embedding("warm"))
    brain.catalog.store.require_dimension(given)
    written_by = brain.catalog.store.metadata.get(EMBED_MODEL)
    if written_by and written_by != brain.settings.embed_model:
        return Finding(
            ok=False,
            what=f"the collection's vectors were written by {written_by}.",
            remedy="Scores mean nothing across models: set OLLAMA_EMBED_MODEL to that one.",
        )
    return Finding(ok=True, what=f"vectors of {given} dimensions, as the collection's")


def _llm(settings: Settings) -> Finding:
    if settings.llm_provider == "excerpts":
        return Finding(ok=True, what="no language model: answers quote the mail")
    if settings.llm_provider == "gguf":
        check_file(settings.llm_model_path)
        return Finding(ok=True, what=f"language model {settings.llm_model_path} in this process")
    _check_llm(settings, settings.llm_url, settings.llm_model)
    what = f"language model {settings.llm_model} at {settings.llm_url}"
    if settings.llm_fallback_url is not None:
        model = settings.llm_fallback_model or settings.llm_model
        _check_llm(settings, settings.llm_fallback_url, model)
        what += f", else {model} at {settings.llm_fallback_url}"
    return Finding(ok=True, what=what)


def _calendars(settings: Settings) -> Finding:
    calendars = Calendars(settings.calendars, list)
    read = calendars.read()
    what = f"calendars: {len(calendars.files())} files, {len(read.fixed) + len(read.series)} events"
    if not read.broken:
        return Finding(ok=True, what=what)
    names = ", ".join(read.broken)
    return Finding(ok=False, what=f"{what}; not all could be read of {names}.", remedy="Export these calendars anew.")


def _check_llm(settings: Settings, url: str, model: str) -> None:
    check_server(url, model, settings.llm_connect_timeout, settings.llm_read_timeout, settings.allow_public_hosts)
