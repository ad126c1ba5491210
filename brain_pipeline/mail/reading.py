"""Messages read as the household's settings have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from brain_pipeline.mail.mailboxes import iter_messages
from brain_pipeline.mail.message import read_message
from brain_pipeline.records import Mail, RawMessage, Skip
from brain_pipeline.settings import Settings


def read(message: RawMessage | Skip, settings: Settings) -> Mail | Skip:
    """The mail in a message, its date aware: one without a zone is in the household's."""
    if isinstance(message, Skip):
        return message
    mail = read_message(
        message.content, newsletter_senders=settings.newsletter_senders, email_senders=settings.email_senders
    )
    if isinstance(mail, Mail) and mail.date is not None and mail.date.tzinfo is None:
        return replace(mail, date=mail.date.replace(tzinfo=settings.zone))
    return mail


def read_all(paths: Iterable[Path], settings: Settings) -> Iterator[tuple[str, Mail | Skip]]:
    """Every message of ``paths``, with where it stands.

    Raises:
        MailError: a path does not exist or is no mail.
    """
    for message in iter_messages(paths):
        yield message.origin, read(message, settings)
