"""An ingestion that is killed at any moment is finished by running it again, as if it had never been killed."""

from __future__ import annotations

import multiprocessing
import random
import time

import pytest
from household import mail

from brain_pipeline.brain import Brain
from brain_pipeline.errors import StoreLocked
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder


def mails():
    """120 mails of one to nine chunks, some of them copies of others under another id."""
    for number in range(120):
        text = f"Mail {number} about the plan {number % 7}. " * (1 + number * 7 % 90)
        yield mail(f"Plan {number}", text, message_id=f"<{number}@plan.example>")
        if number % 10 == 0:
            yield mail(f"Plan {number}", text, message_id=f"<copy-{number}@plan.example>")


def settings_at(path):
    return Settings.load(chroma_db_path=path, timezone="UTC")


def run(path, pause=0.0):
    class Slow(HashedTokenEmbedder):
        def _get_text_embeddings(self, texts):
            time.sleep(pause)
            return super()._get_text_embeddings(texts)

    with Brain(settings_at(path), embedder=Slow(dimension=32, embed_batch_size=4)) as brain:
        return brain.ingest_mails([("x", each) for each in mails()])


def contents(path):
    with Brain(settings_at(path)) as brain:
        got = brain.catalog.store.collection().get(include=["embeddings", "metadatas", "documents"])
        rows = zip(got["ids"], got["documents"], got["metadatas"], got["embeddings"].tolist(), strict=True)
        assert brain.catalog.keywords().ids() == set(got["ids"])
        return sorted(rows, key=lambda row: row[0])


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "chroma"
    run(path)
    return contents(path)


def kill_and_finish(path, kills, seed):
    chance = random.Random(seed)
    context = multiprocessing.get_context("fork")
    for _ in range(kills):
        child = context.Process(target=run, args=(path, 0.005))
        child.start()
        child.join(chance.uniform(0.01, 0.8))
        child.kill()
        child.join()
    run(path)


def test_killed_and_run_again_equals_never_killed(tmp_path, uninterrupted):
    kill_and_finish(tmp_path / "chroma", kills=6, seed=7)
    assert contents(tmp_path / "chroma") == uninterrupted


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(20))
def test_killed_a_hundred_times(tmp_path, uninterrupted, seed):
    kill_and_finish(tmp_path / "chroma", kills=5, seed=seed)
    assert contents(tmp_path / "chroma") == uninterrupted


def _ingest_and_tell(path, results):
    try:
        results.put(run(path, 0.05).new)
    except StoreLocked as error:
        results.put(str(error))


def test_two_writers_never_happen(tmp_path, uninterrupted):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    writers = [context.Process(target=_ingest_and_tell, args=(tmp_path / "chroma", results)) for _ in range(2)]
    for writer in writers:
        writer.start()
    got = sorted((results.get(timeout=60) for _ in writers), key=str)
    for writer in writers:
        writer.join()
    assert 120 in got
    other = next(result for result in got if result != 120) if got.count(120) == 1 else 0
    assert other == 0 or "is in use by process" in str(other)
    assert contents(tmp_path / "chroma") == uninterrupted


def test_index_files_that_a_killed_process_left_half_made_are_no_damage(tmp_path, uninterrupted):
    run(tmp_path / "chroma")
    (header,) = (tmp_path / "chroma").glob("*/header.bin")
    header.write_bytes(b"")
    assert contents(tmp_path / "chroma") == uninterrupted
