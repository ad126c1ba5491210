"""What flows between the steps: frozen records without behaviour beyond their own wording."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Literal

from brain_pipeline import cells

Kind = Literal["email", "newsletter"]
Confidence = Literal["high", "medium", "low"]

CALENDAR = "calendar"  # the ``source_type`` of an event
NOT_FOUND = "I don't see that in the emails I've processed."
UNAVAILABLE = "Brain service temporarily unavailable"


@dataclass(frozen=True, slots=True)
class Attachment:
    """One attachment of a mail. ``text`` is what could be read of it, empty when nothing could."""

    name: str
    media_type: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Mail:
    """One message as a person would read it.

    Strings are decoded text without lone surrogates, NULs or invisible characters; ``subject`` is one line. ``date`` is
    the sender's own clock: aware when the message names a zone, naive when it does not, None when it has no usable
    date. ``text`` is what the sender wrote this time, ``quoted`` the history below it. ``message_id`` keeps its angle
    brackets and is empty when the message has none. ``calendars`` holds iCalendar text. ``notes`` says what of the
    message could not be read, and why.
    """

    message_id: str
    subject: str
    date: datetime | None
    sender_name: str
    sender_address: str
    kind: Kind
    text: str
    quoted: str = ""
    recipients: tuple[str, ...] = ()
    in_reply_to: str = ""
    references: tuple[str, ...] = ()
    list_id: str = ""
    attachments: tuple[Attachment, ...] = ()
    calendars: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sender(self) -> str:
        """``Name <address>``, or whichever of the two is known."""
        if self.sender_name and self.sender_address:
            return f"{self.sender_name} <{self.sender_address}>"
        return self.sender_name or self.sender_address


@dataclass(frozen=True, slots=True)
class Skip:
    """A message or file that could not be read as mail, why, and where it stood; counted, never silently dropped."""

    reason: str
    origin: str = ""


@dataclass(frozen=True, slots=True)
class RawMessage:
    """The bytes of one message and where they stood (``family.mbox#17``), for reports."""

    origin: str
    content: bytes


@dataclass
class Report:
    """What an ingestion did so far, message by message; ``skipped`` holds where a message stood and why it is left out.

    The one record that grows: progress is shown from it while the ingestion goes on.
    """

    new: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many messages were seen."""
        return self.new + self.updated + self.unchanged + len(self.skipped)


def attribution(subject: str, day: date | None) -> str:
    """The line that says where an answer was found: ``Found in: {subject}, {YYYY-MM-DD}``."""
    return f"Found in: {subject or '(no subject)'}, {day.isoformat() if day else 'unknown date'}"


@dataclass(frozen=True, slots=True)
class Source:
    """One email that an answer was made from, with its best passage; or one event of the calendar.

    ``score`` is in [0, 1]; ``id`` is the stored row of the passage; ``email`` identifies the message among all rows.
    ``changed`` is the day on which the calendar was told of an event, None when nobody knows, and of emails.
    ``members`` are those of the family whom the email concerns.
    """

    id: str
    email: str
    subject: str
    day: date | None
    sender: str
    source_type: str
    score: float
    passage: str
    changed: date | None = None
    members: tuple[str, ...] = ()

    @property
    def attribution(self) -> str:
        """The ``Found in:`` line."""
        return attribution(self.subject, self.day)

    def _repr_html_(self) -> str:
        return cells.source(self)


@dataclass(frozen=True, slots=True)
class Event:
    """Something in a calendar, once: of what repeats, one occurrence.

    ``start`` and ``end`` are in the household's zone; of whole days, ``end`` is the midnight after the last.
    ``changed`` is when this was last told; None when nobody knows. ``id`` is the same for ever.
    """

    id: str
    title: str
    start: datetime
    end: datetime
    all_day: bool
    place: str = ""
    notes: str = ""
    changed: datetime | None = None

    @property
    def day(self) -> date:
        """The day on which it begins."""
        return self.start.date()

    @property
    def last_day(self) -> date:
        """The day on which it ends."""
        return max(self.day, (self.end - timedelta(microseconds=1)).date())


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and what it was made from. ``sources`` is empty exactly when the brain abstains."""

    text: str
    sources: tuple[Source, ...]
    confidence: Confidence
    query_time_ms: int

    def __str__(self) -> str:
        return "\n".join([self.text, *(source.attribution for source in self.sources)])

    def _repr_html_(self) -> str:
        return cells.answer(self)


@dataclass(frozen=True, slots=True)
class Found:
    """What an answer is going to be made from, known before its first word."""

    sources: tuple[Source, ...]
    confidence: Confidence


@dataclass(frozen=True, slots=True)
class Piece:
    """The next words of an answer that is being written."""

    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """One stored row as a person reads it: its text and what is known of its email. ``id`` is the row's."""

    id: str
    subject: str
    day: date | None
    sender: str
    source_type: str
    text: str
    members: tuple[str, ...] = ()

    @property
    def attribution(self) -> str:
        """The ``Found in:`` line."""
        return attribution(self.subject, self.day)


@dataclass(frozen=True, slots=True)
class Stats:
    """What the brain holds. ``total_documents`` counts emails, ``total_chunks`` stored rows."""

    total_documents: int
    total_chunks: int
    collection: str
    db_path: str
    last_ingest: datetime | None

    def _repr_html_(self) -> str:
        return cells.stats(self)
