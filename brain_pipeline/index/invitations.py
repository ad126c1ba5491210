"""The iCalendar texts that mails carried, beside the collection: only they can't be made again from its rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from brain_pipeline.index.sqlite import Database, batches, marks
from brain_pipeline.records import Mail

_SCHEMA = "CREATE TABLE invitations (id TEXT PRIMARY KEY, sent TEXT NOT NULL, texts TEXT NOT NULL) WITHOUT ROWID"


@dataclass(frozen=True, slots=True)
class Invitation:
    """What one mail told of calendars. ``id`` is the row of its first chunk, ``sent`` None when it has no date."""

    id: str
    sent: datetime | None
    texts: tuple[str, ...]


def invitation(id_: str, mail: Mail, zone: tzinfo) -> Invitation | None:
    """What a mail tells of calendars; ``zone`` is that of a date without one."""
    if not mail.calendars:
        return None
    sent = mail.date and (mail.date if mail.date.tzinfo else mail.date.replace(tzinfo=zone))
    return Invitation(id_, sent, mail.calendars)


class Invitations:
    """One file of them. Every method raises ``StoreError`` when it can't be used.

    Args:
        path: the file; it is made when there is none.

    Raises:
        Outdated: the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path, "calendar", _create)

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def keep(self, mails: Mapping[str, Invitation | None]) -> None:
        """Keeps what mails told, in place of what they told before; None where a mail tells nothing any more."""
        known = {each.id: each for batch in batches(mails) for each in self._some(batch)}
        changed = {id_: told for id_, told in mails.items() if told != known.get(id_)}
        if not changed:
            return
        with self._database.transaction() as writer:
            for batch in batches(changed):
                writer.execute(f"DELETE FROM invitations WHERE id IN ({marks(batch)})", batch)  # noqa: S608
            writer.executemany("INSERT INTO invitations VALUES (?, ?, ?)", map(_row, filter(None, changed.values())))

    def remove(self, ids: Iterable[str]) -> None:
        """Forgets what the mails with these first chunks told."""
        self.keep(dict.fromkeys(ids))

    def all(self) -> list[Invitation]:
        """Everything that is kept."""
        return list(map(_invitation, self._database.read("SELECT id, sent, texts FROM invitations ORDER BY id")))

    def _some(self, ids: list[str]) -> list[Invitation]:
        statement = f"SELECT id, sent, texts FROM invitations WHERE id IN ({marks(ids)})"  # noqa: S608
        return list(map(_invitation, self._database.read(statement, ids)))


def _create(writer: sqlite3.Connection) -> None:
    writer.execute(_SCHEMA)


def _row(told: Invitation) -> tuple[str, str, str]:
    sent = told.sent.astimezone(UTC).isoformat() if told.sent else ""
    return told.id, sent, json.dumps(told.texts)


def _invitation(row: tuple[str, str, str]) -> Invitation:
    id_, sent, texts = row
    return Invitation(id_, datetime.fromisoformat(sent) if sent else None, tuple(json.loads(texts)))
