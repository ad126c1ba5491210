"""From a mail to the chunks that are stored: sentence-aware, with stable ids."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import pairwise

from brain_pipeline.index.metadata import (
    CHUNK_COUNT,
    CHUNK_INDEX,
    CONTENT_HASH,
    DATE,
    DOCUMENT_ID,
    FINGERPRINT,
    LIST_ID,
    MESSAGE_ID,
    PART,
    SENDER,
    SOURCE_TYPE,
    SUBJECT,
)
from brain_pipeline.index.store import Row
from brain_pipeline.mail.parts import parts
from brain_pipeline.records import Mail

CHUNK_TOKENS = 200  # with its heading, within the 256 that all-MiniLM-L6-v2 reads
OVERLAP_TOKENS = 40
HEADING_CHARACTERS = 160  # of the subject that is embedded with every chunk

_ABBREVIATIONS = r"(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\bNo\.)(?<!\bvs\.)(?<!\bMrs\.)(?<!\b[A-Z]\.)"
_SENTENCE_END = re.compile(rf"(?<=[.!?…])[\"'”’)\]]*{_ABBREVIATIONS}\s+(?![a-z])(?=[\w\"'“‘(¡¿$€£])|(?<=[。！？])|\n+")

_LINK = re.compile(r"\(?\bhttps?://[^\s()]+\)?")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A row to store and the text that its vector is made of."""

    row: Row
    embedded: str


def sentences(text: str) -> list[str]:
    """``text`` cut after sentences and lines; joined together the pieces are the text again."""
    cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts) if start < end]


def split_text(text: str, count: Callable[[str], int], budget: int, overlap: int) -> list[str]:
    """``text`` in passages of whole sentences.

    Each passage begins with the last sentences of the one before, so that a day and what happens on it, side by side
    in the text, share a passage.

    Args:
        text: what to split.
        count: the number of tokens of a piece.
        budget: tokens a passage may have.
        overlap: tokens of the passage before that are repeated at most.
    """
    passages: list[str] = []
    current: list[tuple[str, int]] = []
    fresh = False  # whether ``current`` holds more than the repeated end of the passage before
    for piece, size in _pieces(text, count, budget):
        if fresh and sum(n for _, n in current) + size > budget:
            passages.append("".join(kept for kept, _ in current).strip())
            current = _tail(current, min(overlap, budget - size))
        current.append((piece, size))
        fresh = True
    if fresh:
        passages.append("".join(kept for kept, _ in current).strip())
    return [passage for passage in passages if passage]


def _pieces(text: str, count: Callable[[str], int], budget: int) -> Iterator[tuple[str, int]]:
    for sentence in sentences(text):
        size = count(sentence)
        if size <= budget:
            yield sentence, size
            continue
        for word in re.findall(r"\S{1,60}\s*|\s+", sentence):
            yield word, count(word)


def _tail(pieces: list[tuple[str, int]], budget: int) -> list[tuple[str, int]]:
    kept: list[tuple[str, int]] = []
    for piece, size in reversed(pieces):
        budget -= size
        if budget < 0:
            break
        kept.insert(0, (piece, size))
    return kept


def mail_key(mail: Mail) -> str:
    """What identifies a mail: its Message-ID, else a hash of what it says."""
    return mail.message_id or content_hash(mail)


def content_hash(mail: Mail) -> str:
    """Changes with anything that is stored of the mail."""
    told = (
        *(mail.message_id, mail.subject, mail.date.isoformat() if mail.date else "", mail.sender, mail.kind),
        *(mail.text, mail.quoted, *((a.name, a.text) for a in mail.attachments)),
    )
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]


def fingerprint(mail: Mail) -> str:
    """The same for copies of one mail under different ids; empty for a mail without text, which proves nothing.

    The day counts: next week's reminder in the same words is another mail. Links don't: a newsletter's lead each
    reader to a page of its own.
    """
    words = " ".join(_LINK.sub("", mail.text).split())
    day = mail.date.date().isoformat() if mail.date else ""
    told = f"{mail.sender_address.casefold()}\x1f{mail.subject}\x1f{day}\x1f{words}"
    return hashlib.sha256(told.encode()).hexdigest()[:32] if words else ""


def chunk_id(key: str, index: int) -> str:
    """The row id of a mail's chunk: the same mail has the same ids for ever."""
    return f"{hashlib.sha256(key.encode()).hexdigest()[:32]}-{index}"


def chunk_mail(mail: Mail, *, zone: tzinfo, count: Callable[[str], int]) -> list[Chunk]:
    """The chunks of a mail, at least one.

    The subject and the day go into the embedded text and not into the stored one: "soccer" alone outranks the right
    mail for "the field trip" when only the body is embedded.

    Args:
        mail: what was read.
        zone: the household's, for a date without a zone.
        count: the number of tokens of a text under the embedding model.
    """
    key, sent = mail_key(mail), _in_zone(mail.date, zone)
    heading = f"{mail.subject[:HEADING_CHARACTERS]}\n{f'{sent:%A} {sent.day} {sent:%B %Y}' if sent else ''}".strip()
    budget = CHUNK_TOKENS - min(count(heading), CHUNK_TOKENS // 2)
    passages = [
        (part, passage) for part, text in parts(mail) for passage in split_text(text, count, budget, OVERLAP_TOKENS)
    ] or [("text", "")]
    about = {
        MESSAGE_ID: mail.message_id,
        SUBJECT: mail.subject,
        DATE: sent.isoformat() if sent else "",
        SENDER: mail.sender,
        SOURCE_TYPE: mail.kind,
        DOCUMENT_ID: key,
        CONTENT_HASH: content_hash(mail),
        FINGERPRINT: fingerprint(mail),
        CHUNK_COUNT: len(passages),
    } | ({LIST_ID: mail.list_id} if mail.list_id else {})
    return [
        Chunk(
            Row(chunk_id(key, index), passage, {**about, CHUNK_INDEX: index, PART: part}),
            f"{heading}\n\n{passage}".strip() or "(empty)",
        )
        for index, (part, passage) in enumerate(passages)
    ]


def _in_zone(sent: datetime | None, zone: tzinfo) -> datetime | None:
    return sent.replace(tzinfo=zone) if sent is not None and sent.tzinfo is None else sent
