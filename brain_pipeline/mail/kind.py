"""Newsletter or email."""

from __future__ import annotations

from collections.abc import Collection

from brain_pipeline.mail.headers import Headers
from brain_pipeline.mail.text import has_unsubscribe_line
from brain_pipeline.records import Kind

_BULK = frozenset({"bulk", "list", "junk"})


def kind_of(
    headers: Headers,
    sender: str,
    text: str,
    *,
    is_html: bool = False,
    newsletter_senders: Collection[str] = (),
    email_senders: Collection[str] = (),
) -> Kind:
    """What the message is: by its sender when the owner says so, else by how it was sent, else by its footer.

    ``newsletter_senders`` and ``email_senders`` hold addresses or domains, in any case. A reply was written by a
    person, and so was a message to a list on which members write to each other: an email. A bare HTML page is a
    newsletter that was saved.
    """
    names = {sender.lower(), sender.lower().rpartition("@")[2], "@" + sender.lower().rpartition("@")[2]}
    if not names.isdisjoint(one.strip().lower() for one in email_senders):
        return "email"
    if not names.isdisjoint(one.strip().lower() for one in newsletter_senders):
        return "newsletter"
    if _is_personal(headers):
        return "email"
    bulk = headers.text("precedence").strip().lower() in _BULK
    sent_to_many = bulk or headers.raw("list-id") or headers.raw("list-unsubscribe")
    saved_page = is_html and not headers
    return "newsletter" if sent_to_many or saved_page or has_unsubscribe_line(text) else "email"


def _is_personal(headers: Headers) -> bool:
    return (
        bool(headers.raw("in-reply-to") or headers.raw("references")) or b"mailto:" in headers.raw("list-post").lower()
    )
