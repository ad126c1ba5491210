"""Forwards, quoting replies and second copies, which say what another mail says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from llama_index.core.schema import NodeWithScore

from brain_pipeline.index.metadata import PART, MetadataReader

LOOKED_AT = 8  # of the best candidates, for copies of one text
COPIED, COPIED_IN_THREAD = 0.85, 0.5  # of the words of the shorter text, to be a copy

_ANSWERED = re.compile(r"^(?:\s*(?:re|fwd?|aw|wg|rv|tr|sv|vs)\s*(?:\[\d+\])?:)+\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Statement:
    """What a node says, to tell whether another says the same."""

    node: NodeWithScore
    subject: str
    words: frozenset[str]
    figures: frozenset[str]

    @classmethod
    def of(cls, node: NodeWithScore, reader: MetadataReader) -> _Statement:
        words = frozenset(node.text.split())
        subject = _ANSWERED.sub("", reader.read(node.metadata, node.text, node.node_id).subject).casefold()
        return cls(node, subject, words, frozenset(word for word in words if any(map(str.isdigit, word))))

    @property
    def quoted(self) -> bool:
        """Whether it is the history below somebody's reply."""
        return is_quoted(self.node)

    def repeats(self, other: _Statement) -> bool:
        """Whether it is a copy: of most words, and of most figures, since this year's notice has last year's words."""
        needed = COPIED_IN_THREAD if self.subject == other.subject else COPIED
        return _shared(self.words, other.words) >= needed and _shared(self.figures, other.figures) >= COPIED_IN_THREAD


def is_quoted(node: NodeWithScore) -> bool:
    """Whether a node is the history below somebody's reply."""
    return bool(node.metadata.get(PART) == "quoted")


def _shared(some: frozenset[str], others: frozenset[str]) -> float:
    fewer = min(len(some), len(others))
    return len(some & others) / fewer if fewer else float(len(some) == len(others))


def says_the_same(node: NodeWithScore, other: NodeWithScore, reader: MetadataReader) -> bool:
    """Whether one of two nodes is a copy of the other."""
    return _Statement.of(node, reader).repeats(_Statement.of(other, reader))


def without_copies(nodes: list[NodeWithScore], reader: MetadataReader) -> list[NodeWithScore]:
    """``nodes``, best first, without those that say what a better one says: forwards, quoting replies, second copies.

    Of a reply's quote and what it quotes, the latter is kept. Only the first ``LOOKED_AT`` are compared: the others do
    not reach an answer.
    """
    kept: list[_Statement] = []
    for node in nodes[:LOOKED_AT]:
        said = _Statement.of(node, reader)
        place = next((i for i, other in enumerate(kept) if said.repeats(other)), None)
        if place is None:
            kept.append(said)
        elif kept[place].quoted and not said.quoted:
            kept[place] = said
    return [*(statement.node for statement in kept), *nodes[LOOKED_AT:]]
