"""Whom of the family a mail concerns, from what people said of mail like it. Pure functions.

A rule says how often mail of one pattern was said to be a member's. Every pattern of a mail that has rules is evidence
for or against each member, as the odds ``(n + 1) / (N - n + 1)`` of ``n`` times in ``N``: Laplace's rule of succession.
Odds of several patterns are multiplied, as if they were independent (naive Bayes), and a member is assigned from
``LEAST`` on; below, nobody is guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from brain_pipeline.errors import InvalidRequest
from brain_pipeline.index.terms import terms
from brain_pipeline.text import encodable

Kind = Literal["email", "sender", "list", "domain", "subject", "name"]

LEAST = 0.6  # probability from which a member is assigned
NAMED = 4  # times that a member's own name counts as a rule
FREE_MAIL = frozenset({
    *("gmail.com", "googlemail.com", "outlook.com", "hotmail.com", "live.com", "yahoo.com", "icloud.com", "me.com"),
    *("aol.com", "gmx.de", "gmx.net", "web.de", "t-online.de", "proton.me", "protonmail.com", "mail.com", "msn.com"),
})  # fmt: skip

_ADDRESS = re.compile(r"[^\s<>\"',;()]+@[^\s<>\"',;()]+")
_DOMAIN = re.compile(r"[^\s@<>]+\.[^\s@<>]+")
_WHERE = ("sender", "list", "domain")  # only the most exact of these is evidence


@dataclass(frozen=True, slots=True, order=True)
class Pattern:
    """What mails have in common, written ``kind:value``, as ``sender:coach@gulls.example`` or ``subject:robotics``.

    ``email`` is one mail alone, ``sender`` an address, ``domain`` what follows its ``@``, ``list`` a List-Id,
    ``subject`` a word of the subject, and ``name`` a name in the subject or the text.
    """

    kind: Kind
    value: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"

    @classmethod
    def written(cls, text: str) -> Pattern:
        """The pattern that was written by ``str``."""
        kind, _, value = text.partition(":")
        return cls(cast("Kind", kind), value)

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """The pattern that ``text`` writes.

        Raises:
            InvalidRequest: it writes none; the message says how patterns are written.
        """
        kind, _, value = encodable(text).strip().partition(":")
        kind, value = kind.strip().casefold(), value.strip()
        for known in get_args(Kind):
            if kind == known and (plain := _plain(known, value)):
                return cls(known, plain)
        raise InvalidRequest(
            f"{text[:100]!r} is no pattern. Write one as sender:coach@gulls.example, domain:gulls.example, "
            "list:gulls.example, subject:practice, name:Sully or email:<its Message-ID>."
        )


def _plain(kind: Kind, value: str) -> str:
    """The value as mails give it; empty when it can't be one."""
    match kind:
        case "email":
            return value
        case "sender":
            return value.casefold() if _ADDRESS.fullmatch(value) else ""
        case "domain":
            domain = value.casefold().removeprefix("@")
            return domain if _DOMAIN.fullmatch(domain) and domain not in FREE_MAIL else ""
        case "list":
            return list_name(value)
        case "subject":
            words = terms(value)
            return words[0] if len(words) == 1 else ""
        case "name":
            return " ".join(terms(value))


def list_name(list_id: str) -> str:
    """What identifies a mailing list in its List-Id, which may begin with words for people."""
    return list_id.rpartition("<")[2].partition(">")[0].strip().casefold()


def patterns(
    *,
    sender: str = "",
    list_id: str = "",
    subject: str = "",
    text: str = "",
    names: Iterable[str] = (),
    email: str = "",
) -> frozenset[Pattern]:
    """The patterns of a mail.

    Args:
        sender: with or without a display name.
        list_id: the List-Id header's value.
        subject: the subject.
        text: the whole text.
        names: what to look for in subject and text, as ``Pattern`` has them.
        email: what identifies the mail.
    """
    found = {Pattern("subject", word) for word in terms(subject)}
    if address := _ADDRESS.search(sender):
        found.add(Pattern("sender", address[0].casefold()))
        domain = address[0].rpartition("@")[2].casefold()
        found |= {Pattern("domain", domain)} if domain not in FREE_MAIL else set()
    if named := list_name(list_id):
        found.add(Pattern("list", named))
    if email:
        found.add(Pattern("email", email))
    return frozenset(found | {Pattern("name", name) for name in names_in(f"{subject}\n{text}", names)})


def names_in(text: str, names: Iterable[str]) -> set[str]:
    """Which of ``names``, as ``Pattern`` has them, stand in a text."""
    words = f" {' '.join(terms(text))} "
    return {name for name in names if f" {name} " in words}


@dataclass(frozen=True, slots=True)
class Assignment:
    """A mail is a member's, how probably, in [0, 1], and why."""

    member: str
    probability: float
    why: str


Rules = Mapping[Pattern, Mapping[str, int]]


def own_names(members: Mapping[str, Sequence[str]]) -> dict[Pattern, dict[str, int]]:
    """The rules that the members' names are, each with its nicknames."""
    rules: dict[Pattern, dict[str, int]] = {}
    for member, nicknames in members.items():
        for name in (member, *nicknames):
            if plain := _plain("name", name):
                rules.setdefault(Pattern("name", plain), {})[member] = NAMED
    return rules


def together(*all_rules: Rules) -> dict[Pattern, dict[str, int]]:
    """Rules of several origins as one: their times add up."""
    found: dict[Pattern, dict[str, int]] = {}
    for rules in all_rules:
        for pattern, times in rules.items():
            kept = found.setdefault(pattern, {})
            for member, count in times.items():
                kept[member] = kept.get(member, 0) + count
    return found


def assign(mail: Iterable[Pattern], rules: Rules) -> tuple[Assignment, ...]:
    """Whom a mail with these patterns concerns, most probably first; nobody where that would be a guess."""
    known = {pattern: rules[pattern] for pattern in sorted(mail) if rules.get(pattern)}
    said = {pattern: times for pattern, times in known.items() if pattern.kind == "email"}
    evidence = said or _without_vaguer(known)
    members = {member for times in evidence.values() for member in times}
    found = (_assignment(member, evidence) for member in sorted(members))
    return tuple(sorted((each for each in found if each.probability >= LEAST), key=lambda each: -each.probability))


def _without_vaguer(known: Rules) -> Rules:
    """Of sender, list and domain, the first that has rules: they are not independent."""
    most_exact = next((kind for kind in _WHERE if any(pattern.kind == kind for pattern in known)), None)
    return {
        pattern: times for pattern, times in known.items() if pattern.kind not in _WHERE or pattern.kind == most_exact
    }


def _assignment(member: str, evidence: Rules) -> Assignment:
    odds: dict[Pattern, float] = {}
    for pattern, times in evidence.items():
        n, of = times.get(member, 0), sum(times.values())
        if n or pattern.kind != "name":  # that another is named says nothing against this one
            odds[pattern] = math.log((n + 1) / (of - n + 1))
    best = max(odds, key=odds.__getitem__)
    n, of = evidence[best].get(member, 0), sum(evidence[best].values())
    return Assignment(member, 1 / (1 + math.exp(-sum(odds.values()))), _why(best, member, n, of))


def _why(pattern: Pattern, member: str, n: int, of: int) -> str:
    times = f"was {member}'s {n} of {of} times"
    match pattern.kind:
        case "email":
            return f"somebody said that it is {member}'s"
        case "sender":
            return f"sender {pattern.value} {times}"
        case "domain":
            return f"sender @{pattern.value} {times}"
        case "list":
            return f"the list {pattern.value} {times}"
        case "subject":
            return f"“{pattern.value}” in the subject {times}"
        case "name":
            return f"“{pattern.value}” is named, which {times}"
