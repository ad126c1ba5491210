"""Measuring and calibrating over the sample mailbox, and by questions over other folders of mail."""

from __future__ import annotations

import json
import shutil

import pytest

from brain_pipeline.brain import Brain
from brain_pipeline.errors import InvalidRequest, StoreError
from brain_pipeline.evaluate import LabelledQuestion
from brain_pipeline.sample import sample_mail
from brain_pipeline.settings import Settings
from brain_pipeline.trial import by_email, calibrate, measure, throw_away_brain

SLIP = "2025-09-15-field-trip-permission-slip.eml"
WATER = "2024-12-10-water-heater-invoice.eml"


@pytest.fixture
def mail(tmp_path):
    """A few mails of the sample, two of them copies of one newsletter under other ids."""
    folder = tmp_path / "mail"
    folder.mkdir()
    for pattern in ("2025-09-1*", "2024-1*"):
        for path in sample_mail().glob(pattern):
            shutil.copy(path, folder)
    return folder


@pytest.fixture
def brain(mail):
    with throw_away_brain(Settings.load(environment="embedded"), mail) as made:
        yield made


def questions(*gold):
    return [LabelledQuestion("What do the kids need for the field trip?", frozenset(gold))]


def test_gold_files_are_known_by_name_or_path(brain, mail):
    wanted = {f"{folder}{SLIP}" for folder in ("", f"{mail.name}/")}
    (mapped,) = by_email(brain, mail, questions(*wanted))
    assert len(mapped.gold) == 1
    assert measure(brain, [mapped]).overall.recall_at_1 == 1.0


def test_copies_are_one_email(brain, mail):
    copies = [path.name for path in mail.glob("2025-09-12-heron-highlights*")]
    (mapped,) = by_email(brain, mail, questions(*copies))
    assert (len(copies), len(mapped.gold)) == (2, 1)


def test_a_file_that_is_not_there_is_named(brain, mail):
    with pytest.raises(InvalidRequest, match=r"elsewhere\.eml"):
        list(by_email(brain, mail, questions("elsewhere.eml")))


def test_the_next_trial_over_the_same_mail_finds_it_made(brain, mail):
    brain.close()
    with throw_away_brain(Settings.load(environment="embedded"), mail) as again:
        assert again.settings.db_path == brain.settings.db_path
        assert again.stats().total_documents == brain.stats().total_documents


def test_a_file_that_was_deleted_is_forgotten_and_its_copy_takes_its_place(brain, mail):
    before = brain.stats().total_documents
    brain.close()
    (mail / SLIP).unlink()
    next(mail.glob("2025-09-12-heron-highlights*")).unlink()
    with throw_away_brain(Settings.load(environment="embedded"), mail) as again:
        assert again.stats().total_documents == before - 1
        assert all(source.subject != "Field Trip Permission Slip" for source in again.ranked("field trip permission"))
        (kept,) = by_email(again, mail, questions(*(path.name for path in mail.glob("2025-09-12-heron*"))))
        assert "" not in kept.gold


@pytest.mark.parametrize(
    "more",
    [{"timezone": "Asia/Tokyo"}, {"embed_document_prefix": "doc: "}, {"newsletter_senders": "school.example"}],
)
def test_a_trial_that_would_be_made_otherwise_is_another(brain, mail, more):
    with throw_away_brain(Settings.load(environment="embedded", **more), mail) as other:
        assert other.settings.db_path != brain.settings.db_path


def test_a_trial_that_fails_leaves_nothing_open(mail, monkeypatch):
    opened = []

    def fail(brain, *_, **__):
        opened.append(brain.catalog.store)
        brain.catalog.store.collection(create=True)
        raise StoreError("x")

    monkeypatch.setattr(Brain, "ingest", fail)
    with pytest.raises(StoreError):
        throw_away_brain(Settings.load(environment="embedded"), mail)
    assert opened[0]._client is None


def test_a_calibration_from_labels_is_kept_and_used(brain, mail):
    asked = "How much did the water heater cost?"
    labelled = [LabelledQuestion(asked, frozenset({WATER}))] * 3 + [LabelledQuestion("Who sells tubas?", frozenset())]
    before = brain.ranked(asked)[0].score
    kept = calibrate(brain, by_email(brain, mail, labelled))
    assert brain.calibration == kept
    assert kept.model == "all-minilm"
    assert brain.ranked(asked)[0].score != before


def test_a_calibration_from_the_mail_itself_is_kept(brain):
    kept = brain.calibrate()
    assert brain.calibration == kept
    assert 0 < kept.cosine_mean < 0.4


def test_the_command_prints_one_object(mail, tmp_path, monkeypatch, command):
    rows = [
        {"question": "What do the kids need for the field trip?", "gold": [SLIP], "keys": ["$5"], "kind": "plain"},
        {"question": "Who sells tubas?", "gold": [], "kind": "far"},
    ]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.setenv("BRAIN_ENV", "embedded")

    def run(*words):
        code, out, _ = command("eval", "--mail", mail, tmp_path / "set.jsonl", *words)
        assert code == 0
        return out

    printed = run("--json", "--answers")
    figures = json.loads(printed)
    assert (figures["n_answerable"], figures["n_unanswerable"]) == (1, 1)
    assert figures["recall_at_1"] == figures["refused_unanswerable"] == figures["key_facts"] == 1.0
    assert set(figures["by_kind"]) == {"plain", "far"}
    (tmp_path / "before.json").write_text(printed)
    assert "was    1.000" in run("--baseline", str(tmp_path / "before.json"))
