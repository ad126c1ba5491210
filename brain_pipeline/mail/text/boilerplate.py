"""What every newsletter says and no reader reads."""

from __future__ import annotations

import re

_LIST = r"(?:e-?mails?|mailings?|newsletters?|(?:mailing )?lists?|messages|database)"


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_UNSUBSCRIBE = _any_of(
    r"\bunsubscrib",
    rf"\bopt[- ]?out\b.{{0,60}}\b{_LIST}\b",
    r"\bsign ?off\b.{0,40}\blist\b",
    rf"\b(?:stop|discontinue|no longer|not) (?:wish |want )?(?:to )?receiv(?:ing|e)\b.{{0,60}}\b{_LIST}\b",
    rf"\bremoved? .{{0,40}}\bfrom (?:this|our|the|future|all)\b.{{0,30}}\b{_LIST}\b",
    r"\b(?:manage|update|change|edit|modify) (?:your )?(?:e-?mail |newsletter |mail )?(?:preferences|subscriptions?)\b",
    r"\babbestellen\b|\bnewsletter abmelden\b|\bse désabonner\b|\bdésinscri",
    r"\bdarse de baja\b|\bcancelar (?:la |tu )?suscripción\b|\bdisiscriv|\bafmelden\b",
    r"\bотписа",  # noqa: RUF001
)
_OTHER = _any_of(
    r"\b(?:view|read|see|open) (?:this|the|it)?(?: ?(?:e-?mail|message|newsletter|mailing))? ?"
    r"(?:online|in (?:your|a|the)(?: web)? ?browser|as a web ?page|on the web)\b",
    r"\b(?:having )?trouble (?:viewing|reading)\b",
    r"\byou(?:'|’| a)?re (?:currently )?(?:receiving|subscribed)",
    r"\byou (?:have )?received this (?:e-?mail|message|news)",
    r"\bthis (?:e-?mail|message|newsletter|mailing) (?:was|has been|is being) sent to\b",
    r"\badd .{3,60} to your address book",
    r"\bforward (?:this )?(?:e-?mail |message )?to a friend\b",
    r"\ball rights reserved\b|^\W*(?:©|\(c\)|copyright)\W* ?\d{4}",
    r"\bprivacy (?:policy|statement|notice)\b",
    r"\bim browser (?:ansehen|anzeigen|öffnen)\b|\bvoir (?:cet|dans) .{0,30}navigateur",
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_])")
_WRAPPED = 45
# What is longer than any footer's sentence is a text whose sentences can't be told apart.
_LONGEST = 400
_LINKS = "\n\nLinks:\n"


def has_unsubscribe_line(text: str) -> bool:
    """Whether the second half of ``text`` tells how to unsubscribe, as only bulk mail does."""
    prose = text.partition(_LINKS)[0]
    middle = prose.rfind("\n", 0, len(prose) // 2) + 1
    return bool(_UNSUBSCRIBE.search(prose, middle))


def strip_boilerplate(text: str) -> str:
    """A newsletter's ``text`` without the sentences that are footers, unsubscribe lines or "view in browser"."""
    return "\n\n".join(kept for block in re.split(r"\n{2,}", text) if (kept := _without_boilerplate(block)))


def _without_boilerplate(block: str) -> str:
    if not _is_boilerplate(" ".join(block.split())):
        return block
    lines = block.split("\n")
    if all(len(line) >= _WRAPPED and not line.startswith("- ") for line in lines[:-1]):
        rest = _without_sentences(" ".join(block.split()))
        if not _is_boilerplate(rest):
            return rest
    return "\n".join(kept for line in lines if (kept := _without_sentences(line)))


def _without_sentences(line: str) -> str:
    if not _is_boilerplate(line):
        return line
    return " ".join(
        sentence for sentence in _SENTENCE.split(line) if len(sentence) > _LONGEST or not _is_boilerplate(sentence)
    )


def _is_boilerplate(text: str) -> bool:
    return bool(_UNSUBSCRIBE.search(text) or _OTHER.search(text))
