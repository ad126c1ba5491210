"""One message: bytes in, a :class:`Mail` or a named :class:`Skip` out."""

from __future__ import annotations

import re
from collections.abc import Collection

from brain_pipeline.mail.attachments import html_from_bytes, is_binary
from brain_pipeline.mail.body import read_body
from brain_pipeline.mail.dates import parse_date
from brain_pipeline.mail.headers import Headers, addresses
from brain_pipeline.mail.kind import kind_of
from brain_pipeline.mail.leaf import Content
from brain_pipeline.mail.mime import Part, parse
from brain_pipeline.mail.text import clean, html_title, looks_like_html, one_line, split_quoted, strip_boilerplate
from brain_pipeline.records import Kind, Mail, Skip

_ID = re.compile(r"<[^<>]+>")
_FORWARD = re.compile(r"^\s*(?:fwd?|wg|tr|rv|enc|i|doorst|vb|vs)\s*:", re.IGNORECASE)
_OUTLOOK_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MAX_SENDER = 65_536
_MAX_RECIPIENTS = 1_048_576


def read_message(
    raw: bytes, *, newsletter_senders: Collection[str] = (), email_senders: Collection[str] = ()
) -> Mail | Skip:
    """The message in ``raw``, an ``.eml`` file's bytes or a bare HTML newsletter's.

    Any bytes give a ``Mail`` or a ``Skip``; equal bytes give equal results. The two collections hold addresses or
    domains whose mail is a newsletter or an email whatever it looks like.
    """
    if not raw.strip(b" \t\r\n\0"):
        return Skip("the message is empty")
    if raw.startswith(_OUTLOOK_FILE):
        return Skip("an Outlook .msg file; save it as .eml to have it read")
    root = parse(raw)
    if not root.headers and is_binary(raw):
        return Skip("not a mail message")
    content = read_body(root)
    if not (root.headers or content.text or content.attachments):
        return Skip("there is nothing to read in the message")
    sender_name, sender_address = _sender(root.headers, root.charset)
    kind = kind_of(
        root.headers,
        sender_address,
        content.text,
        is_html=content.is_html,
        newsletter_senders=newsletter_senders,
        email_senders=email_senders,
    )
    subject = _subject(root)
    text, quoted = _divided(content, subject, kind)
    headers = root.headers
    return Mail(
        message_id=_message_id(headers),
        subject=subject,
        date=parse_date(headers.text("date")),
        sender_name=sender_name,
        sender_address=sender_address,
        kind=kind,
        text=text,
        quoted=quoted,
        recipients=_recipients(headers, root.charset),
        in_reply_to=next(iter(_ids(headers, "in-reply-to")), ""),
        references=tuple(_ids(headers, "references")),
        list_id=_list_id(headers),
        attachments=tuple(content.attachments),
        calendars=tuple(content.calendars),
        notes=tuple(dict.fromkeys(content.notes)),
    )


def _divided(content: Content, subject: str, kind: Kind) -> tuple[str, str]:
    """New text and history: a newsletter has no history but boilerplate, a forward is news as a whole."""
    text, quoted = content.text, ""
    if kind == "newsletter":
        stripped = strip_boilerplate(text)
        text = stripped if any(character.isalnum() for character in stripped) else text
    elif not _FORWARD.match(subject):
        text, quoted = split_quoted(text)
    return clean(text), clean("\n\n".join(part for part in (quoted, content.returned) if part))


def _subject(root: Part) -> str:
    if root.headers:
        return one_line(root.headers.text("subject", root.charset))
    html = html_from_bytes(root.content(), None)
    return html_title(html) if looks_like_html(html) else ""


def _sender(headers: Headers, charset: str | None) -> tuple[str, str]:
    """Name and address of the first sender with an address, else the first name."""
    for name in ("from", "sender", "reply-to"):
        found = addresses(headers.text(name, charset)[:_MAX_SENDER])
        if found:
            display, address = next((pair for pair in found if pair[1]), found[0])
            return one_line(display), one_line(address)
    return "", ""


def _recipients(headers: Headers, charset: str | None) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for name in ("to", "cc"):
        for _, address in addresses(headers.text(name, charset)[:_MAX_RECIPIENTS]):
            if address:
                found[one_line(address)] = None
    return tuple(found)


def _message_id(headers: Headers) -> str:
    text = one_line(headers.text("message-id"))
    found = _ID.search(text)
    return "".join(found[0].split()) if found else text


def _ids(headers: Headers, name: str) -> list[str]:
    return [one_line("".join(found.split())) for found in _ID.findall(headers.text(name))]


def _list_id(headers: Headers) -> str:
    text = one_line(headers.text("list-id"))
    found = _ID.search(text)
    return found[0][1:-1] if found else text
