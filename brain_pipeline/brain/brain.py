"""A household's mail, ready to be asked."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, tzinfo
from types import TracebackType
from typing import Any, Self, TypeVar

from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms.llm import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer

from brain_pipeline.ask.engine import OneCall
from brain_pipeline.ask.events import Agenda, told
from brain_pipeline.ask.explain import Explanation, explain
from brain_pipeline.ask.pipeline import Pipeline
from brain_pipeline.ask.question import Floats
from brain_pipeline.ask.score import Calibration
from brain_pipeline.brain.calibration import calibrate, calibrate_unknown_model, keep_calibration, kept_calibration
from brain_pipeline.brain.models import Models
from brain_pipeline.errors import ConfigError, InvalidRequest
from brain_pipeline.family.calendar import CalendarText
from brain_pipeline.family.members import Assignment, Pattern
from brain_pipeline.family.people import Member, People
from brain_pipeline.family.sources import Calendars
from brain_pipeline.family.when import Window, asks_when
from brain_pipeline.index.catalog import DOCUMENT_PREFIX, QUERY_PREFIX, Catalog
from brain_pipeline.index.ingest import ingest
from brain_pipeline.index.store import EMBED_MODEL
from brain_pipeline.index.vectors import FamilyVectorStore
from brain_pipeline.loop import LoopThread
from brain_pipeline.mail.reading import read
from brain_pipeline.models.guard import require_household
from brain_pipeline.models.ollama import warm_up
from brain_pipeline.records import (
    CALENDAR,
    Answer,
    Event,
    Found,
    Kind,
    Mail,
    Passage,
    Piece,
    RawMessage,
    Report,
    Skip,
    Source,
    Stats,
)
from brain_pipeline.settings import Settings
from brain_pipeline.text import encodable

Result = TypeVar("Result")


class Brain:
    """A household's mail, ready to be asked.

    Nothing is opened or loaded before it is needed, and asking creates nothing. A brain may be used from several
    threads and event loops. Close it, or use it as a context manager, to let another process open the database.

    Args:
        settings: where the mail is and which models answer.
        embedder: used instead of the one that the settings name.
        llm: used instead of the one that the settings name.
        clock: the household's local time; default now in ``settings.zone``.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        embedder: BaseEmbedding | None = None,
        llm: LLM | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.settings = settings
        self.catalog = Catalog(settings)
        self._models = Models(self.catalog, embedder, llm)
        self._starting = threading.Lock()
        self.people = People(self.catalog, settings.members)
        self._pipeline = Pipeline(
            self.catalog,
            embedder=lambda: self.embedder,
            llm=lambda: self.llm,
            calibration=lambda: self.calibration,
            clock=clock or settings.present,
            agenda=Agenda(
                Calendars(settings.calendars, self._mailed_calendars),
                week_start=settings.week_start,
                day_first=lambda: self.catalog.reader.order == "day",
            ),
            people=self.people,
        )
        self._ingesting = threading.Lock()
        self._loop: LoopThread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives up the database and the connections; a brain that is used again opens them again."""
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()  # without the lock: it waits for running questions
        self._models.close()
        self.people.close()
        self.catalog.close()

    def warm_up(self) -> None:
        """Opens the database and loads both models, so that the first question does not wait for it.

        Raises:
            BrainUnavailable: the database or a model can't be used now.
        """
        self.catalog.keywords()
        warm_up(self.embedder)
        calibrate_unknown_model(self.catalog, self._models)
        if self.llm is not None:
            warm_up(self.llm)

    # The models and LlamaIndex's own objects, the ones that answer questions.

    @property
    def embedder(self) -> BaseEmbedding:
        """The embedding model, with the prefixes that the collection was written with."""
        return self._models.embedder

    @property
    def prefixes(self) -> tuple[str, str]:
        """What is put before a question and before a chunk; see ``Models.prefixes``."""
        return self._models.prefixes

    @property
    def llm(self) -> LLM | None:
        """The language model, None when answers are excerpts."""
        return self._models.llm

    @property
    def index(self) -> VectorStoreIndex:
        """LlamaIndex's index over the collection: pure vector retrieval, scored by cosine."""
        return VectorStoreIndex.from_vector_store(FamilyVectorStore(self.catalog.store), embed_model=self.embedder)

    @property
    def retriever(self) -> BaseRetriever:
        """What finds the candidates of a question, in both indexes."""
        return self._pipeline.retriever()

    @property
    def postprocessors(self) -> list[BaseNodePostprocessor]:
        """What the candidates go through: one per email, best first, the cap, "Found in:"."""
        return self._pipeline.postprocessors(self.settings.context_chunks)

    @property
    def synthesizer(self) -> BaseSynthesizer:
        """What makes an answer of the nodes that are left: one call to the language model, and the checks."""
        return OneCall(self._pipeline, self._wait_for)

    @property
    def query_engine(self) -> RetrieverQueryEngine:
        """``retriever``, ``postprocessors`` and ``synthesizer`` as one: what answers a question."""
        return RetrieverQueryEngine(self.retriever, self.synthesizer, self.postprocessors)

    @property
    def calibration(self) -> Calibration:
        """How the score is read for this model and collection: as calibrated, else as shipped for the model."""
        return kept_calibration(self.catalog)

    # Asking.

    def query(
        self,
        question: str,
        *,
        top_k: int | None = None,
        source: str = "all",
        now: datetime | None = None,
        member: str | None = None,
    ) -> Answer:
        """``aquery`` for callers without ``await``; also inside a running event loop, as in a notebook."""
        return self._wait_for(self.aquery(question, top_k=top_k, source=source, now=now, member=member))

    async def aquery(
        self,
        question: str,
        *,
        top_k: int | None = None,
        source: str = "all",
        now: datetime | None = None,
        member: str | None = None,
    ) -> Answer:
        """Answers a question from the mail and the calendars, or says that it isn't there.

        Args:
            question: in plain words, at most 2,000 characters.
            top_k: sources wanted at most; capped by ``settings.context_chunks``.
            source: ``email``, ``newsletter``, ``calendar`` or ``all``; anything else means all.
            now: when it is asked, in the household's zone when it names none; default the brain's clock.
            member: of the family, whose mail alone may answer; a name that nobody has means everybody's.

        Raises:
            InvalidRequest: the question is blank or too long, or ``top_k`` is below 1.
            BrainUnavailable: a model or the database can't be used now; ``sources`` holds what had been found.
        """
        events = self._events(question, top_k, source, now, member, watched=False)
        [answer] = [event async for event in events if isinstance(event, Answer)]
        return answer

    async def astream(
        self,
        question: str,
        *,
        top_k: int | None = None,
        source: str = "all",
        now: datetime | None = None,
        member: str | None = None,
    ) -> AsyncGenerator[Found | Piece | Answer, None]:
        """``aquery`` as it goes: what was found, then the answer's words, at last the answer itself.

        The last is what counts: it differs from the pieces when the model takes back what it began to say. Closing the
        generator ends the model's work. Arguments and errors are those of ``aquery``.
        """
        async with aclosing(self._events(question, top_k, source, now, member, watched=True)) as events:
            async for event in events:
                yield event

    def _events(
        self, question: str, top_k: int | None, source: str, now: datetime | None, member: str | None, *, watched: bool
    ) -> AsyncGenerator[Found | Piece | Answer, None]:
        local = self._local(now)
        return self._pipeline.stream(question, top_k=top_k, source=source, now=local, member=member, watched=watched)

    def explain(
        self, question: str, *, top_k: int | None = None, source: str = "all", now: datetime | None = None
    ) -> Explanation:
        """Every candidate of a question with its scores and what removed it, and the prompt; no model is asked.

        Arguments and errors are those of ``aquery``.
        """
        return self._wait_for(explain(self._pipeline, question, top_k=top_k, source=source, now=self._local(now)))

    def ranked(self, question: str, *, now: datetime | None = None) -> tuple[Source, ...]:
        """Every email that retrieval finds for a question, best first, without cap and threshold: for evaluation.

        ``now`` is that of ``aquery``.
        """
        asked, window = self._local(now), self.window(question, now=now)
        return self._wait_for(self._pipeline.rank(question, now=asked, window=window))

    def evidence(self, question: str, *, now: datetime | None = None) -> dict[str, Floats]:
        """What the score of each email for a question is made from; see ``ask.score.features``."""
        asked, window = self._local(now), self.window(question, now=now)
        return self._pipeline.retriever(now=asked, window=window).evidence(question)

    # The calendar.

    def window(self, text: str, *, now: datetime | None = None) -> Window | None:
        """The days that a text names, seen from ``now``, which is that of ``aquery``."""
        return self._pipeline.agenda.window(text, self._local(now))

    def events(self, window: Window) -> list[Event]:
        """What the family's calendars have in a window, soonest first.

        Raises:
            ConfigError: calendars are set and the extra ``calendar`` is not installed.
        """
        return self._pipeline.agenda.events(window, self.settings.zone)

    def whats_on(
        self, text: str, *, now: datetime | None = None, zone: tzinfo | None = None
    ) -> tuple[Window | None, list[Event]]:
        """The days that a text names and their events; without such days, the events that it asks the time of.

        ``now`` is that of ``aquery``; ``zone`` is where days are counted and times told, default the household's.
        """
        agenda, zone = self._pipeline.agenda, zone or self.settings.zone
        local = now.replace(tzinfo=zone) if now and not now.tzinfo else self._local(now).astimezone(zone)
        window = agenda.window(text, local)
        if window is not None:
            return window, agenda.events(window, zone)
        return None, agenda.coming(text, local) if asks_when(text) else []

    # The members.

    def members(self) -> list[Member]:
        """The family's members, what was learned of their mail, and how much of it there is."""
        return self.people.all()

    def learn_assignment(self, pattern: str, member: str, *, times: int = 1) -> None:
        """Notes that mail of a pattern was said to be a member's, and applies that to all mail at once.

        Args:
            pattern: as ``family.members.Pattern`` writes it, such as ``sender:coach@gulls.example``.
            member: whose mail it is; one that nobody knew before becomes known.
            times: how much that counts against what was said before.

        Raises:
            InvalidRequest: the pattern is none, or the member has no name.
        """
        self.people.learn(Pattern.parse(pattern), member, times)

    def lookup_assignment(
        self, *, sender: str = "", list_id: str = "", subject: str = "", text: str = ""
    ) -> tuple[Assignment, ...]:
        """Whom a mail like this concerns, most probably first, each with why; nobody where that would be a guess."""
        return self.people.lookup(sender=sender, list_id=list_id, subject=subject, text=text)

    def forget_assignment(self, pattern: str, member: str | None = None) -> int:
        """Undoes what was learned of a pattern, of one member or of all.

        Returns:
            How many rules were forgotten.

        Raises:
            InvalidRequest: the pattern is none.
        """
        return self.people.forget(Pattern.parse(pattern), member)

    def correct_assignment(self, source: str, member: str) -> None:
        """Notes that the email of a source is a member's, and that mail of its sender and its list probably is.

        Args:
            source: the ``id`` of a source.
            member: whose email it is.

        Raises:
            InvalidRequest: there is no such source, or the member has no name.
        """
        for row in self.catalog.store.get([source]):
            self.people.correct(self.catalog.reader.read(row.metadata, row.text, row.id).key, member)
            return
        raise InvalidRequest("There is no such source; the mail may have been brought in anew.")

    def _local(self, now: datetime | None) -> datetime:
        return self.settings.local(now or self._pipeline.clock())

    def _mailed_calendars(self) -> list[CalendarText]:
        invitations = self.catalog.invitations()
        return [CalendarText(f"of mail {told.id}", text, told.sent) for told in invitations for text in told.texts]

    def _wait_for(self, work: Coroutine[Any, Any, Result]) -> Result:
        with self._starting:
            loop = self._loop = self._loop or LoopThread()
        return loop.call(work)

    # Bringing mail in.

    def ingest(
        self, messages: Iterable[RawMessage | Skip], *, on_progress: Callable[[Report], None] = lambda _: None
    ) -> Report:
        """Reads messages and brings them in; one message never stops the others.

        Args:
            messages: as ``mail.mailboxes.iter_messages`` gives them.
            on_progress: called with the report so far.

        Raises:
            BrainUnavailable: the embedding model or the database failed; what was finished before is kept.
        """
        return self.ingest_mails(
            ((each.origin, read(each, self.settings)) for each in messages), on_progress=on_progress
        )

    def ingest_email(self, message: bytes | str, **fields: Any) -> Report:
        """Brings in one email that a caller has in hand; see ``ingest_newsletter``."""
        return self._ingest_as("email", message, fields)

    def ingest_newsletter(self, message: bytes | str, **fields: Any) -> Report:
        """Brings in one newsletter that a caller has in hand.

        Args:
            message: the whole message as it was sent, or, when ``fields`` are given, only its text or HTML.
            fields: of ``records.Mail``, as ``subject``, ``date``, ``sender_name``, ``sender_address``, ``message_id``.
        """
        return self._ingest_as("newsletter", message, fields)

    def _ingest_as(self, kind: Kind, message: bytes | str, fields: dict[str, Any]) -> Report:
        content = message.encode(errors="replace") if isinstance(message, str) else message
        # An empty header block keeps a text that begins like a header ("Note: ...") from being read as one.
        mail = read(RawMessage("in hand", b"\n" + content if fields else content), self.settings)
        known = mail if isinstance(mail, Skip) else replace(mail, kind=kind, **fields)
        return self.ingest_mails([("in hand", known)])

    def ingest_mails(
        self, mails: Iterable[tuple[str, Mail | Skip]], *, on_progress: Callable[[Report], None] = lambda _: None
    ) -> Report:
        """Brings in mails that were read already, each with where it stood; see ``index.ingest.ingest``."""
        query, document = self.prefixes
        remember = {EMBED_MODEL: self.settings.embed_model, QUERY_PREFIX: query, DOCUMENT_PREFIX: document}
        self._require_same_model()
        with self._ingesting:
            report = ingest(mails, self.catalog, self.embedder, remember=remember, on_progress=on_progress)
            if report.new + report.updated:
                calibrate_unknown_model(self.catalog, self._models)
        return report

    def calibrate(self) -> Calibration:
        """Fits the score to the collection, from its own mail and without labels; see ``ask.calibrate``.

        Raises:
            BrainUnavailable: the embedding model or the database can't be used now.
        """
        return calibrate(self.catalog, self._models)

    def keep_calibration(self, calibration: Calibration) -> None:
        """Keeps a calibration with the collection, for the questions to come."""
        keep_calibration(self.catalog, calibration)

    def _require_same_model(self) -> None:
        written_by = str(self.catalog.store.metadata.get(EMBED_MODEL, ""))
        ours = self.settings.embed_model
        if written_by and written_by.removesuffix(":latest") != ours.removesuffix(":latest"):
            raise ConfigError(
                f"The collection {self.settings.collection} was written by the embedding model {written_by}; vectors "
                f"of {ours} among its own would make nonsense of both. Set OLLAMA_EMBED_MODEL to {written_by}, or name "
                "another collection in BRAIN_COLLECTION."
            )

    def forget(self, email: str) -> int:
        """Deletes an email, by its Message-ID, with or without ``<>``, or by the ``email`` of one of its sources.

        Returns:
            How many chunks were deleted, 0 when there is no such email.
        """
        with self._ingesting:
            keywords = self.catalog.keywords()
            email = encodable(email)
            names = (email, f"<{email}>") if keywords and email else ()
            ids = {id_ for name in names for id_ in keywords.ids(email=name)} if keywords else set()
            self.catalog.delete(ids)
        return len(ids)

    # Knowing.

    def passage(self, id: str) -> Passage | None:  # noqa: A002  (the record's own name for it)
        """The stored row or event with that id, None when there is none or it can't be attributed to an email."""
        if id.startswith(f"{CALENDAR}:"):
            event = self._pipeline.agenda.find(id, self._local(None))
            return None if event is None else Passage(id, event.title, event.day, "", CALENDAR, told(event))
        for row in self.catalog.store.get([id]):
            fields = self.catalog.reader.read(row.metadata, row.text, row.id)
            if fields.key:
                members = tuple(each.member for each in self.people.of([fields.key]).get(fields.key, ()))
                return Passage(row.id, fields.subject, fields.day, fields.sender, fields.kind, row.text, members)
        return None

    def stats(self) -> Stats:
        """What the brain holds; zeros when there is nothing."""
        keywords = self.catalog.keywords()
        return Stats(
            total_documents=keywords.emails() if keywords else 0,
            total_chunks=self.catalog.store.count(),
            collection=self.settings.collection,
            db_path=self.catalog.store.location,
            last_ingest=self.catalog.last_ingest,
        )


def open_brain(settings: Settings | None = None) -> Brain:
    """A brain over the collection that ``settings`` name, or the environment when they are not given.

    Raises:
        ConfigError: the environment's settings can't be used, or name a server outside the household.
    """
    settings = settings or Settings.load()
    require_household(settings)
    return Brain(settings)
