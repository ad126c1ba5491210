"""One part without parts of its own: text to read, or a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from brain_pipeline.mail import tnef
from brain_pipeline.mail.attachments import html_from_bytes, is_binary, read_attachment
from brain_pipeline.mail.charset import decode
from brain_pipeline.mail.mime import Part
from brain_pipeline.mail.text import clean, html_to_text, looks_like_html, one_line, strip_enriched, unflow
from brain_pipeline.mail.transfer import extract_uuencoded, is_base64
from brain_pipeline.records import Attachment

_MOSTLY_CONTROLS = 0.3
_UNSEEN = frozenset({
    "application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature",
    "application/applefile",
})  # fmt: skip
_ENCRYPTED = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime", "application/pgp-encrypted"})
_READ_INLINE = frozenset({"text/plain", "text/html", "text/enriched", "text/richtext", "application/xhtml+xml"})
_FILES = frozenset({
    "text/calendar", "text/rfc822-headers", "text/css", "text/javascript", "text/rtf", "text/x-amp-html",
    "text/x-vcard", "text/vcard", "text/directory",
})  # fmt: skip
_PGP_ARMOUR = "-----BEGIN PGP MESSAGE-----"


@dataclass(slots=True)
class Content:
    """What was read of a part and all below it. ``returned`` is a message that a delivery report gives back."""

    text: str = ""
    is_html: bool = False
    returned: str = ""
    attachments: list[Attachment] = field(default_factory=list)
    calendars: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def gather(self, others: Iterable[Content]) -> None:
        """Take over all but the text of ``others``."""
        for other in others:
            self.attachments += other.attachments
            self.calendars += other.calendars
            self.notes += other.notes


def read_leaf(part: Part) -> Content:
    """What ``part`` holds for its reader."""
    media_type, name = part.media_type, part.filename
    if media_type in _UNSEEN:
        return Content()
    if media_type == "application/ms-tnef" or name.lower() == "winmail.dat":
        return _unwrapped(part)
    if media_type in _ENCRYPTED or media_type.startswith("message/external"):
        return _out_of_reach(part)
    if media_type == "message/partial":
        body = part.content()
        content = Content() if is_base64(body) else read_plain_text(body, part)
        content.notes.append(f"only part {one_line(part.params.get('number', '?'))} of a split message")
        return content
    if _is_for_readers(part, name):
        return _text_leaf(part)
    return _attached(name, media_type, part.content(), part.charset)


def _out_of_reach(part: Part) -> Content:
    """A part whose text is encrypted or elsewhere."""
    name = one_line(part.filename)
    if part.media_type.startswith("message/external"):
        where = one_line(part.params.get("url") or name) or "an unnamed place"
        return Content(
            attachments=[Attachment(name or where, part.media_type)],
            notes=[f"an attachment is kept elsewhere: {where}"],
        )
    signed = part.params.get("smime-type", "").startswith("signed")
    note = "the text is inside an S/MIME signature" if signed else "the message is encrypted"
    return Content(attachments=[Attachment(name or "encrypted message", part.media_type)], notes=[note])


def _is_for_readers(part: Part, name: str) -> bool:
    """Whether a part is text to be shown rather than a file."""
    if part.disposition == "attachment":
        return False
    if part.media_type in _READ_INLINE:
        return True
    return part.media_type.startswith("text/") and part.media_type not in _FILES and not name


def _text_leaf(part: Part) -> Content:
    data = part.content()
    if part.media_type in {"text/html", "application/xhtml+xml"}:
        return Content(html_to_text(html_from_bytes(data, part.charset)), is_html=True)
    if part.media_type in {"text/enriched", "text/richtext"}:
        return Content(clean(strip_enriched(decode(data, part.charset))))
    return read_plain_text(data, part)


def read_plain_text(data: bytes, part: Part) -> Content:
    """``data`` as the plain text of ``part``.

    Files that are uuencoded in it are taken out, and HTML that is mislabelled is read as HTML.
    """
    content = Content()
    if is_binary(data, share=_MOSTLY_CONTROLS):
        if data.strip():
            content.notes.append("a part that is called text is not text")
        return content
    text = decode(data, part.charset)
    if looks_like_html(text):
        return Content(html_to_text(html_from_bytes(data, part.charset)), is_html=True)
    if "begin" in text:
        text, files = extract_uuencoded(text)
        content.gather(_attached(name, "application/octet-stream", file, None) for name, file in files)
    if part.params.get("format", "").lower() == "flowed":
        text = unflow(text, delsp=part.params.get("delsp", "").lower() == "yes")
    content.text = clean(text)
    if _PGP_ARMOUR in text:
        content.notes.append("the message is encrypted")
    return content


def _attached(name: str, media_type: str, data: bytes, charset: str | None) -> Content:
    reading = read_attachment(name, media_type, data, charset)
    return Content(
        attachments=[reading.attachment],
        calendars=[reading.calendar] if reading.calendar else [],
        notes=[reading.note] if reading.note else [],
    )


def _unwrapped(part: Part) -> Content:
    wrapper = tnef.unwrap(part.content())
    content = Content(wrapper.text, notes=[wrapper.note] if wrapper.note else [])
    if wrapper.note:
        content.attachments.append(Attachment(one_line(part.filename) or "winmail.dat", part.media_type))
    content.gather(_attached(name, "application/octet-stream", data, None) for name, data in wrapper.files)
    return content
