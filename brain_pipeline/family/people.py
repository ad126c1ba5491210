"""The members of a family, and the mail that concerns each of them, kept in step with the collection."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from brain_pipeline.errors import InvalidRequest
from brain_pipeline.family.members import Assignment, Pattern, Rules, assign, names_in, own_names, patterns
from brain_pipeline.family.membership import Membership, fingerprint
from brain_pipeline.index.catalog import Catalog
from brain_pipeline.index.keywords import KeywordIndex
from brain_pipeline.index.metadata import LIST_ID
from brain_pipeline.index.sqlite import Database, Outdated, batches
from brain_pipeline.mail.text.cleaning import one_line

CORRECTED = 3  # times that a correction counts, so that it outweighs an earlier guess
LONGEST_NAME = 100  # characters of a member's

_NAMES = "names"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the family: other names, what was learned, and how many emails concern them.

    ``rules`` holds a pattern, how often its mail was said to be theirs, and how often it was said to be anybody's.
    """

    name: str
    nicknames: tuple[str, ...]
    rules: tuple[tuple[str, int, int], ...]
    emails: int


class People:
    """What is known of the members. Nothing is made or read before there is something to know.

    It may be used from several threads. Every method may raise ``StoreError``.

    Args:
        catalog: the mail.
        members: the members that the settings name, with their other names.
    """

    def __init__(self, catalog: Catalog, members: Mapping[str, Sequence[str]]) -> None:
        self._catalog = catalog
        self._members = members
        self._own = own_names(members)
        self._opening = threading.RLock()
        self._membership: Membership | None = None

    def close(self) -> None:
        """Closes the file; used again, it is opened again."""
        with self._opening:
            if self._membership is not None:
                self._membership.close()
            self._membership = None

    @property
    def path(self) -> Path:
        """The file, which may not exist."""
        return self._catalog.file_beside("members")

    def learn(self, pattern: Pattern, member: str, times: int = 1) -> None:
        """Notes that mail of a pattern was said to be a member's, and applies that to all mail.

        Raises:
            InvalidRequest: the member has no name.
        """
        member = self.known(member) or _checked(member)
        known = self._in_step() or self._opened()
        if pattern.kind == "name" and (keywords := self._catalog.keywords()):
            known.add(pattern, keywords.emails_with(pattern.value))
        known.learn(pattern, member, times)

    def correct(self, email: str, member: str) -> None:
        """Notes that an email is a member's, and that mail of its sender and its list probably is, too.

        Raises:
            InvalidRequest: there is no such email.
        """
        rows = self._of_emails([email]).get(email)
        if not rows:
            raise InvalidRequest("There is no such email; it may have been brought in anew.")
        self.learn(Pattern("email", email), member, CORRECTED)
        for pattern in rows:
            if pattern.kind in {"sender", "list"}:
                self.learn(pattern, member)

    def forget(self, pattern: Pattern, member: str | None = None) -> int:
        """Forgets what was learned of a pattern, of one member or of all; how many rules that were."""
        known = self._in_step()
        return known.forget(pattern, member and (self.known(member) or member)) if known else 0

    def lookup(
        self, *, sender: str = "", list_id: str = "", subject: str = "", text: str = ""
    ) -> tuple[Assignment, ...]:
        """Whom a mail like this concerns, most probably first; nobody where that would be a guess."""
        rules = self._rules()
        names = [pattern.value for pattern in rules if pattern.kind == "name"]
        return assign(patterns(sender=sender, list_id=list_id, subject=subject, text=text, names=names), rules)

    def of(self, emails: Iterable[str]) -> dict[str, tuple[Assignment, ...]]:
        """Whom each of the given emails concerns; those that concern nobody are left out."""
        known = self._in_step()
        return known.assigned(emails) if known else {}

    def emails_of(self, member: str) -> frozenset[str]:
        """The emails that concern a member."""
        known = self._in_step()
        return known.emails_of(self.known(member) or member) if known else frozenset()

    def named_in(self, question: str) -> frozenset[str]:
        """The members whose names stand in a question."""
        rules = self._rules()
        named = names_in(question, [pattern.value for pattern in rules if pattern.kind == "name"])
        return frozenset(
            member for name in named for member, times in rules[Pattern("name", name)].items() if times > 0
        )

    def known(self, name: str) -> str | None:
        """The member of that name or nickname, whatever its case; None when there is none."""
        wanted = name.strip().casefold()
        members = {*self._members, *(member for times in self._rules().values() for member in times)}
        for member in sorted(members):
            if wanted in (member.casefold(), *(other.casefold() for other in self._members.get(member, ()))):
                return member
        return None

    def all(self) -> list[Member]:
        """The members that the settings name and those that were learned of."""
        known = self._in_step()
        learned = known.learned if known else {}
        counts = known.counts() if known else {}
        names = dict.fromkeys([*self._members, *sorted(member for times in learned.values() for member in times)])
        return [
            Member(name, tuple(self._members.get(name, ())), tuple(_rules_of(name, learned)), counts.get(name, 0))
            for name in names
        ]

    def _rules(self) -> Rules:
        known = self._in_step()
        return known.rules if known else self._own

    def _in_step(self) -> Membership | None:
        """The file, with all mail in it; None when there is none and nothing to make one for."""
        with self._opening:
            keywords = self._catalog.keywords()
            wanted = self._membership is not None or self.path.is_file() or (self._own and keywords is not None)
            if not wanted:
                return None
            known = self._opened()
            if keywords is not None:
                self._catch_up(known, keywords)
            return known

    def _opened(self) -> Membership:
        with self._opening:
            if self._membership is None:
                try:
                    self._membership = Membership(self.path, self._own)
                except Outdated:
                    Database.delete(self.path)
                    self._membership = Membership(self.path, self._own)
            return self._membership

    def _catch_up(self, known: Membership, keywords: KeywordIndex) -> None:
        names = f"{keywords.stamp} {fingerprint(self._own)}"
        emails = keywords.changed() if known.noted(_NAMES) == names else keywords.emails_held()
        for batch in batches(emails):
            found = self._of_emails(batch)
            known.keep({email: found.get(email, frozenset()) for email in batch})
            keywords.settle(batch)
        if known.noted(_NAMES) != names:
            known.note(_NAMES, names)

    def _of_emails(self, emails: Sequence[str]) -> dict[str, frozenset[Pattern]]:
        """The patterns of the given emails, from their rows."""
        keywords, reader = self._catalog.keywords(), self._catalog.reader
        ids = keywords.passages_of(emails) if keywords else {}
        names = [pattern.value for pattern in self._names()]
        found: dict[str, frozenset[Pattern]] = {}
        for row in self._catalog.store.get(list(ids)):
            fields = reader.read(row.metadata, row.text, row.id)
            of_row = patterns(
                sender=fields.sender,
                list_id=str(row.metadata.get(LIST_ID) or ""),
                subject=fields.subject,
                text=row.text,
                names=names,
                email=ids[row.id],
            )
            found[ids[row.id]] = found.get(ids[row.id], frozenset()) | of_row
        return found

    def _names(self) -> Iterator[Pattern]:
        rules = self._membership.rules if self._membership else self._own
        return (pattern for pattern in rules if pattern.kind == "name")


def _rules_of(member: str, learned: Rules) -> Iterator[tuple[str, int, int]]:
    for pattern, times in sorted(learned.items()):
        if member in times:
            yield str(pattern), times[member], sum(times.values())


def _checked(member: str) -> str:
    name = one_line(member)
    if not name or len(name) > LONGEST_NAME:
        raise InvalidRequest(f"A member needs a name of at most {LONGEST_NAME} characters.")
    return name
