"""What a stored row says of its email: the only owner of metadata keys, ours and other programs'.

Our own rows use the first name of each field below. Rows of other programs are read through the aliases; names are
compared without regard to case, underscores, hyphens and spaces, so that ``Message-ID`` and ``message_id`` are one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from email.utils import parsedate
from functools import lru_cache
from typing import Literal

from dateutil import parser as dateparser

from brain_pipeline.mail.headers import decode_words
from brain_pipeline.mail.text.cleaning import one_line
from brain_pipeline.records import Kind

SUBJECT, DATE, SENDER, SOURCE_TYPE, MESSAGE_ID = "subject", "date", "sender", "source_type", "message_id"
DOCUMENT_ID, CHUNK_INDEX, CHUNK_COUNT = "document_id", "chunk_index", "chunk_count"
CONTENT_HASH, FINGERPRINT, PART, LIST_ID = "content_hash", "fingerprint", "part", "list_id"

ALIASES: Mapping[str, tuple[str, ...]] = {
    SUBJECT: (SUBJECT, "title", "email_subject", "mail_subject", "subject_line"),
    DATE: (
        *(DATE, "sent", "sent_at", "sent_date", "date_sent", "received", "received_at", "received_time"),
        *("received_date", "date_received", "datetime", "timestamp", "date_timestamp", "email_date"),
    ),
    SENDER: (SENDER, "from", "from_email", "from_address", "sender_email", "from_name", "sender_name", "author"),
    SOURCE_TYPE: (SOURCE_TYPE, "type", "kind", "email_type", "source", "category"),
    MESSAGE_ID: (MESSAGE_ID, "email_id", "mail_id", "msg_id", "gmail_id", "parent_uid", "uid"),
}

DateOrder = Literal["day", "month"]

_NUMERIC_DATE = re.compile(r"\s*(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})\b")
_ISO_DATE = re.compile(r"((?:19|20)\d\d)(-?)(\d{2})\2(\d{2})(?!\d)")
_EARLIEST = 1e8  # seconds, the year 1973: smaller numbers are years, days or counts
_MILLISECONDS_FROM = 1e11  # in seconds this would be the year 5138
_YEARS = range(1970, 2100)
_REMEMBERED = 256  # rows
_DEFAULTS = datetime(2000, 1, 1), datetime(2001, 2, 2)  # noqa: DTZ001  (only their calendar fields are used)


@lru_cache(maxsize=1_000)
def _plain(key: str) -> str:
    return re.sub(r"[\s_-]", "", key).casefold()


@dataclass(frozen=True, slots=True)
class EmailFields:
    """What is known of the email a row belongs to.

    ``key`` identifies the email among all rows; it is empty when the row names neither subject, date nor sender, and
    such a row can't be attributed. ``sent`` keeps the stored date as it stands.
    """

    key: str
    subject: str
    day: date | None
    sender: str
    kind: Kind
    sent: str


@dataclass(frozen=True)
class MetadataReader:
    """Reads rows that any program wrote.

    Attributes:
        zone: where a date without a zone, or in epoch seconds, is read.
        order: whether ``03/04/2025`` is the third of April (``day``) or the fourth of March (``month``).
        more: aliases of the household's own, by field.
    """

    zone: tzinfo
    order: DateOrder = "month"
    more: Mapping[str, Iterable[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = {
            name: [_plain(alias) for alias in (*self.more.get(name, ()), *aliases)] for name, aliases in ALIASES.items()
        }
        object.__setattr__(self, "_names", names)
        # The postprocessors of one question read the same few rows again and again.
        object.__setattr__(self, "_read_again", lru_cache(maxsize=_REMEMBERED)(self._read))

    _names: Mapping[str, list[str]] = field(init=False, repr=False, compare=False)
    _read_again: Callable[..., EmailFields] = field(init=False, repr=False, compare=False)

    def read(self, metadata: Mapping[str, object] | None, text: str, row_id: str = "") -> EmailFields:
        """The fields of the email that a row belongs to.

        Args:
            metadata: the row's metadata as stored, None when it has none.
            text: the row's text, which tells two otherwise nameless emails apart.
            row_id: the row's id; an "email id" equal to it names the row, not the email.
        """
        try:
            return self._read_again(tuple((metadata or {}).items()), text, row_id)
        except TypeError:  # a value that can't be hashed, such as a list
            return self._read((metadata or {}).items(), text, row_id)

    def _read(self, metadata: Iterable[tuple[str, object]], text: str, row_id: str) -> EmailFields:
        values = _values(dict(metadata))

        def all_of(name: str) -> list[object]:
            return [values[alias] for alias in self._names[name] if alias in values]

        def text_of(name: str) -> str:
            return one_line(decode_words(str(next(iter(all_of(name)), ""))))

        subject, sender, sent = text_of(SUBJECT), text_of(SENDER), text_of(DATE)
        day = next((found for value in all_of(DATE) if (found := parse_day(value, self.zone, self.order))), None)
        kind: Kind = "newsletter" if "newsletter" in text_of(SOURCE_TYPE).casefold() else "email"
        message_id = text_of(MESSAGE_ID)
        if not (subject or sender or day):
            key = ""
        elif message_id and message_id != row_id:
            key = message_id
        elif subject or sent:
            key = f"{subject}\x1f{sent}\x1f{sender}"
        else:
            key = hashlib.sha256(f"{sender}\x1f{text}".encode()).hexdigest()
        return EmailFields(key, subject, day, sender, kind, sent)

    def dates(self, metadata: Mapping[str, object] | None) -> list[object]:
        """Everything in a row's metadata that may be its date."""
        values = _values(metadata)
        return [values[alias] for alias in self._names[DATE] if alias in values]


def _values(metadata: Mapping[str, object] | None) -> dict[str, object]:
    return {_plain(key): value for key, value in (metadata or {}).items() if value not in (None, "")}


def parse_day(value: object, zone: tzinfo, order: DateOrder = "month") -> date | None:
    """The calendar day on the sender's own clock, or None when the value names none.

    Args:
        value: epoch seconds or milliseconds (number or digits), or a date in RFC 2822, ISO 8601 or another usual form.
        zone: where epoch values are read.
        order: which of ``03/04/2025`` is the day.
    """
    text = str(value).strip()
    try:
        if iso := _ISO_DATE.match(text):
            found: date | None = date(int(iso[1]), int(iso[3]), int(iso[4]))
        else:
            found = _parse_epoch(float(text), zone)
    except ValueError:
        found = _parse_written(text, order)
    return found if found and found.year in _YEARS else None


def _parse_epoch(epoch: float, zone: tzinfo) -> date | None:
    seconds = epoch / 1000 if abs(epoch) >= _MILLISECONDS_FROM else epoch
    try:
        return datetime.fromtimestamp(seconds, UTC).astimezone(zone).date() if seconds >= _EARLIEST else None
    except (OverflowError, OSError, ValueError):
        return None


def _parse_written(text: str, order: DateOrder) -> date | None:
    try:
        if not (numeric := _NUMERIC_DATE.match(text)) and (parts := parsedate(text)):
            return date(*parts[:3])
        day_first = numeric is not None and (order == "day" or numeric[2] == ".")
        readings = {dateparser.parse(text, dayfirst=day_first, default=default).date() for default in _DEFAULTS}
    except (ValueError, OverflowError, TypeError):
        return None
    return readings.pop() if len(readings) == 1 else None  # a part that follows the default was not in the text


def date_order(values: Iterable[object]) -> DateOrder:
    """Which way round a collection writes numeric dates, by those that leave no doubt; month first without evidence."""
    balance = 0
    for value in values:
        if (numeric := _NUMERIC_DATE.match(str(value))) and numeric[2] != ".":
            first, second = int(numeric[1]), int(numeric[3])
            balance += (first > 12 >= second) - (second > 12 >= first)  # noqa: PLR2004  (there are twelve months)
    return "day" if balance > 0 else "month"
