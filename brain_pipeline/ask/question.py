"""What a question asks for: its content terms, what each is worth, and the kind of fact that would answer it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from brain_pipeline.ask.stopwords import stop_words
from brain_pipeline.family.when import Window
from brain_pipeline.index.keywords import Passage
from brain_pipeline.index.terms import date_words, day_terms, fold, terms

Floats = NDArray[np.float64]

SENT_NEAR = 0.3  # of the preference for mail that names a day that is asked about
_FEW, _MANY = 7, 31  # days of a window
_YEAR = re.compile(r"(?:19|20)\d\d")
_RELATIVE_YEARS = (
    (re.compile(r"\blast year(?:'s)?\b|\b(?:letzte[sn]?|vorige[sn]?) jahr\b|\bano pasado\b|\bl'an dernier\b"), -1),
    (re.compile(r"\bthis year(?:'s)?\b|\bdiese[sm]? jahr\b|\beste ano\b|\bcette annee\b"), 0),
    (re.compile(r"\bnext year(?:'s)?\b|\bnachste[sn]? jahr\b|\bproximo ano\b|\bl'annee prochaine\b"), 1),
)
_WHAT = re.compile(r"\bwhat\b|\bany(?:thing|one)?\b|\bwas\b|\bque\b|\bqu'|\bquoi\b")
_ASKED = {
    "_address": re.compile(r"(?<!mail )(?<!web )(?<!ip )\baddress\b|\badresse\b|\bdireccion\b"),
    "_email": re.compile(r"\be-?mail address|\bmailadresse\b|\bcorreo electronico\b"),
    "_phone": re.compile(r"\bphone(?: number)?\b|\bextension\b|\b(?:telefon|handy)nummer\b|\btelefono\b"),
    "_money": re.compile(
        r"\bhow (?:much|expensive)\b.*\b(?:bills?|charged?|charges|costs?|fees?|owed?|paid|pay|prices?|quoted?|rent"
        r"|spend|spent|tuition)\b|\b(?:cost|costs|price|prices|fee|fees|salary|tuition|deposit)\b"
        r"|\bwas kostet\b|\bwie teuer\b|\bcuanto cuestan?\b|\bprecio\b"
    ),
    "_time": re.compile(
        r"\bwhen\b|\b(?:what|which) (?:date|day|evening|hour|month|morning|night|time|week|weekend|year)s?\b|\bwann\b"
        r"|\bum wie viel uhr\b|\bcuando\b|\ba que hora\b|\bquand\b"
    ),
}


class Vocabulary(Protocol):
    """What a keyword index knows of terms; see ``index.keywords.KeywordIndex``."""

    def count(self) -> int:
        """The number of chunks."""

    def frequencies(self, words: Iterable[str]) -> Mapping[str, int]:
        """In how many chunks each of the given terms stands."""

    def spellings(self, word: str) -> list[str]:
        """The terms that an unknown one may have been meant for."""


@dataclass(frozen=True, slots=True)
class When:
    """The days that a question is about, as mail tells them.

    Attributes:
        terms: which of the question's content terms name them.
        days: what mail calls them, as ``index.terms.day_terms`` does, when they are few.
        sent: the headers of mail that was sent near them, as terms; none when they are many.
        year: the year that they begin in.
    """

    terms: frozenset[int]
    days: frozenset[str]
    sent: tuple[str, ...]
    year: str

    def nearness(self, passage: Passage) -> float:
        """How near a passage is to the days: 1 when it names one, less when it was sent near them."""
        near = any(map(passage.holds, self.sent))
        if any(map(passage.holds, self.days)) and (near or passage.holds(self.year)):
            return 1.0
        return SENT_NEAR * near


@dataclass(frozen=True, slots=True)
class Question:
    """A question as the score reads it.

    Attributes:
        forms: per content term, the indexed terms that stand for it: itself, or other spellings when it is unknown.
        weights: what each content term is worth, its inverse document frequency ``log(1 + (N - n + 0.5) / (n + 0.5))``
            as in BM25 (Robertson and Zaragoza 2009, section 3.2), shape (terms,).
        years: the content terms that are years.
        facts: kinds of fact that would answer it, as ``index.terms.facts`` names them.
        when: the days that it is about, None when it names none.
    """

    forms: tuple[frozenset[str], ...]
    weights: Floats
    years: frozenset[str]
    facts: frozenset[str]
    when: When | None = None

    @property
    def words(self) -> list[str]:
        """Every indexed term to search for."""
        return sorted(frozenset().union(*self.forms))


NO_QUESTION = Question(forms=(), weights=np.zeros(0), years=frozenset(), facts=frozenset())


def content_terms(question: str, today: date | None = None) -> list[str]:
    """The distinct terms of a question that say what it is about; none for a greeting.

    Args:
        question: in plain words.
        today: resolves "last year"; None leaves it out.
    """
    folded, years = fold(question), []
    for pattern, offset in _RELATIVE_YEARS:
        folded, found = pattern.subn(" ", folded)
        if found and today:
            years.append(str(today.year + offset))
    words = list(dict.fromkeys([*terms(folded), *years]))
    ignored = stop_words(words)
    return [word for word in words if word not in ignored]


def read_question(
    question: str, vocabulary: Vocabulary, today: date | None = None, window: Window | None = None
) -> Question:
    """Weighs a question's terms by how rare they are in the collection.

    Args:
        question: in plain words.
        vocabulary: the collection's keyword index.
        today: resolves "last year" and "this year"; None leaves them out.
        window: the days that the question names. Mail may call them otherwise: for "Friday" it may say "January 9".
    """
    words = content_terms(question, today)
    days = days_named(window)
    frequencies = dict(vocabulary.frequencies(words))
    forms = [frozenset({word} if frequencies[word] else (word, *vocabulary.spellings(word))) for word in words]
    if days and not forms and _WHAT.search(fold(question)):  # it asks for the days and for nothing else
        words, forms = ["day"], [frozenset()]
    frequencies |= vocabulary.frequencies(frozenset().union(*forms) - frequencies.keys())
    rows = vocabulary.count()
    counts = (min(max((frequencies[form] for form in group), default=0), rows) for group in forms)
    return Question(
        forms=tuple(forms),
        weights=np.array([math.log1p((rows - n + 0.5) / (n + 0.5)) for n in counts]),
        years=frozenset(word for word in words if _YEAR.fullmatch(word)),
        facts=facts_asked(question),
        when=_when(window, words, days, today),
    )


def _when(window: Window | None, words: Sequence[str], days: frozenset[str], today: date | None) -> When | None:
    if window is None:
        return None
    others = set(content_terms(window.rest, today))
    terms = frozenset(place for place, word in enumerate(words) if word not in others)
    return When(terms, days, sent_near(window), str(window.first.year))


def days_named(window: Window | None) -> frozenset[str]:
    """What mail may call the days of a window; nothing for more than a week, which mail names otherwise."""
    if window is None or (window.last - window.first).days >= _FEW:
        return frozenset()
    return frozenset().union(*map(day_terms, window.days))


def sent_near(window: Window | None) -> tuple[str, ...]:
    """How the header of mail begins that was sent in a window of a month at most, or in the week before it."""
    if window is None or (window.last - window.first).days >= _MANY:
        return ()
    first = window.first.toordinal()
    days = (date.fromordinal(day) for day in range(max(first - _FEW, 1), window.last.toordinal() + 1))
    return tuple(" ".join(terms(date_words(day))) for day in days)


def facts_asked(question: str) -> frozenset[str]:
    """The kinds of fact that would answer a question, as ``index.terms.facts`` names them."""
    folded = fold(question)
    return frozenset(kind for kind, pattern in _ASKED.items() if pattern.search(folded))
