"""The new text of a message and the history below it."""

from __future__ import annotations

import re
from itertools import islice

_WROTE = (
    r"(?:wrote|writes|schrieb|schreibt|a écrit|écrivait|escribió|ha scritto|schreef|escreveu|skrev|napisał\(?a?\)?"
    r"|napsal\(?a?\)?|írta|kirjoitti|yazdı"  # noqa: RUF001
    r"|пишет|писал\(?а?\)?|написал\(?а?\)?)"  # noqa: RUF001
)
_ATTRIBUTION = re.compile(rf"^(?=.*(?:\d|@)).{{3,400}}\b{_WROTE}\b.{{0,120}}:\s*$", re.IGNORECASE)
_ATTRIBUTION_START = re.compile(
    r"^(?:On|Am|Le|El|Il|Op|Em|Den|Dnia|W dniu|Dne|På|Kl\.|In (?:a )?(?:message|article|reply)"
    r"|\d{4}[-/]\d\d?[-/]\d\d?)\b"
)
_LOOSE_ATTRIBUTION = re.compile(rf"(?:\b{_WROTE}|[@>)\d])[^:]{{0,60}}:\s*$", re.IGNORECASE)
_ORIGINAL = re.compile(
    r"^\s*[-_]{2,}\s*(?:original message|ursprüngliche nachricht|originalnachricht|message d'origine|mensaje original"
    r"|messaggio originale|oorspronkelijk bericht|mensagem original|исходное сообщение)\s*[-_]{2,}\s*$",
    re.IGNORECASE,
)
_FORWARDED = re.compile(
    r"^\s*(?:[-_]{2,}\s*(?:forwarded message|forwarded by|weitergeleitete nachricht|message transféré|mensaje reenviado"
    r"|messaggio inoltrato|doorgestuurd bericht|mensagem encaminhada)|begin forwarded message:)",
    re.IGNORECASE,
)
_FROM_FIELD = re.compile(r"^\s*\*?(?:From|Von|De|Da|Van|От)\s?:\*?\s+\S", re.IGNORECASE)
_OTHER_FIELD = re.compile(
    r"^\s*\*?(?:Sent|Date|To|Subject|Gesendet|Datum|An|Betreff|Envoyé|À|Objet|Enviado|Para|Asunto|Inviato|Oggetto"
    r"|Verzonden|Aan|Onderwerp|Assunto|Data|Отправлено|Кому|Тема|Cc)\s?:",
    re.IGNORECASE,
)
_RULE = re.compile(r"^\s*[_-]{10,}\s*$")
_SENT_FROM = re.compile(
    r"^(?:Sent from my|Sent via|Get Outlook for|Von meinem .{2,30} gesendet|Envoyé de mon|Enviado desde mi)\b.{0,60}$"
)
_MAX_SIGNATURE_LINES = 12
_MAX_ATTRIBUTION_LINES = 4
_HEADER_FIELDS = 2


def split_quoted(text: str) -> tuple[str, str]:
    """``text`` as ``(new, quoted)``: what was written this time, and history and signature.

    Every line goes to exactly one of the two, in order. A forwarded message is news to its reader and stays new; so
    does everything when nothing else would be left.
    """
    lines = text.split("\n")
    forward = next((n for n, line in enumerate(lines) if _FORWARDED.match(line)), len(lines))
    own, forwarded = lines[:forward], lines[forward:]
    history = _history_start(own)
    quoted = [n >= history or line.startswith(">") for n, line in enumerate(own)]
    _mark_attributions(own, quoted)
    _mark_signature(own, quoted)
    new = [line for line, is_quoted in zip(own, quoted, strict=True) if not is_quoted]
    if not any(character.isalnum() for line in (*new, *forwarded) for character in line):
        return text, ""
    old = [line for line, is_quoted in zip(own, quoted, strict=True) if is_quoted]
    return "\n".join([*new, *forwarded]).strip("\n"), "\n".join(old).strip("\n")


def _history_start(lines: list[str]) -> int:
    """The line from which on everything is an older message that is not marked with ``>``."""
    for n, line in enumerate(lines):
        if _ORIGINAL.match(line) or _is_field_block(lines, n):
            return n - 1 if n and _RULE.match(lines[n - 1]) else n
        if _ATTRIBUTION_START.match(line) and (length := _attribution_length(lines, n)):
            following = next((later for later in islice(lines, n + length, None) if later.strip()), "")
            if following and not following.startswith(">"):
                return n
    return len(lines)


def _is_field_block(lines: list[str], n: int) -> bool:
    """Whether the header of an older message begins here, as Outlook writes it."""
    if not _FROM_FIELD.match(lines[n]) or (n and lines[n - 1].strip() and not _RULE.match(lines[n - 1])):
        return False
    block = [line for line in lines[n + 1 : n + 8] if line.strip()]
    return sum(bool(_OTHER_FIELD.match(line)) for line in block[:5]) >= _HEADER_FIELDS


def _attribution_length(lines: list[str], n: int) -> int:
    """How many lines from ``n`` on say who wrote what follows; 0 when they don't."""
    for length in range(1, _MAX_ATTRIBUTION_LINES + 1):
        part = lines[n : n + length]
        if len(part) < length or not part[-1].strip():
            return 0
        if part[-1].rstrip().endswith(":"):
            return length if _ATTRIBUTION.match(" ".join(part)) else 0
    return 0


def _mark_attributions(lines: list[str], quoted: list[bool]) -> None:
    """Mark the line or lines that introduce each run of quoted lines."""
    for n in range(1, len(lines)):
        if not quoted[n] or quoted[n - 1]:
            continue
        last = n - 1
        while last > 0 and not lines[last].strip():
            last -= 1
        if not quoted[last] and lines[last].rstrip().endswith(":"):
            first = _attribution_start(lines, last)
            quoted[first : last + 1] = [True] * (last + 1 - first)


def _attribution_start(lines: list[str], last: int) -> int:
    """Where the attribution that ends in line ``last`` begins; after it when that is no attribution."""
    for first in range(max(last + 1 - _MAX_ATTRIBUTION_LINES, 0), last + 1):
        if _ATTRIBUTION_START.match(lines[first]) and _attribution_length(lines, first) == last + 1 - first:
            return first
    return last if _LOOSE_ATTRIBUTION.search(lines[last]) else last + 1


def _mark_signature(lines: list[str], quoted: list[bool]) -> None:
    """Mark the signature that ends the new text."""
    own = [n for n, is_quoted in enumerate(quoted) if not is_quoted and lines[n].strip()]
    for position, n in enumerate(reversed(own)):
        if position > _MAX_SIGNATURE_LINES:
            return
        line = lines[n]
        if line.rstrip() == "--" or (not position and _SENT_FROM.match(line)):
            for following in own[len(own) - 1 - position :]:
                quoted[following] = True
            return
