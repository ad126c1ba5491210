"""What the endpoints answer, made from the pipeline's records."""

from __future__ import annotations

import datetime as dt
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from brain_pipeline.records import UNAVAILABLE, Answer, Report, Source, Stats

_SOURCE: JsonDict = {
    "attribution": "Found in: Field Trip Permission Slip, 2025-09-15",
    "subject": "Field Trip Permission Slip",
    "date": "2025-09-15",
    "score": 0.92,
    "source_type": "email",
}


class SourceBody(BaseModel):
    """One email that the answer was made from."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SOURCE]})

    attribution: str = Field(description="`Found in: {subject}, {date}`")
    subject: str
    date: dt.date | None = Field(description="the sender's own calendar day; null when it is unknown")
    score: float = Field(ge=0, le=1, description="relevance")
    source_type: str

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


class SkippedBody(BaseModel):
    """A message that could not be read."""

    origin: str = Field(description="the file it stood in, and its place there")
    reason: str


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
