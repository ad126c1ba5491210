"""From a question to an answer with sources, step by step and as it goes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import date, datetime
from functools import partial

import anyio
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms.llm import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from brain_pipeline.ask.answer import LOW, WORTH, ask_model, confidence_of
from brain_pipeline.ask.check import left_out, resting, unsupported
from brain_pipeline.ask.deadline import until
from brain_pipeline.ask.events import Agenda, merged
from brain_pipeline.ask.excerpt import excerpt, quote
from brain_pipeline.ask.postprocess import postprocessors
from brain_pipeline.ask.prompt import fitted
from brain_pipeline.ask.recent import Recent
from brain_pipeline.ask.retrieve import HybridRetriever
from brain_pipeline.ask.score import Calibration
from brain_pipeline.ask.whose import Whose
from brain_pipeline.errors import BrainUnavailable, InvalidRequest, ModelTimeout
from brain_pipeline.family.people import People
from brain_pipeline.family.when import Window
from brain_pipeline.index.catalog import Catalog
from brain_pipeline.models.gate import Gate
from brain_pipeline.records import CALENDAR, NOT_FOUND, Answer, Found, Kind, Piece, Source
from brain_pipeline.text import encodable

log = logging.getLogger(__name__)

LONGEST_QUESTION = 2_000  # characters

_Said = tuple[str | None, tuple[Source, ...]]

_KINDS: dict[str, Kind] = {"email": "email", "newsletter": "newsletter"}


def kind_of(source: str) -> Kind | None:
    """The kind of mail that a caller asks for; None for every kind."""
    return _KINDS.get(source.strip().casefold())


def _only_calendar(source: str) -> bool:
    return source.strip().casefold() == CALENDAR


class Pipeline:
    """Answers questions from a catalog.

    Args:
        catalog: what is known.
        embedder: gives the embedding model, loading it at first use.
        llm: gives the language model, None when answers are excerpts.
        calibration: gives the score's calibration for the collection.
        clock: the household's local time.
        agenda: what knows of days and of the family's calendar.
        people: what knows of the family's members.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        embedder: Callable[[], BaseEmbedding],
        llm: Callable[[], LLM | None],
        calibration: Callable[[], Calibration],
        clock: Callable[[], datetime],
        agenda: Agenda,
        people: People,
    ) -> None:
        self.catalog = catalog
        self._embedder = embedder
        self.llm = llm
        self._calibration = calibration
        self.clock = clock
        self.agenda = agenda
        self.people = people
        self._most = catalog.settings.context_chunks
        self._patience = catalog.settings.request_timeout
        self._vectors: Recent[list[float]] = Recent(catalog.settings.question_cache)
        self._answers: Recent[_Said] = Recent(catalog.settings.question_cache)
        self._gate = Gate(catalog.settings.llm_concurrency, catalog.settings.llm_queue)

    def retriever(
        self,
        kind: Kind | None = None,
        now: datetime | None = None,
        worth: float = 0.0,
        window: Window | None = None,
        whose: Whose | None = None,
    ) -> HybridRetriever:
        """What finds and scores the candidates of a question; without those of less than ``worth`` times the best."""
        return HybridRetriever(
            self.catalog,
            self._embedder(),
            emails=self._most,
            kind=kind,
            calibration=self._calibration(),
            today=(now or self.clock()).date(),
            worth=worth,
            window=window,
            whose=whose,
            vectors=self._vectors,
        )

    def postprocessors(self, limit: int | None = None) -> list[BaseNodePostprocessor]:
        """What the candidates go through; no more than ``limit`` are left, all when it is None."""
        return postprocessors(self.catalog.reader, limit)

    async def find(
        self,
        question: str,
        *,
        source: str = "all",
        limit: int | None = None,
        now: datetime | None = None,
        member: str | None = None,
    ) -> tuple[Source, ...]:
        """The emails and the events that may answer a question, best first; ``member`` as in ``Brain.aquery``."""
        prepared = partial(self._prepared, question, source, limit, now or self.clock(), member)
        events, retriever = await asyncio.to_thread(prepared)
        if retriever is None:
            return tuple(events[:limit])
        mails = await self._mails(question, retriever, None if events else limit)
        return merged(events, mails, limit) if events else mails

    def _prepared(
        self, question: str, source: str, limit: int | None, now: datetime, member: str | None
    ) -> tuple[list[Source], HybridRetriever | None]:
        """The events that a question is about, and what finds its emails; None when none are wanted or held."""
        window = self.agenda.window(question, now)
        events = self.events(question, source, now, window)
        if member is not None and events:
            events = self._of_member(events, member)
        if _only_calendar(source) or self.catalog.store.count() == 0:
            return events, None
        worth = 0.0 if events or limit is None else WORTH
        whose = Whose(self.people, question, member)
        return events, self.retriever(kind_of(source), now, worth, window, whose)

    def events(self, question: str, source: str, now: datetime, window: Window | None) -> list[Source]:
        """The events that a question is about, best first; none when only mail of one kind is wanted."""
        if kind_of(source) is not None:
            return []
        return self.agenda.sources(question, now, window, only=_only_calendar(source))

    def _of_member(self, events: list[Source], member: str) -> list[Source]:
        """The events that name a member; all when nobody has that name."""
        known = self.people.known(member)
        named = (known in self.people.named_in(f"{each.subject}\n{each.passage}") for each in events)
        return [each for each, is_theirs in zip(events, named, strict=True) if is_theirs or known is None]

    async def rank(
        self, question: str, *, now: datetime | None = None, window: Window | None = None
    ) -> tuple[Source, ...]:
        """Every email that may answer a question, best first, each with its best passage and its score."""
        question = encodable(question)
        if await asyncio.to_thread(self.catalog.store.count) == 0:
            return ()
        whose = await asyncio.to_thread(Whose, self.people, question)
        retriever = await asyncio.to_thread(partial(self.retriever, now=now, window=window, whose=whose))
        return await self._mails(question, retriever, None)

    async def _mails(self, question: str, retriever: HybridRetriever, limit: int | None) -> tuple[Source, ...]:
        nodes = await retriever.aretrieve(QueryBundle(question))
        return await asyncio.to_thread(self._sources, nodes, limit)  # reading metadata may wait for the keyword index

    def _sources(self, nodes: list[NodeWithScore], limit: int | None) -> tuple[Source, ...]:
        for postprocessor in self.postprocessors(limit):
            nodes = postprocessor.postprocess_nodes(nodes)
        sources = list(map(self.source_of, nodes))
        concerned = self.people.of([source.email for source in sources])
        return tuple(
            replace(source, members=tuple(each.member for each in concerned.get(source.email, ())))
            for source in sources
        )

    async def stream(
        self,
        question: str,
        *,
        top_k: int | None = None,
        source: str = "all",
        found: tuple[Source, ...] | None = None,
        now: datetime | None = None,
        member: str | None = None,
        watched: bool = True,
    ) -> AsyncGenerator[Found | Piece | Answer, None]:
        """See ``Brain.astream``; ``found`` are emails to answer from, in place of those that retrieval finds.

        An answer that nobody watches comes without its pieces.
        """
        started = time.perf_counter()
        now = now or self.clock()
        question, limit = self.checked(question, top_k)
        deadline = anyio.current_time() + self._patience
        sources: tuple[Source, ...] = ()
        said: _Said = None, ()
        shown = ""
        try:
            with anyio.fail_after(self._patience):
                if found is None:
                    found = await self.find(question, source=source, limit=limit, now=now, member=member)
                sources = self.readable(question, found)
            yield Found(sources, confidence_of(sources[0].score) if sources else "low")
            if sources:
                async with aclosing(until(deadline, self._answer(question, sources, now, watched=watched))) as versions:
                    async for said in versions:
                        text, _ = said
                        if text and text.startswith(shown) and text != shown:
                            yield Piece(text[len(shown) :])
                            shown = text
        except TimeoutError as error:
            late = ModelTimeout(
                f"No answer within {self._patience:g} seconds. The models may be loading; try again, or raise "
                "BRAIN_REQUEST_TIMEOUT."
            )
            late.sources = sources
            raise late from error
        except BrainUnavailable as error:
            error.sources = sources
            raise
        took = round((time.perf_counter() - started) * 1000)
        text, used = said
        if text is None:
            yield Answer(NOT_FOUND, (), "low", took)
        else:
            yield Answer(text, used, confidence_of(used[0].score), took)

    def readable(self, question: str, found: tuple[Source, ...]) -> tuple[Source, ...]:
        """What the language model reads of emails: those that are worth it, cut to what it can read at once."""
        settings = self.catalog.settings
        window, reply = settings.llm_context_window, settings.llm_max_tokens
        return fitted(question, _worth_reading(found), context_window=window, max_tokens=reply)

    def checked(self, question: str, top_k: int | None) -> tuple[str, int]:
        """The question without space around it, and how many sources it may have.

        Raises:
            InvalidRequest: the question is blank or too long, or ``top_k`` is below 1.
        """
        question = encodable(question).strip()
        if not question:
            raise InvalidRequest("The question is empty. Ask one, such as: When is the school play?")
        if len(question) > LONGEST_QUESTION:
            raise InvalidRequest(f"The question has {len(question):,} characters; send at most {LONGEST_QUESTION:,}.")
        if top_k is not None and top_k < 1:
            raise InvalidRequest(f"top_k is {top_k}; send how many sources you want, 1 or more.")
        return question, self._most if top_k is None else min(top_k, self._most)

    async def _answer(
        self, question: str, sources: tuple[Source, ...], now: datetime, *, watched: bool
    ) -> AsyncGenerator[_Said, None]:
        """The answer so far and the sources it is made from, again and again.

        The text is None at the end when the sources do not hold an answer.
        """
        llm = self.llm()
        if llm is None:
            yield await excerpt(question, sources, self._embedder()), sources
            return
        asked = question, sources, now.date(), llm.metadata.model_name  # all that a prompt is made of
        if (known := self._answers.get(asked)) is not None:
            yield known
            return
        text: str | None = None
        replies = ask_model(llm, question, sources, now=now, watched=watched)
        async with self._gate.place(), aclosing(replies) as versions:
            async for text in versions:
                yield text, sources
        said: _Said = (None, ()) if not text else await self._checked_answer(text, question, sources, now.date())
        self._answers.keep(asked, said)
        yield said

    async def _checked_answer(self, text: str, question: str, sources: tuple[Source, ...], today: date) -> _Said:
        """An answer that rests on its sources, and those that it rests on."""
        invented, used = await asyncio.to_thread(self._compared, text, question, sources, today)
        if invented:
            log.warning("%d figures of an answer stand in none of its sources; quoting these instead", len(invented))
            return await excerpt(question, sources[:1], self._embedder()), sources[:1]
        if self.catalog.settings.quotes_with_answers:
            text = await asyncio.to_thread(_completed, text, question, used[0])
        return text, used

    def _compared(
        self, text: str, question: str, sources: tuple[Source, ...], today: date
    ) -> tuple[set[str], tuple[Source, ...]]:
        keywords = self.catalog.keywords()
        indexed = keywords.passages(source.id for source in sources) if keywords else {}
        return unsupported(text, question, sources, today), resting(text, question, sources, indexed)

    def source_of(self, node: NodeWithScore) -> Source:
        """The record of an email from one of its nodes."""
        fields = self.catalog.reader.read(node.metadata, node.text, node.node_id)
        return Source(
            id=node.node_id,
            email=fields.key,
            subject=fields.subject,
            day=fields.day,
            sender=fields.sender,
            source_type=fields.kind,
            score=node.get_score(),
            passage=node.text,
        )


def _completed(text: str, question: str, source: Source) -> str:
    """The answer, with what it left out in the mail's own words."""
    quoted = quote(f"{question} {text}", source)
    return f"{text}\n{quoted}" if left_out(text, question, quoted) else text


def _worth_reading(found: tuple[Source, ...]) -> tuple[Source, ...]:
    """Without those that can't be what the question is about; none when even the best can't."""
    if not found or found[0].score < LOW:
        return ()
    return tuple(source for source in found if source.score >= WORTH * found[0].score)
