"""What the endpoints answer, made from the pipeline's records."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from brain_pipeline.ask.answer import confidence_of
from brain_pipeline.ask.matches import matching_words
from brain_pipeline.errors import BrainUnavailable
from brain_pipeline.family.when import Window
from brain_pipeline.records import UNAVAILABLE, Answer, Event, Found, Passage, Report, Source, Stats

_SOURCE: JsonDict = {
    "attribution": "Found in: Field Trip Permission Slip, 2025-09-15",
    "subject": "Field Trip Permission Slip",
    "date": "2025-09-15",
    "score": 0.92,
    "source_type": "email",
}


class SourceBody(BaseModel):
    """One email, or one event of the calendar, that the answer was made from."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SOURCE]})

    attribution: str = Field(description="`Found in: {subject}, {date}`")
    subject: str
    date: dt.date | None = Field(
        description="the sender's own calendar day, null when it is unknown; of an event, the day on which it begins"
    )
    score: float = Field(ge=0, le=1, description="relevance")
    source_type: str = Field(description="`email`, `newsletter`, `calendar`, or what another program wrote")

    @classmethod
    def of(cls, source: Source) -> Self:
        """The body of a source record."""
        return cls(
            attribution=source.attribution,
            subject=source.subject,
            date=source.day,
            score=round(source.score, 4),
            source_type=source.source_type,
        )


class FoundSourceBody(SourceBody):
    """One email that the answer is going to be made from."""

    id: str = Field(description="of its passage, for `/brain/source/{id}`")
    members: list[str] = Field(description="of the family, whom it concerns")

    @classmethod
    def of(cls, source: Source) -> Self:
        """The body of a source record."""
        return cls(id=source.id, members=list(source.members), **dict(SourceBody.of(source)))


class FoundEvent(BaseModel):
    """What an answer is going to be made from."""

    sources: list[FoundSourceBody]
    confidence: Literal["high", "medium", "low"]

    @classmethod
    def of(cls, found: Found) -> Self:
        """The event of a record."""
        return cls(sources=[FoundSourceBody.of(source) for source in found.sources], confidence=found.confidence)


class PieceEvent(BaseModel):
    """The next words of an answer."""

    text: str


class PassageBody(BaseModel):
    """One passage of the mail, as text, and what is known of its email."""

    id: str
    attribution: str = Field(description="`Found in: {subject}, {date}`")
    subject: str
    date: dt.date | None
    sender: str
    source_type: str
    passage: str
    members: list[str] = Field(description="of the family, whom the email concerns")
    matches: list[str] = Field(description="the passage's words that the question has too, as they stand there")

    @classmethod
    def of(cls, passage: Passage, question: str) -> Self:
        """The body of a passage record, with the words of a question found in it."""
        return cls(
            id=passage.id,
            attribution=passage.attribution,
            subject=passage.subject,
            date=passage.day,
            sender=passage.sender,
            source_type=passage.source_type,
            passage=passage.text,
            members=list(passage.members),
            matches=matching_words(question, passage.text),
        )


class AnswerBody(BaseModel):
    """An answer and what it was made from."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "answer": "Sullivan needs a signed permission slip and $5 for the zoo trip on Friday.",
                    "sources": [_SOURCE],
                    "confidence": "high",
                    "query_time_ms": 1450,
                }
            ]
        }
    )

    answer: str
    sources: list[SourceBody] = Field(description="best first, one entry per email; empty when nothing was found")
    confidence: Literal["high", "medium", "low"]
    query_time_ms: int = Field(ge=0)

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """The body of an answer record."""
        return cls(
            answer=answer.text,
            sources=[SourceBody.of(source) for source in answer.sources],
            confidence=answer.confidence,
            query_time_ms=answer.query_time_ms,
        )


class UnavailableBody(AnswerBody):
    """The answer's shape when a model or the database can't be used now."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "answer": UNAVAILABLE,
                    "detail": UNAVAILABLE,
                    "sources": [],
                    "confidence": "low",
                    "query_time_ms": 3004,
                }
            ]
        }
    )

    detail: str

    @classmethod
    def because(cls, error: BrainUnavailable, took: int) -> Self:
        """The body for an error that came ``took`` milliseconds after the question."""
        return cls(
            answer=UNAVAILABLE,
            detail=UNAVAILABLE,
            sources=[SourceBody.of(source) for source in error.sources],
            confidence=confidence_of(error.sources[0].score) if error.sources else "low",
            query_time_ms=took,
        )


class DetailBody(BaseModel):
    """What was wrong with a request, and what to send instead."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"detail": "top_k is 0; send how many sources you want, 1 or more."}]}
    )

    detail: str


class StatsBody(BaseModel):
    """What the brain holds."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "total_documents": 1204,
                    "total_chunks": 3160,
                    "collection": "family_knowledge",
                    "db_path": "/srv/brain/chroma",
                    "last_ingest": "2025-09-15T18:30:00-05:00",
                }
            ]
        }
    )

    total_documents: int = Field(description="emails, not chunks")
    total_chunks: int
    collection: str
    db_path: str
    last_ingest: dt.datetime | None

    @classmethod
    def of(cls, stats: Stats) -> Self:
        """The body of a stats record."""
        return cls(
            total_documents=stats.total_documents,
            total_chunks=stats.total_chunks,
            collection=stats.collection,
            db_path=stats.db_path,
            last_ingest=stats.last_ingest,
        )


class EventBody(BaseModel):
    """Something in the family's calendar; times are the household's."""

    id: str
    title: str
    start: dt.datetime
    end: dt.datetime = Field(description="of whole days, the midnight after the last")
    all_day: bool
    place: str
    notes: str

    @classmethod
    def of(cls, event: Event) -> Self:
        """The body of an event record."""
        return cls(
            id=event.id,
            title=event.title,
            start=event.start,
            end=event.end,
            all_day=event.all_day,
            place=event.place,
            notes=event.notes,
        )


class EventsBody(BaseModel):
    """The days that a phrase means, and what is on."""

    window: tuple[dt.date, dt.date] | None = Field(description="the first and the last day; null when it names none")
    events: list[EventBody] = Field(description="soonest first; without a window, those that it asks the time of")

    @classmethod
    def of(cls, window: Window | None, events: Sequence[Event]) -> Self:
        """The body of days and their events."""
        days = None if window is None else (window.first, window.last)
        return cls(window=days, events=[EventBody.of(event) for event in events])


class SkippedBody(BaseModel):
    """A message that could not be read."""

    origin: str = Field(description="the file it stood in, and its place there")
    reason: str


class ForgottenBody(BaseModel):
    """What was deleted."""

    chunks: int = Field(ge=0, description="stored passages that were deleted; 0 when there was no such email")


class IngestBody(BaseModel):
    """What became of uploaded mail, message by message."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "new": 2,
                    "updated": 0,
                    "unchanged": 1,
                    "skipped": [{"origin": "note.eml", "reason": "the message is empty"}],
                }
            ]
        }
    )

    new: int
    updated: int
    unchanged: int = Field(description="known already, or a copy of a known one")
    skipped: list[SkippedBody]

    @classmethod
    def of(cls, report: Report) -> Self:
        """The body of a report."""
        skipped = [SkippedBody(origin=origin, reason=reason) for origin, reason in report.skipped]
        return cls(new=report.new, updated=report.updated, unchanged=report.unchanged, skipped=skipped)
