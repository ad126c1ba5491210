"""The keyword index: SQLite FTS5 over subject, sender, date words and chunk text, kept in step with the collection.

Text is folded, split and stemmed by ``brain_pipeline.index.terms``, so that the index, the question and the score agree
on what a term is. SQLite keeps those terms, in order; the mail itself is not stored a second time.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Self

from brain_pipeline.index.sqlite import Database, Outdated, batches, marks
from brain_pipeline.index.terms import facts, terms

FORMAT = "6"  # of the tables and of the terms: an index of another format is made anew
_POSTINGS, _POSTINGS_SHARE = 2_000, 0.02  # chunks one search ranks: this many or this share, whichever is more
_REMEMBERED = 20_000  # terms whose chunks were counted
_SHORTEST_MISSPELT = 4
_ALIKE = 0.6  # shared letter triples (Dice) from which a term may be a misspelling of another
_HEAD_WEIGHT = 2.0  # of a term in subject, sender or date against one in the text, in BM25

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE passages (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, email TEXT NOT NULL, kind TEXT NOT NULL,
        fingerprint TEXT NOT NULL, head TEXT NOT NULL, body TEXT NOT NULL
    )""",
    "CREATE INDEX passages_by_email ON passages (email)",
    "CREATE INDEX passages_by_kind ON passages (kind)",
    "CREATE INDEX passages_by_fingerprint ON passages (fingerprint) WHERE fingerprint != ''",
    """CREATE VIRTUAL TABLE words USING fts5(
        head, body, content='passages', content_rowid='number',
        tokenize="unicode61 remove_diacritics 0 tokenchars '.:/_'"
    )""",
    # FTS5 would count a term's chunks by walking them, which takes long for a common one.
    "CREATE TABLE vocabulary (term TEXT PRIMARY KEY, chunks INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE changed (email TEXT PRIMARY KEY) WITHOUT ROWID",
    """CREATE TRIGGER passage_added AFTER INSERT ON passages BEGIN
        INSERT INTO words (rowid, head, body) VALUES (new.number, new.head, new.body);
        INSERT OR IGNORE INTO changed VALUES (new.email);
    END""",
    """CREATE TRIGGER passage_removed AFTER DELETE ON passages BEGIN
        INSERT INTO words (words, rowid, head, body) VALUES ('delete', old.number, old.head, old.body);
        INSERT OR IGNORE INTO changed VALUES (old.email);
    END""",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk as it is indexed.

    ``id`` is the row's id in the collection, ``email`` the key of its email, ``dates`` the email's day in the words a
    person may ask with (``date_words``), ``kind`` what ``source`` selects by, ``fingerprint`` what copies of one mail
    under different ids share, empty when nobody took it.
    """

    id: str
    email: str
    subject: str
    sender: str
    dates: str
    text: str
    kind: str = "email"
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """An indexed chunk: the terms of its email's subject, sender and date, of its text, and its kinds of fact.

    ``terms`` holds them between spaces: looking a few up in a string is faster than making a set of all.
    """

    id: str
    email: str
    kind: str
    terms: str

    def holds(self, term: str) -> bool:
        """Whether the term stands in the chunk or its headers."""
        return as_held(term) in self.terms


def as_held(term: str) -> str:
    """A term as it stands in ``Passage.terms``, to look it up in many."""
    return f" {term} "


@dataclass(frozen=True, slots=True)
class _Counts:
    """What was counted in one state of the file."""

    state: int
    rows: dict[tuple[str, ...], int] = field(default_factory=dict)
    chunks: dict[str, int] = field(default_factory=dict)


class KeywordIndex:
    """One index file. It may be used from several threads: readers see the last commit while one writer works.

    Every method raises ``StoreError`` when the file can't be used. A damaged file, or one of another format, is not
    repaired: it raises ``Outdated``, and is to be deleted and rebuilt from the collection.
    """

    def __init__(self, path: Path) -> None:
        """Opens the index at ``path``, making it when there is none (with its folder).

        Raises:
            Outdated: the file is damaged or of another format.
            StoreError: the file can't be read or written.
        """
        self._database = Database(path, "keyword index", _create)
        if self.noted("format") != FORMAT:
            self.close()
            raise Outdated(f"The keyword index {path} has another format; delete it to have it made anew.")
        self._last_counts = _Counts(-1)

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, entries: Iterable[Entry]) -> None:
        """Adds entries, in place of those with the same ids."""
        with self._database.transaction() as writer:
            _insert(writer, entries)

    def remove(self, ids: Iterable[str]) -> None:
        """Removes those of the given ids that are indexed."""
        with self._database.transaction() as writer:
            for batch in batches(ids):
                _delete(writer, batch)

    def rebuild(self, entries: Iterable[Entry], stamp: str = "") -> None:
        """Replaces everything by ``entries``, in one transaction: readers go on with the old index until it is done.

        Args:
            entries: the collection's chunks.
            stamp: what the index was built from; see ``stamp``.
        """
        with self._database.transaction() as writer:
            for table in ("vocabulary", "words", "passages", "changed"):
                writer.execute(f"DROP TABLE IF EXISTS {table}")
            _create(writer)
            _insert(writer, entries)
            writer.execute("INSERT INTO words (words) VALUES ('optimize')")
            writer.execute("INSERT OR REPLACE INTO about VALUES ('stamp', ?)", (stamp,))

    def note(self, key: str, value: str) -> None:
        """Keeps a fact beside the index, through rebuilds."""
        with self._database.transaction() as writer:
            writer.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, value))

    @property
    def stamp(self) -> str:
        """What the index was built from, in the caller's words, empty at first: when it differs, rebuild."""
        return self.noted("stamp")

    def count(self, kind: str | None = None) -> int:
        """The number of indexed chunks, or of those of one kind."""
        if kind is None:
            return self._counted("SELECT count(*) FROM passages")
        return self._counted("SELECT count(*) FROM passages WHERE kind = ?", kind)

    def noted(self, key: str) -> str:
        """What ``note`` kept under ``key``, empty when nothing was."""
        found = self._read("SELECT value FROM about WHERE key = ?", [key])
        return found[0][0] if found else ""

    def emails(self) -> int:
        """The number of distinct emails that the chunks belong to; chunks of none don't count."""
        return self._counted("SELECT count(DISTINCT email) FROM passages WHERE email != ''")

    def _counted(self, *asked: str) -> int:
        known = self._counts.rows
        if asked not in known:
            statement, *values = asked
            known[asked] = int(self._read(statement, values)[0][0])
        return known[asked]

    @property
    def _counts(self) -> _Counts:
        """What is known of the file as it is now, whoever wrote it."""
        [(state,)] = self._read("PRAGMA data_version")
        if self._last_counts.state != state or len(self._last_counts.chunks) > _REMEMBERED:
            self._last_counts = _Counts(state)
        return self._last_counts

    def ids(self, *, email: str | None = None, kind: str | None = None) -> set[str]:
        """The ids of the indexed chunks: all, or those of one email, or of one kind."""
        wanted = {column: value for column, value in (("email", email), ("kind", kind)) if value is not None}
        where = " AND ".join(f"{column} = ?" for column in wanted) or "TRUE"
        found = self._read(f"SELECT id FROM passages WHERE {where}", list(wanted.values()))  # noqa: S608
        return {id_ for (id_,) in found}

    def copies(self, fingerprint: str) -> list[str]:
        """The ids of the chunks that carry this fingerprint; none for an empty one."""
        # The second condition says what the index covers: without it SQLite reads the whole table.
        found = self._read("SELECT id FROM passages WHERE fingerprint = ? AND fingerprint != ''", [fingerprint])
        return [id_ for (id_,) in found]

    def changed(self) -> list[str]:
        """The emails that came, went or changed since ``settle`` was told of them."""
        return [email for (email,) in self._read("SELECT email FROM changed WHERE email != ''")]

    def emails_held(self) -> list[str]:
        """Every email that a chunk belongs to, and those that went since ``settle`` was told of them."""
        return [
            email
            for (email,) in self._read("SELECT email FROM passages WHERE email != '' UNION SELECT email FROM changed")
        ]

    def settle(self, emails: Iterable[str]) -> None:
        """Notes that whoever follows the changes has seen these."""
        with self._database.transaction() as writer:
            writer.executemany("DELETE FROM changed WHERE email = ?", ((email,) for email in emails))

    def passages_of(self, emails: Iterable[str]) -> dict[str, str]:
        """The ids of the chunks of the given emails, each with its email."""
        found: dict[str, str] = {}
        for batch in batches(emails):
            found |= self._read(f"SELECT id, email FROM passages WHERE email IN ({marks(batch)})", batch)  # noqa: S608
        return found

    def emails_with(self, phrase: str) -> set[str]:
        """The emails in which the given terms stand side by side."""
        found = self._read(
            "SELECT DISTINCT email FROM (SELECT rowid AS found FROM words WHERE words MATCH ?) JOIN passages"
            " ON number = found",
            [f'"{phrase}"'],
        )
        return {email for (email,) in found}

    def frequencies(self, words: Iterable[str]) -> dict[str, int]:
        """In how many chunks each of the given terms stands; 0 for those unknown.

        A phrase of several terms counts as often as the rarest of them, which is the most that it can.
        """
        wanted = {word: word.split() for word in words}
        known = self._counts.chunks
        for batch in batches({term for parts in wanted.values() for term in parts if term not in known}):
            found = self._read(f"SELECT term, chunks FROM vocabulary WHERE term IN ({marks(batch)})", batch)  # noqa: S608
            known.update(dict.fromkeys(batch, 0) | dict(found))
        return {word: min((known[term] for term in parts), default=0) for word, parts in wanted.items()}

    def search(self, words: Sequence[str], limit: int, kind: str | None = None) -> dict[str, Passage]:
        """The chunks that hold any of the given terms, by id, best first by BM25, at most ``limit``.

        Of one ``kind`` where one is given.

        Only the rarest terms are searched for, as many as keep the number of chunks to rank small: a search takes much
        the same time in every collection, and common terms count in the score all the same.
        """
        frequencies = {word: n for word, n in self.frequencies(words).items() if n}
        rarest = sorted(frequencies, key=lambda word: frequencies[word])
        budget = max(_POSTINGS, _POSTINGS_SHARE * self.count())
        total = list(accumulate(frequencies[word] for word in rarest))
        chosen = [word for word, found in zip(rarest, total, strict=True) if found <= budget] or rarest[:1]
        if not chosen:
            return {}
        of_kind = "" if kind is None else "AND (SELECT kind FROM passages WHERE number = words.rowid) = ?"
        found = self._read(
            f"SELECT id, email, kind, head, body FROM (SELECT rowid AS found FROM words WHERE words MATCH ? {of_kind}"  # noqa: S608
            " ORDER BY bm25(words, ?, 1.0), rowid LIMIT ?) JOIN passages ON number = found",
            [" OR ".join(f'"{word}"' for word in chosen), *([kind] if kind else []), _HEAD_WEIGHT, limit],
        )
        return _by_id(found)

    def spellings(self, word: str) -> list[str]:
        """The indexed terms that an unknown one may have been meant for, such as ``librari`` for ``libari``."""
        if len(word) < _SHORTEST_MISSPELT or not word.isalpha():
            return []
        known = self._read(
            "SELECT term FROM vocabulary WHERE term >= ? AND term < ? AND abs(length(term) - ?) < ?",
            [word[0], chr(ord(word[0]) + 1), len(word), _SHORTEST_MISSPELT],
        )
        triples = _triples(word)
        return [term for (term,) in known if _dice(triples, term) >= _ALIKE]

    def passages(self, ids: Iterable[str], kind: str | None = None) -> dict[str, Passage]:
        """The indexed terms of the given chunks, by id: of those that are indexed, and of ``kind`` if one is given."""
        statement = "SELECT id, email, kind, head, body FROM passages WHERE id IN ({})"
        statement += "" if kind is None else " AND +kind = ?"  # with +, or SQLite reads all rows of the kind
        of_kind = [] if kind is None else [kind]
        found = (self._read(statement.format(marks(batch)), [*batch, *of_kind]) for batch in batches(ids))
        return _by_id(chain.from_iterable(found))

    def _read(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._database.read(statement, values)


def _by_id(rows: Iterable[tuple[str, str, str, str, str]]) -> dict[str, Passage]:
    return {id_: Passage(id_, email, kind, f" {head} {body} ") for id_, email, kind, head, body in rows}


def _create(writer: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        writer.execute(statement)
    writer.execute("INSERT OR REPLACE INTO about VALUES ('format', ?)", (FORMAT,))


def _insert(writer: sqlite3.Connection, entries: Iterable[Entry]) -> None:
    for batch in batches(entries):
        _delete(writer, [entry.id for entry in batch])
        rows = list({entry.id: _columns(entry) for entry in batch}.values())
        writer.executemany(
            "INSERT INTO passages (id, email, kind, fingerprint, head, body) VALUES (?, ?, ?, ?, ?, ?)", rows
        )
        _count(writer, [(head, body) for *_, head, body in rows], 1)


def _delete(writer: sqlite3.Connection, ids: Sequence[str]) -> None:
    where = f"WHERE id IN ({marks(ids)})"
    gone = writer.execute(f"SELECT head, body FROM passages {where}", ids).fetchall()  # noqa: S608
    if gone:
        writer.execute(f"DELETE FROM passages {where}", ids)  # noqa: S608
        _count(writer, gone, -1)


def _count(writer: sqlite3.Connection, texts: Iterable[tuple[str, str]], change: int) -> None:
    """Notes that so many more chunks hold each term, or fewer."""
    held = Counter(chain.from_iterable({*head.split(), *body.split()} for head, body in texts))
    writer.executemany(
        "INSERT INTO vocabulary VALUES (?1, ?2) ON CONFLICT DO UPDATE SET chunks = chunks + ?2",
        ((term, change * chunks) for term, chunks in held.items()),
    )
    if change < 0:
        writer.executemany("DELETE FROM vocabulary WHERE term = ? AND chunks <= 0", ((term,) for term in held))


def _columns(entry: Entry) -> tuple[str, ...]:
    head = " ".join(terms(f"{entry.subject}\n{entry.sender}\n{entry.dates}"))
    body = " ".join([*terms(entry.text), *facts(entry.text)])
    return entry.id, entry.email, entry.kind, entry.fingerprint, head, body


def _triples(word: str) -> set[str]:
    padded = f"^{word}$"
    return {padded[i : i + 3] for i in range(len(word))}


def _dice(triples: set[str], term: str) -> float:
    """The share of letter triples that two words have in common (Dice), with those that repeat in a word left out."""
    padded = f"^{term}$"
    shared = sum(triple in padded for triple in triples)
    return 2 * shared / (len(triples) + len(term))
