"""A mail's readable text, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from brain_pipeline.records import Mail

Part = Literal["text", "attachment", "quoted"]


def parts(mail: Mail) -> Iterator[tuple[Part, str]]:
    """What the sender wrote, then each attachment by name, then the quoted history; empty ones are left out."""
    if mail.text:
        yield "text", mail.text
    for attachment in mail.attachments:
        if attachment.text:
            yield "attachment", f"In the attachment {attachment.name}:\n{attachment.text}"
    if unread := [attachment.name for attachment in mail.attachments if not attachment.text]:
        yield "attachment", f"Attached: {', '.join(unread)}"
    if mail.quoted:
        yield "quoted", mail.quoted


def whole_text(mail: Mail) -> str:
    """All parts with a blank line between them, in the order of the message: attachments come last."""
    in_order = sorted(parts(mail), key=lambda part: part[0] == "attachment")
    return "\n\n".join(text for _, text in in_order)
