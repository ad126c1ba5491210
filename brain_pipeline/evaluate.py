"""Question sets in, figures out: retrieval, abstention and calibration of any retriever."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from brain_pipeline.ask.answer import HIGH, LOW
from brain_pipeline.errors import InvalidRequest
from brain_pipeline.settings import moment

_BINS = 10  # of equal width, for the calibration error
_SHOWN = 60  # characters of a question in a table


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question whose answer is known.

    Attributes:
        question: in plain words.
        gold: every email that holds the answer, any of which counts; empty when none does.
        keys: what a right answer must contain.
        kind: what figures are broken down by.
        now: when it is asked; None for the present.
        zone: where it is asked, which tells what day that is; None for the household's zone.
    """

    question: str
    gold: frozenset[str]
    keys: tuple[str, ...] = ()
    kind: str = ""
    now: datetime | None = None
    zone: tzinfo | None = None

    @property
    def asked(self) -> datetime | None:
        """``now`` as a clock where it is asked shows it, to be taken for the household's."""
        if self.now is None or self.zone is None:
            return self.now
        local = self.now.astimezone(self.zone) if self.now.tzinfo else self.now
        return local.replace(tzinfo=None)


Retrieve = Callable[[LabelledQuestion], Sequence[tuple[str, float]]]
Answer = Callable[[LabelledQuestion], str]
PromptTokens = Callable[[LabelledQuestion], int | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question: emails and their scores, best first, and the answer when one was asked for."""

    question: LabelledQuestion
    found: tuple[tuple[str, float], ...]
    milliseconds: float = 0.0
    answer: str | None = None
    prompt_tokens: int | None = None

    @property
    def score(self) -> float:
        """The best email's score, 0 when nothing was found."""
        return self.found[0][1] if self.found else 0.0

    @property
    def rank(self) -> int | None:
        """Where the first right email stands, from 1; None when it was not found."""
        return next((i for i, (email, _) in enumerate(self.found, 1) if email in self.question.gold), None)

    @property
    def missed(self) -> bool:
        """Whether a person would have been let down: no right email first, refused, or answered from nothing."""
        refused = self.score < LOW
        return refused or self.rank != 1 if self.question.gold else not refused


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a set of questions, each in [0, 1] but for the counts; None where nothing can be said.

    Attributes:
        n_answerable: questions that some email answers.
        n_unanswerable: questions that none does.
        recall_at_1: share of the answerable with a right email first; likewise ``recall_at_3`` and ``recall_at_5``.
        mrr: mean reciprocal rank of the first right email.
        auc: probability that the best score of an answerable question exceeds that of an unanswerable one.
        refused_answerable: share of the answerable whose best score is below the low threshold.
        refused_unanswerable: share of the unanswerable for which it is.
        high_precision: of all questions whose best score is above the high threshold, the share with a right email
            first.
        ece: expected calibration error of the best score as the probability that the first email is right, over ten
            bins of equal width (Guo et al. 2017).
        key_facts: share of the answerable whose answer contains every key.
        latency_ms: median time of a retrieval; ``latency_p95_ms`` is what one in twenty takes longer than.
        prompt_tokens: median of what the language model reads for a question that it is asked.
    """

    n_answerable: int
    n_unanswerable: int
    recall_at_1: float | None
    recall_at_3: float | None
    recall_at_5: float | None
    mrr: float | None
    auc: float | None
    refused_answerable: float | None
    refused_unanswerable: float | None
    high_precision: float | None
    ece: float | None
    key_facts: float | None
    latency_ms: float | None
    latency_p95_ms: float | None
    prompt_tokens: float | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The figures of all questions and of each kind, and the outcomes that a person would complain of."""

    overall: Figures
    by_kind: Mapping[str, Figures]
    misses: tuple[Outcome, ...]

    def as_json(self) -> dict[str, Any]:
        """One object: the overall figures, and those of each kind under ``by_kind``."""
        return asdict(self.overall) | {"by_kind": {kind: asdict(figures) for kind, figures in self.by_kind.items()}}


def read_questions(path: Path) -> list[LabelledQuestion]:
    """The questions of a JSONL file.

    A line holds ``question`` and ``gold`` (a list of emails, empty when none answers it), and may hold ``keys``,
    ``kind`` (or ``type``), ``now`` and the ``zone`` it is in.

    Raises:
        InvalidRequest: the file can't be read, or a line is not such an object.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The question set {path} can't be read: {error}.") from error
    return [_read(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]


def read_baseline(path: Path) -> Mapping[str, Any]:
    """The figures of an earlier run, as ``as_json`` gave them.

    Raises:
        InvalidRequest: the file can't be read or holds something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"The baseline {path} can't be read: {error}.") from error
    if not isinstance(found, dict):
        raise InvalidRequest(f"The baseline {path} is not what `brain eval --json` prints.")
    return found


def _read(line: str, where: str) -> LabelledQuestion:
    try:
        row = json.loads(line)
        return LabelledQuestion(
            question=str(row["question"]),
            gold=frozenset(_strings(row["gold"])),
            keys=tuple(_strings(row.get("keys") or [])),
            kind=str(row.get("kind") or row.get("type") or ""),
            now=moment(str(row["now"])) if row.get("now") else None,
            zone=ZoneInfo(row["zone"]) if row.get("zone") else None,
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidRequest(
            f'{where} is no question: it needs an object such as {{"question": "...", "gold": ["a.eml"]}}.'
        ) from error


def _strings(value: object) -> list[str]:
    if not isinstance(value, list):
        raise TypeError(f"a list is needed, not {type(value).__name__}")
    return list(map(str, value))


def evaluate(
    questions: Iterable[LabelledQuestion],
    retrieve: Retrieve,
    answer: Answer | None = None,
    prompt_tokens: PromptTokens | None = None,
) -> Evaluation:
    """Asks every question and measures what comes back.

    Args:
        questions: with their right answers.
        retrieve: gives emails and their scores, best first, one entry per email.
        answer: gives the text of an answer, to look for the key facts in.
        prompt_tokens: gives how many tokens a language model reads for a question, None when it is not asked.
    """
    outcomes = [_ask(question, retrieve, answer, prompt_tokens) for question in questions]
    kinds = sorted({outcome.question.kind for outcome in outcomes} - {""})
    by_kind = {kind: figures([o for o in outcomes if o.question.kind == kind]) for kind in kinds}
    return Evaluation(figures(outcomes), by_kind, tuple(outcome for outcome in outcomes if outcome.missed))


def _ask(
    question: LabelledQuestion, retrieve: Retrieve, answer: Answer | None, prompt_tokens: PromptTokens | None
) -> Outcome:
    start = time.perf_counter()
    found = tuple(retrieve(question))
    elapsed = (time.perf_counter() - start) * 1000
    said = answer(question) if answer and question.gold else None
    return Outcome(question, found, elapsed, said, prompt_tokens(question) if prompt_tokens else None)


def figures(outcomes: Sequence[Outcome]) -> Figures:
    """The figures of some outcomes."""
    answerable = [outcome for outcome in outcomes if outcome.question.gold]
    unanswerable = [outcome for outcome in outcomes if not outcome.question.gold]
    ranks = [outcome.rank or float("inf") for outcome in answerable]
    answered = [outcome for outcome in answerable if outcome.answer is not None]
    return Figures(
        n_answerable=len(answerable),
        n_unanswerable=len(unanswerable),
        recall_at_1=_mean(rank <= 1 for rank in ranks),
        recall_at_3=_mean(rank <= 3 for rank in ranks),  # noqa: PLR2004
        recall_at_5=_mean(rank <= 5 for rank in ranks),  # noqa: PLR2004
        mrr=_mean(1 / rank for rank in ranks),
        auc=area_under_curve([o.score for o in answerable], [o.score for o in unanswerable]),
        refused_answerable=_mean(outcome.score < LOW for outcome in answerable),
        refused_unanswerable=_mean(outcome.score < LOW for outcome in unanswerable),
        high_precision=_mean(outcome.rank == 1 for outcome in outcomes if outcome.score > HIGH),
        ece=calibration_error([o.score for o in outcomes], [o.rank == 1 for o in outcomes]),
        key_facts=_mean(_holds_keys(outcome) for outcome in answered),
        latency_ms=_percentile([outcome.milliseconds for outcome in outcomes], 50),
        latency_p95_ms=_percentile([outcome.milliseconds for outcome in outcomes], 95),
        prompt_tokens=_percentile([o.prompt_tokens for o in outcomes if o.prompt_tokens is not None], 50),
    )


def _percentile(values: Sequence[float], share: float) -> float | None:
    return float(np.percentile(values, share)) if values else None


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None


def _holds_keys(outcome: Outcome) -> bool:
    said = " ".join((outcome.answer or "").casefold().split())
    return all(" ".join(key.casefold().split()) in said for key in outcome.question.keys)


def area_under_curve(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """The probability that one of ``positive`` exceeds one of ``negative``, ties counting half; None without both."""
    if not positive or not negative:
        return None
    higher, lower = np.array(positive)[:, None], np.array(negative)[None, :]
    return float(((higher > lower) + 0.5 * (higher == lower)).mean())


def calibration_error(scores: Sequence[float], right: Sequence[bool]) -> float | None:
    """The expected calibration error of scores in [0, 1] as probabilities of being right; None for none."""
    if not scores:
        return None
    stated, correct = np.array(scores), np.array(right, dtype=np.float64)
    bins = np.minimum((stated * _BINS).astype(int), _BINS - 1)
    gaps = [abs(stated[bins == b].mean() - correct[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins)]
    return float(sum(gaps))


def render(evaluation: Evaluation, baseline: Mapping[str, Any] | None = None) -> str:
    """A table of the figures, those of an earlier run beside them, and the misses.

    Args:
        evaluation: what was measured.
        baseline: what ``as_json`` gave then.
    """
    lines = [*_figure_lines(evaluation.overall, baseline), ""]
    for kind, found in evaluation.by_kind.items():
        refused = found.refused_answerable if found.n_answerable else found.refused_unanswerable
        count = found.n_answerable + found.n_unanswerable
        lines.append(f"{kind:<24} {count:>4}  recall@3 {_shown(found.recall_at_3)}  refused {_shown(refused)}")
    return "\n".join([*lines, "", *map(_miss_line, evaluation.misses)])


def _figure_lines(overall: Figures, baseline: Mapping[str, Any] | None) -> Iterator[str]:
    for field in fields(overall):
        value = getattr(overall, field.name)
        if value is None:
            continue
        line = f"{field.name:<22} {_shown(value):>8}"
        before = (baseline or {}).get(field.name)
        yield f"{line}  was {_shown(before):>8}" if isinstance(before, int | float) else line


def _miss_line(outcome: Outcome) -> str:
    asked = outcome.question.question
    short = asked if len(asked) <= _SHOWN else f"{asked[: _SHOWN - 1]}…"
    if not outcome.question.gold:
        return f"answered from nothing  {outcome.score:.2f}  {short}"
    where = f"right email at {outcome.rank}" if outcome.rank else "right email not found"
    return f"{where:<22} {outcome.score:.2f}  {short}"


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"
