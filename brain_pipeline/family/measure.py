"""How well members are assigned: rules are learned from some labelled mails and tried on others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brain_pipeline.errors import InvalidRequest
from brain_pipeline.family.members import Pattern, Rules, assign, own_names, patterns, together

LABELLED = Path(__file__).parents[1] / "sample" / "members.jsonl"  # invented, of the sample family


@dataclass(frozen=True, slots=True)
class Labelled:
    """A mail's patterns, and the members that it concerns."""

    patterns: frozenset[Pattern]
    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class MemberSet:
    """Labelled mails: ``rules`` learned from some and the members' names, and the others, to try them on."""

    rules: Rules
    learned: int
    mails: tuple[Labelled, ...]


@dataclass(frozen=True, slots=True)
class MemberFigures:
    """Precision, recall and F1 of a member's assignments, each in [0, 1], and how many mails are theirs."""

    precision: float
    recall: float
    f1: float
    mails: int


@dataclass(frozen=True, slots=True)
class MemberEvaluation:
    """The figures of every member; ``macro_f1`` is the mean of their F1. Nobody assigned counts as wrong."""

    macro_f1: float
    by_member: Mapping[str, MemberFigures]
    rules: int
    mails: int

    def as_json(self) -> dict[str, Any]:
        """One object."""
        return {
            "macro_f1": self.macro_f1,
            "rules": self.rules,
            "mails": self.mails,
            "by_member": {
                member: {"precision": each.precision, "recall": each.recall, "f1": each.f1, "mails": each.mails}
                for member, each in self.by_member.items()
            },
        }

    def __str__(self) -> str:
        rows = [f"{'member':<14} {'precision':>9} {'recall':>7} {'F1':>6} {'mails':>6}"]
        rows += [
            f"{member:<14} {each.precision:>9.3f} {each.recall:>7.3f} {each.f1:>6.3f} {each.mails:>6}"
            for member, each in self.by_member.items()
        ]
        return "\n".join([*rows, f"macro F1 {self.macro_f1:.3f} over {self.mails} mails, with {self.rules} rules"])


def read_members(path: Path = LABELLED) -> MemberSet:
    """A set of labelled mails.

    Its first line holds ``members`` (names with their nicknames) and ``rules`` (the patterns to learn), every other a
    mail: ``split`` (``learn`` or ``test``), ``sender``, ``list_id``, ``subject``, ``text`` and ``members``.

    Raises:
        InvalidRequest: the file can't be read as such a set.
    """
    try:
        about, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        own = own_names(about["members"])
        names = [pattern.value for pattern in own]
        mails = [(row["split"], _labelled(row, names)) for row in rows]
        to_learn = [Pattern.parse(rule) for rule in about["rules"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(
            f"{path} is no set of labelled mails ({type(error).__name__}); brain_pipeline/sample/members.jsonl is one."
        ) from error
    learned = together(*_learned(to_learn, [mail for split, mail in mails if split == "learn"]))
    return MemberSet(together(own, learned), len(learned), tuple(mail for split, mail in mails if split == "test"))


def _labelled(row: Mapping[str, Any], names: Sequence[str]) -> Labelled:
    about = {field: row.get(field, "") for field in ("sender", "list_id", "subject", "text")}
    return Labelled(patterns(**about, names=names), frozenset(row["members"]))


def _learned(rules: Iterable[Pattern], mails: Sequence[Labelled]) -> Iterable[Rules]:
    for pattern in rules:
        for mail in mails:
            if pattern in mail.patterns:
                yield from ({pattern: {member: 1}} for member in mail.members)


def measure_members(given: MemberSet) -> MemberEvaluation:
    """Assigns every mail of a set and compares with its labels."""
    found = [
        (frozenset(each.member for each in assign(mail.patterns, given.rules)), mail.members) for mail in given.mails
    ]
    members = sorted({member for _, right in found for member in right})
    figures = {member: _figures(member, found) for member in members}
    mean = sum(each.f1 for each in figures.values()) / len(figures) if figures else 0.0
    return MemberEvaluation(mean, figures, given.learned, len(found))


def _figures(member: str, found: Sequence[tuple[frozenset[str], frozenset[str]]]) -> MemberFigures:
    hits = sum(member in assigned and member in right for assigned, right in found)
    assigned, theirs = (sum(member in each[side] for each in found) for side in (0, 1))
    precision, recall = hits / assigned if assigned else 0.0, hits / theirs if theirs else 0.0
    return MemberFigures(precision, recall, 2 * hits / (assigned + theirs) if hits else 0.0, theirs)
