"""What is known of the family's members, in a file beside the collection: rules, and whom each email concerns.

The file also keeps the patterns of every email, so that a rule that comes or goes is applied to all emails at once,
without reading or embedding any of them again.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from brain_pipeline.family.members import Assignment, Pattern, Rules, assign, together
from brain_pipeline.index.sqlite import Database, batches, marks

_SCHEMA = (
    "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE rules (pattern TEXT, member TEXT, times INTEGER NOT NULL, PRIMARY KEY (pattern, member))",
    "CREATE TABLE patterns (email TEXT, pattern TEXT, PRIMARY KEY (email, pattern)) WITHOUT ROWID",
    "CREATE INDEX patterns_by_pattern ON patterns (pattern)",
    """CREATE TABLE assigned (
        email TEXT, member TEXT, probability REAL NOT NULL, why TEXT NOT NULL, PRIMARY KEY (email, member)
    ) WITHOUT ROWID""",
    "CREATE INDEX assigned_by_member ON assigned (member)",
)


class Membership:
    """One file. It may be used from several threads; every method raises ``StoreError`` when it can't be used.

    Args:
        path: the file; it is made when there is none.
        own: the rules that the members' own names are.

    Raises:
        Outdated: the file is damaged.
    """

    def __init__(self, path: Path, own: Rules) -> None:
        self._database = Database(path, "members' file", _create)
        self._own = own
        self._learning = threading.RLock()
        self._learned = self._read_rules()

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def _read_rules(self) -> dict[Pattern, dict[str, int]]:
        rules: dict[Pattern, dict[str, int]] = {}
        for pattern, member, times in self._database.read("SELECT pattern, member, times FROM rules"):
            rules.setdefault(Pattern.written(pattern), {})[member] = times
        return rules

    @property
    def learned(self) -> Rules:
        """The rules that were learned: how often mail of a pattern was said to be whose."""
        return {pattern: dict(times) for pattern, times in self._learned.items()}

    @property
    def rules(self) -> Rules:
        """The rules that were learned, and the members' own names."""
        return together(self._own, self._learned)

    def noted(self, key: str) -> str:
        """What ``note`` kept under ``key``, empty when nothing was."""
        found = self._database.read("SELECT value FROM about WHERE key = ?", [key])
        return found[0][0] if found else ""

    def note(self, key: str, value: str) -> None:
        """Keeps a fact."""
        with self._database.transaction() as writer:
            writer.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, value))

    def learn(self, pattern: Pattern, member: str, times: int = 1) -> None:
        """Notes that mail of a pattern was so many more times said to be a member's, and applies that to all mail."""
        with self._changing() as writer:
            writer.execute(
                "INSERT INTO rules VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET times = times + ?3",
                (str(pattern), member, times),
            )
            kept = self._learned.setdefault(pattern, {})
            kept[member] = kept.get(member, 0) + times
            self._apply(writer, self._emails_with(writer, pattern))

    def forget(self, pattern: Pattern, member: str | None = None) -> int:
        """Forgets what was learned of a pattern, of one member or of all; how many rules that were."""
        with self._changing() as writer:
            kept = self._learned.get(pattern, {})
            gone = [name for name in kept if member in (None, name)]
            for name in gone:
                writer.execute("DELETE FROM rules WHERE pattern = ? AND member = ?", (str(pattern), name))
                del kept[name]
            if not kept:
                self._learned.pop(pattern, None)
            self._apply(writer, self._emails_with(writer, pattern))
            return len(gone)

    def keep(self, emails: Mapping[str, Collection[Pattern]]) -> None:
        """Keeps the patterns of emails, in place of those they had, and assigns them; none means that one has gone."""
        with self._changing() as writer:
            for batch in batches(emails):
                writer.execute(f"DELETE FROM patterns WHERE email IN ({marks(batch)})", batch)  # noqa: S608
            rows = ((email, str(pattern)) for email, found in emails.items() for pattern in found)
            writer.executemany("INSERT INTO patterns VALUES (?, ?)", rows)
            self._apply(writer, emails)

    def add(self, pattern: Pattern, emails: Collection[str]) -> None:
        """Notes that these emails have a pattern that nobody looked for when they were kept."""
        with self._changing() as writer:
            writer.executemany(
                "INSERT OR IGNORE INTO patterns VALUES (?, ?)", ((each, str(pattern)) for each in emails)
            )
            self._apply(writer, emails)

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._learning:
            try:
                with self._database.transaction() as writer:
                    yield writer
            except BaseException:
                self._learned = self._read_rules()
                raise

    @staticmethod
    def _emails_with(writer: sqlite3.Connection, pattern: Pattern) -> list[str]:
        return [email for (email,) in writer.execute("SELECT email FROM patterns WHERE pattern = ?", [str(pattern)])]

    def _apply(self, writer: sqlite3.Connection, emails: Iterable[str]) -> None:
        rules = self.rules
        for batch in batches(emails):
            among = f"email IN ({marks(batch)})"
            found: dict[str, list[Pattern]] = {email: [] for email in batch}
            for email, pattern in writer.execute(f"SELECT email, pattern FROM patterns WHERE {among}", batch):  # noqa: S608
                found[email].append(Pattern.written(pattern))
            writer.execute(f"DELETE FROM assigned WHERE {among}", batch)  # noqa: S608
            rows = [
                (email, each.member, each.probability, each.why)
                for email, patterns in found.items()
                for each in assign(patterns, rules)
            ]
            writer.executemany("INSERT INTO assigned VALUES (?, ?, ?, ?)", rows)

    def assigned(self, emails: Iterable[str]) -> dict[str, tuple[Assignment, ...]]:
        """Whom each of the given emails concerns, most probably first; nobody is left out."""
        found: dict[str, tuple[Assignment, ...]] = {}
        for batch in batches(emails):
            rows = self._database.read(
                f"SELECT email, member, probability, why FROM assigned WHERE email IN ({marks(batch)})"  # noqa: S608
                " ORDER BY probability DESC, member",
                batch,
            )
            for email, *of in rows:
                found[email] = (*found.get(email, ()), Assignment(*of))
        return found

    def emails_of(self, member: str) -> frozenset[str]:
        """The emails that concern a member."""
        rows = self._database.read("SELECT email FROM assigned WHERE member = ?", [member])
        return frozenset(email for (email,) in rows)

    def counts(self) -> dict[str, int]:
        """How many emails concern each member that any concerns."""
        return dict(self._database.read("SELECT member, count(*) FROM assigned GROUP BY member"))


def _create(writer: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        writer.execute(statement)


def fingerprint(own: Rules) -> str:
    """Changes with the members' names: emails are looked through for them again then."""
    return json.dumps(sorted((str(pattern), sorted(times)) for pattern, times in own.items()))
