"""A reply as plain text that claims nothing and leads nowhere the sources do not lead.

Mail is hostile, and a model may do what a mail says. Whatever it says, its answer shows no image, no markup, no
invisible character, no link that does not stand in a source, no line that claims a provenance (only metadata says where
an answer was found), and not the token that fences the sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import regex  # it knows Unicode's categories, and whether what came so far may be the beginning of a match

from brain_pipeline.records import Source

LINK_REMOVED = "‹link removed›"

_LINE_BREAK = regex.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")
# Controls, formatting (direction marks, zero-width, tag characters), private use, fillers and variation selectors.
_INVISIBLE = regex.compile(
    r"(?V1)[[\p{Cc}\p{Cf}\p{Co}\p{Cs}]--[\n\t]]|[\u115f\u1160\u3164\uffa0\ufe00-\ufe0e\U000e0100-\U000e01ef]"
)

# Letters that look the same to a reader.
_LOOK = {"f": "fƒｆ", "o": "oоοօ0ｏ", "u": "uυսｕ", "n": "nոпｎ", "d": "dԁｄ", "i": "iіι1lｉ", "s": "sѕｓ"}
_LOOK |= {"r": "rгｒ", "c": "cсϲｃ", "e": "eеｅ"}


def _like(word: str) -> str:
    return r"[\W_]{0,9}".join(f"[{_LOOK[letter]}]" for letter in word)


# Repetitions are bounded, here and below, so that no text takes long.
_CLAIM = rf"(?:^[\W_]{{0,40}})?{_like('found')}[\W_]{{0,9}}{_like('in')}|^[\W_]{{0,40}}{_like('source')}s?"
ATTRIBUTION = regex.compile(
    rf"(?:{_CLAIM})[[\W_]--[:：∶꞉]]{{0,9}}[:：∶꞉].*$", regex.IGNORECASE | regex.MULTILINE | regex.V1
)

_IMAGE_OR_LINK = regex.compile(r"!?\[([^\[\]\n]*)\](?:\([^()\n]*\)|\[[^\[\]\n]*\])")
_TAG = regex.compile(r"<[a-z/!?][^<>\n]*>", regex.IGNORECASE)
# What is left of markup that did not end, or was nested: a space makes it text.
_MARKUP = regex.compile(r"(?<=\])(?=[(\[:])|(?<=!)(?=\[)|(?<=<)(?=[a-z/!?])", regex.IGNORECASE)

_TAIL = r"[^\s，。；、！？（）「」]*"
_REST = rf"(?::\d+)?(?:[/?\#]{_TAIL})?"
_ACTING = "javascript|vbscript|data|file|blob"  # an address that does something, and is no place
_LABEL = r"[\p{L}\p{N}][\p{L}\p{N}-]{0,62}"
_LINK = regex.compile(
    rf"""
      [a-z][a-z0-9+.-]{{0,20}}:[/\\]{{2}}{_TAIL}
    | (?:mailto|tel|sms|{_ACTING}):(?=\S){_TAIL}
    | (?<![\w:/])//(?=\w){_TAIL}
    | (?:[\w.+-]{{1,64}}@)?(?:{_LABEL}[.。．｡]){{1,99}}(?:xn--[\w-]{{1,59}}|\p{{L}}{{2,63}}){_REST}
    | (?<![\w.])\d{{1,3}}(?:\.\d{{1,3}}){{3}}{_REST}
    """,
    regex.IGNORECASE | regex.VERBOSE,
)
_ACTS = regex.compile(rf"(?:{_ACTING}):", regex.IGNORECASE)
_SENTENCE_END = regex.compile(r"(?<=[\p{L}\p{N}]\.)(?=\p{Lu}\p{Ll})")
_BARE = regex.compile(r"[\p{L}\p{N}.-]+")
_LAST_WORD = regex.compile(r"\S+\Z")
_NO_WORD_YET = regex.compile(r"^[\W_]+\Z", regex.MULTILINE)  # it may belong to a claim of provenance
_SEPARATORS = regex.compile(r"[\W_]+")
_PUNCTUATION = ".,;:!?'\"*_~`()[]{}<>«»“”„’‘"


def visible(text: str) -> str:
    """``text`` as a reader sees it: without controls and invisible characters, each line break a line feed."""
    return _INVISIBLE.sub("", _LINE_BREAK.sub("\n", text))


def without_markup(text: str) -> str:
    """``text`` with a space in each place where Markdown or HTML would make it a link, an image or a tag.

    What is given for the beginning of a text is the beginning of what is given for the whole.
    """
    return str(_MARKUP.sub(" ", text))


class PlainText:
    """Makes replies about some sources plain.

    Args:
        sources: what the reply may quote links from.
        boundary: the token that fences the sources in the prompt, empty when there is none.
    """

    def __init__(self, sources: Sequence[Source], boundary: str = "") -> None:
        self._sources = sources
        self._boundary = boundary.casefold()

    # Both take long and are seldom needed: most replies hold neither a link nor the boundary.

    @cached_property
    def _known(self) -> frozenset[str]:
        texts = (text for source in self._sources for text in (source.passage, source.subject, source.sender))
        return frozenset(_links(texts))

    @cached_property
    def _fence(self) -> regex.Pattern[str]:
        token = r"[\W_]{0,9}".join(map(regex.escape, self._boundary))
        return regex.compile(rf"(?:<< *)?{token}(?: *(?:end of )?source \d+)?(?: *>>)?", regex.IGNORECASE)

    def _without_fence(self, text: str) -> str:
        together = _SEPARATORS.sub("", text).casefold()
        return self._fence.sub("", text) if self._boundary and self._boundary in together else text

    def _without_begun_fence(self, text: str) -> str:
        together = _SEPARATORS.sub("", text).casefold()
        begun = (self._boundary[:length] for length in range(1, len(self._boundary) + 1))
        may_begin = text.rstrip().endswith("<") or together.endswith(tuple(begun))
        return _without_partial(self._fence, text) if self._boundary and may_begin else text

    def whole(self, reply: str) -> str:
        """What may be shown of a finished reply; empty when nothing is left."""
        return self._cleaned(visible(reply)).strip()

    def begun(self, reply: str, *held: regex.Pattern[str]) -> str:
        """What may be shown of a reply that goes on: nothing that ``whole`` may show otherwise once more is known.

        What may yet become a match of one of the ``held`` patterns is left out too.
        """
        text = _LAST_WORD.sub("", visible(reply))
        text = _LAST_WORD.sub("", self._without_begun_fence(text))  # what is cut off may have ended a word
        for pattern in (_IMAGE_OR_LINK, _TAG):
            text = _LAST_WORD.sub("", _without_partial(pattern, text))
        text = self._cleaned(text)
        for pattern in (ATTRIBUTION, *held):
            if found := pattern.search(text, partial=True):
                text = text[: found.start()]
        return _NO_WORD_YET.sub("", text).strip()

    def _cleaned(self, text: str) -> str:
        text = _IMAGE_OR_LINK.sub(r"\1", self._without_fence(text))
        text = ATTRIBUTION.sub("", _TAG.sub("", text))
        return str(_LINK.sub(self._judged, _MARKUP.sub(" ", text)))

    def _judged(self, found: regex.Match[str]) -> str:
        link = found.group()
        if _bare(link) in self._known and not _ACTS.match(link):
            return link
        if _BARE.fullmatch(link) and _SENTENCE_END.search(link):
            return _SENTENCE_END.sub(" ", link)  # a full stop without its space, not an address
        return LINK_REMOVED + link[len(link.rstrip(_PUNCTUATION)) :]


def _without_partial(pattern: regex.Pattern[str], text: str) -> str:
    """``text`` up to where a match of ``pattern`` begins that only more text would end."""
    for found in pattern.finditer(text, partial=True):
        if found.partial:
            return text[: found.start()]
    return text


def _links(texts: Iterable[str]) -> Iterable[str]:
    return (_bare(found.group()) for text in texts for found in _LINK.finditer(visible(text)))


def _bare(link: str) -> str:
    """A link without what may be left out when it is repeated."""
    plain = link.strip(_PUNCTUATION)
    for prefix in ("https://", "http://", "mailto:", "www."):
        plain = plain.removeprefix(prefix)
    return plain.rstrip("/")
