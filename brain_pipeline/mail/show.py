"""What the reader sees of a message, for programs and for a person."""

from __future__ import annotations

import json

from brain_pipeline.mail.parts import whole_text
from brain_pipeline.records import Mail, Skip

RULE = "-" * 72


def as_json_line(origin: str, mail: Mail | Skip) -> str:
    """One JSON object of file, message_id, subject, date, from, kind, text, attachments (names) and skipped.

    What is not known is null; ``skipped`` is the reason, and null for a message that was read.
    """
    told: dict[str, object]
    if isinstance(mail, Skip):
        told = dict.fromkeys(("message_id", "subject", "date", "from", "kind", "text"))
        told |= {"attachments": [], "skipped": mail.reason}
    else:
        told = {
            "message_id": mail.message_id or None,
            "subject": mail.subject,
            "date": mail.date.isoformat() if mail.date else None,
            "from": mail.sender_address or None,
            "kind": mail.kind,
            "text": whole_text(mail),
            "attachments": [attachment.name for attachment in mail.attachments],
            "skipped": None,
        }
    return json.dumps({"file": origin, **told}, ensure_ascii=False)


def as_text(origin: str, mail: Mail | Skip) -> str:
    """Headers, a blank line and the text."""
    if isinstance(mail, Skip):
        return f"{RULE}\n{origin}\nskipped: {mail.reason}\n"
    day = mail.date.isoformat(" ", "minutes") if mail.date else "unknown date"
    heading = f"{origin}\n{mail.kind}: {mail.subject or '(no subject)'}\n{day}, from {mail.sender or 'unknown'}"
    return f"{RULE}\n{heading}\n\n{whole_text(mail)}\n"
