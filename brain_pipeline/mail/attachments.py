"""What can be read of an attachment."""

from __future__ import annotations

import logging
import mimetypes
import re
import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import PurePosixPath

from brain_pipeline.mail.calendars import calendar_text
from brain_pipeline.mail.charset import decode
from brain_pipeline.mail.text import clean, html_to_text, one_line, strip_enriched, visible
from brain_pipeline.records import Attachment

_META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w:.-]+)", re.IGNORECASE)
_META_WITHIN = 4_096
_KINDS = {
    **dict.fromkeys(("text/calendar", "application/ics", ".ics", ".ical"), "calendar"),
    **dict.fromkeys(("text/html", "application/xhtml+xml", ".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys(("text/enriched", "text/richtext"), "enriched"),
    **dict.fromkeys(("application/pdf", "application/x-pdf", ".pdf"), "pdf"),
    **dict.fromkeys(("message/delivery-status", "message/disposition-notification", "message/feedback-report"), "text"),
    **dict.fromkeys(("message/rfc822-headers", ".txt", ".text", ".md", ".csv", ".tsv", ".log", ".vcf"), "text"),
}
_UNREADABLE_TEXT = frozenset({"text/css", "text/javascript", "text/rtf", "text/x-amp-html"})
_MAX_PDF_BYTES = 64 * 2**20
_MAX_PDF_PAGES = 300
# What pypdf is known to raise on damaged files beside its own errors.
_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, OSError, zlib.error)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of one attachment; ``calendar`` is iCalendar text, ``note`` why something could not be read."""

    attachment: Attachment
    calendar: str = ""
    note: str = ""


def html_from_bytes(content: bytes, charset: str | None) -> str:
    """HTML source decoded by its declared charset, else by the one that it names itself."""
    if charset is None and (named := _META_CHARSET.search(content[:_META_WITHIN])):
        charset = named[1].decode("ascii")
    return decode(content, charset)


def read_attachment(name: str, media_type: str, content: bytes, charset: str | None = None) -> Reading:
    """The text of a PDF, plain text, HTML or iCalendar attachment; of others the name alone.

    What the file is follows from its type, and from its name when the type says nothing. Never raises.
    """
    kind = _kind(name, media_type)
    shown = one_line(name) or _default_name(media_type)
    if kind == "calendar":
        calendar = visible(decode(content, charset))
        return Reading(Attachment(shown, media_type, clean(calendar_text(calendar))), calendar=calendar)
    if kind == "html":
        return Reading(Attachment(shown, media_type, html_to_text(html_from_bytes(content, charset))))
    if kind == "enriched":
        return Reading(Attachment(shown, media_type, clean(strip_enriched(decode(content, charset)))))
    if kind == "text" and not is_binary(content):
        return Reading(Attachment(shown, media_type, clean(decode(content, charset))))
    if kind == "pdf":
        text, note = _pdf_text(content)
        return Reading(Attachment(shown, media_type, text), note=f"attachment {shown}: {note}" if note else "")
    return Reading(Attachment(shown, media_type))


def is_binary(content: bytes, *, share: float = 0.1) -> bool:
    """Whether ``content`` is no text in any charset: more than ``share`` of its beginning is control characters."""
    sample = content[:4096]
    controls = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in sample)  # noqa: PLR2004  (ASCII)
    halves = sorted((sample[::2].count(0), sample[1::2].count(0)))
    wide = halves[1] > 0.3 * len(sample) and halves[0] < 0.1 * len(sample)  # UTF-16 in a Western language
    return controls > share * len(sample) and not wide


def _kind(name: str, media_type: str) -> str:
    if media_type in _UNREADABLE_TEXT:
        return "other"
    suffix = PurePosixPath(name.lower()).suffix
    known = _KINDS.get(media_type) or _KINDS.get(suffix)
    return known or ("text" if media_type.startswith("text/") else "other")


def _default_name(media_type: str) -> str:
    names = {
        "message/delivery-status": "delivery status",
        "message/disposition-notification": "read receipt",
        "text/calendar": "invitation.ics",
        "text/rfc822-headers": "original headers",
        "message/rfc822-headers": "original headers",
    }
    return names.get(media_type) or f"unnamed{mimetypes.guess_extension(media_type) or ''}"


def _pdf_text(content: bytes) -> tuple[str, str]:
    """The text of a PDF and, when there is none, why."""
    try:
        import pypdf  # noqa: PLC0415  (an extra, and slow to import)
    except ImportError:
        return "", "PDF can't be read; install family-brain[pdf]"
    if len(content) > _MAX_PDF_BYTES:
        return "", "the PDF is too large"
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its warnings quote the document
    try:
        reader = pypdf.PdfReader(BytesIO(content))
        pages = [reader.pages[number].extract_text() for number in range(min(len(reader.pages), _MAX_PDF_PAGES))]
    except (pypdf.errors.PyPdfError, *_DAMAGED) as error:
        return "", f"the PDF can't be read ({type(error).__name__})"
    text = clean("\n\n".join(pages))
    return text, "" if text else "the PDF holds no text, perhaps only scanned pages"
