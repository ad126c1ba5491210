"""Measuring a brain by questions whose answers are known, over the open brain or a throw-away one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
from platformdirs import user_cache_path

from brain_pipeline.ask.calibrate import Labelled, fit
from brain_pipeline.ask.score import Calibration, default_calibration
from brain_pipeline.brain import Brain, open_brain
from brain_pipeline.errors import InvalidRequest
from brain_pipeline.evaluate import Evaluation, LabelledQuestion, evaluate
from brain_pipeline.index.chunk import chunk_id, fingerprint, mail_key
from brain_pipeline.mail.mailboxes import iter_messages
from brain_pipeline.mail.reading import read_all
from brain_pipeline.models.tokens import token_counter
from brain_pipeline.records import Mail
from brain_pipeline.settings import Settings

# What the rows are made with, besides the mail.
_MAKING = {
    *("embed_provider", "embed_model", "embed_model_path", "embed_query_prefix", "embed_document_prefix"),
    *("timezone", "newsletter_senders", "email_senders"),
}


def throw_away_brain(settings: Settings, mail: Path) -> Brain:
    """A brain over a folder of mail and nothing else, in the user's cache; the next call finds it made.

    Raises:
        MailError: the folder does not exist.
        BrainUnavailable: the embedding model or the database can't be used now.
    """
    made_of = f"{mail.resolve()}\n{settings.model_dump_json(include=_MAKING)}"
    folder = user_cache_path("family-brain") / "trials" / hashlib.sha256(made_of.encode()).hexdigest()[:16]
    apart = settings.model_copy(update={"chroma_db_path": folder, "chroma_url": None})
    with ExitStack() as undo:
        brain = undo.enter_context(open_brain(apart))
        _forget_others(brain, mail)
        brain.ingest(iter_messages([mail]))
        undo.pop_all()
    return brain


def _forget_others(brain: Brain, mail: Path) -> None:
    """Deletes what an earlier trial found in ``mail`` and is no longer there."""
    held = brain.catalog.store.ids()
    if not held:
        return
    mails = (each for _, each in read_all([mail], brain.settings) if isinstance(each, Mail))
    there = {_mail_of(chunk_id(mail_key(each), 0)) for each in mails}
    brain.catalog.delete([id_ for id_ in held if _mail_of(id_) not in there])


def _mail_of(id_: str) -> str:
    return id_.rpartition("-")[0]


def by_email(brain: Brain, mail: Path, questions: Iterable[LabelledQuestion]) -> Iterator[LabelledQuestion]:
    """Questions whose right answers are files of ``mail``, with the keys of these emails in their place.

    Raises:
        InvalidRequest: a question names a file that is not there.
    """
    keys = _keys_of_files(brain, mail)
    for question in questions:
        if unknown := sorted(name for name in question.gold if name not in keys):
            raise InvalidRequest(f"{question.question!r} is answered in {unknown[0]}, which is not in {mail}.")
        yield replace(question, gold=frozenset(keys[name] for name in question.gold))


def _keys_of_files(brain: Brain, mail: Path) -> dict[str, str]:
    """The key of each file's email, under the file's name, its path within ``mail``, and that with ``mail``'s name."""
    files = [(origin, each) for origin, each in read_all([mail], brain.settings) if isinstance(each, Mail)]
    first = {origin: chunk_id(mail_key(each), 0) for origin, each in files}
    stored = {row.id: row for row in brain.catalog.store.get(list(first.values()))}
    keys: dict[str, str] = {}
    for origin, each in files:
        # A copy of another mail is stored as that one.
        row = stored.get(first[origin]) or brain.catalog.twin(fingerprint(each), of=first[origin])
        key = brain.catalog.reader.read(row.metadata, row.text, row.id).key if row else ""
        within = Path(origin).relative_to(mail)
        keys |= dict.fromkeys((within.name, str(within), f"{mail.name}/{within}"), key)
    return keys


def measure(brain: Brain, questions: Iterable[LabelledQuestion], *, answers: bool = False) -> Evaluation:
    """Asks a brain every question; with ``answers`` its language model too, which takes its time."""

    def retrieve(question: LabelledQuestion) -> Sequence[tuple[str, float]]:
        return [(source.email, source.score) for source in brain.ranked(question.question, now=question.asked)]

    def answer(question: LabelledQuestion) -> str:
        return brain.query(question.question, now=question.asked).text

    def prompt_tokens(question: LabelledQuestion) -> int | None:
        prompt = brain.explain(question.question, now=question.asked).prompt
        return sum(token_counter()(text) for _, text in prompt) if prompt else None

    return evaluate(questions, retrieve, answer if answers else None, prompt_tokens)


def calibrate(brain: Brain, questions: Iterable[LabelledQuestion]) -> Calibration:
    """Fits the score to labelled questions and keeps it with the collection; see ``ask.calibrate.fit``."""
    labelled = []
    for question in questions:
        evidence = brain.evidence(question.question, now=question.asked)
        if evidence:
            right = np.array([email in question.gold for email in evidence])
            labelled.append(Labelled(np.vstack(list(evidence.values())), right))
    keywords = brain.catalog.keywords()
    model = brain.settings.embed_model
    calibration = fit(labelled, default_calibration(model), model=model, stamp=keywords.stamp if keywords else "")
    brain.keep_calibration(calibration)
    return calibration
