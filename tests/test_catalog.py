"""The collection and its keyword index stay in step, whoever writes and whatever fails."""

from __future__ import annotations

import threading
import time
from datetime import date

import numpy as np
import pytest
from household import BAKE, HOUSEHOLD, SLIP, fill, mail, settings_for
from llama_index.core.schema import TextNode
from ollama_server import Fault

from brain_pipeline.brain import Brain
from brain_pipeline.errors import ConfigError, StoreError
from brain_pipeline.index import store
from brain_pipeline.index.sqlite import Database
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder

EMBEDDER = HashedTokenEmbedder()


@pytest.fixture
def settings(tmp_path):
    return Settings.load(chroma_db_path=tmp_path / "chroma", timezone="America/Chicago")


@pytest.fixture
def brain(settings):
    with Brain(settings, embedder=EMBEDDER) as made:
        yield made


def foreign(brain, rows, **how):
    """Rows that another program writes into the collection."""
    collection = brain.catalog.store.collection(create=True)
    collection.add(
        ids=[id_ for id_, _, _ in rows],
        documents=[text for _, text, _ in rows],
        metadatas=[metadata for _, _, metadata in rows],
        embeddings=[EMBEDDER.get_text_embedding(text) for _, text, _ in rows],
        **how,
    )
    return collection


def subjects(brain, question):
    return [source.subject for source in brain.ranked(question)]


def test_a_write_that_fails_is_made_good_by_the_next_run_in_the_same_process(brain, monkeypatch):
    fill(brain, [BAKE])

    def full(*_):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(brain.catalog.store, "upsert", full)
        with pytest.raises(StoreError):
            brain.ingest_mails([("x", SLIP)])
    assert brain.stats().total_documents == 1
    assert brain.ingest_mails([("x", SLIP)]).new == 1
    assert subjects(brain, SLIP.text)[0] == SLIP.subject


def test_a_mail_of_which_only_some_chunks_were_written_is_written_again(brain, monkeypatch):
    long = mail("Long", "The otters of the zoo have a plan for the spring. " * 150)
    monkeypatch.setattr(store, "PAGE", 2)
    whole = store.Store.upsert

    def dies_after_a_page(self, rows, vectors):
        whole(self, rows[:2], vectors[:2])
        raise StoreError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(store.Store, "upsert", dies_after_a_page)
        with pytest.raises(StoreError):
            brain.ingest_mails([("x", long)])
    brain.close()
    assert brain.ingest_mails([("x", long)]).new == 1
    (first,) = brain.catalog.store.get([row.id for row in brain.catalog.store.rows() if row.id.endswith("-0")])
    assert brain.stats().total_chunks == first.metadata["chunk_count"]


def test_rows_that_come_and_go_while_the_brain_is_open_are_noticed(brain):
    fill(brain)
    collection = foreign(brain, [("theirs", "The dog sees the vet on Monday", {"subject": "Vet"})])
    assert subjects(brain, "When does the dog see the vet?")[0] == "Vet"
    collection.delete(ids=["theirs"])
    assert "Vet" not in subjects(brain, "When does the dog see the vet?")
    node = TextNode(text="The tuba lesson is at noon", metadata={"subject": "Tuba", "date": "2025-09-01"})
    brain.index.insert_nodes([node])
    assert subjects(brain, "When is the tuba lesson?")[0] == "Tuba"


def test_a_swap_that_keeps_the_number_of_rows_is_noticed_at_the_next_opening(brain):
    fill(brain)
    gone = next(iter(brain.catalog.store.ids()))
    brain.catalog.store.collection().delete(ids=[gone])
    foreign(brain, [("theirs", "The dog sees the vet on Monday", {"subject": "Vet"})])
    brain.close()
    assert subjects(brain, "When does the dog see the vet?")[0] == "Vet"
    assert brain.catalog.keywords().ids() == brain.catalog.store.ids()


def test_the_order_of_numeric_dates_is_decided_by_all_rows(brain):
    rows = [(f"iso-{n}", f"Note {n}", {"subject": f"Note {n}", "date": "2025-01-02"}) for n in range(80)]
    rows += [("a", "The fair", {"subject": "Fair", "received": "04/03/2025"})]
    rows += [("b", "The play", {"subject": "Play", "received": "25/03/2025"})]
    foreign(brain, rows)
    for _ in range(2):
        assert {s.subject: s.day for s in brain.ranked("The fair")}["Fair"] == date(2025, 3, 4)
        brain.close()  # and it is remembered


def test_another_embedding_model_of_the_same_length_is_refused(brain, settings):
    fill(brain)
    brain.close()
    other = settings.model_copy(update={"embed_model": "mxbai-embed-large"})
    with Brain(other, embedder=EMBEDDER) as wrong, pytest.raises(ConfigError, match="nomic-embed-text"):
        wrong.ingest_mails([("x", mail("New", "Something new."))])
    same = settings.model_copy(update={"embed_model": "nomic-embed-text:latest"})
    with Brain(same, embedder=EMBEDDER) as right:
        assert right.ingest_mails([("x", mail("New", "Something new."))]).new == 1


@pytest.mark.parametrize("about", [None, {"made": "by hand"}, {"hnsw:space": "cosine"}])
def test_prefixes_before_and_after_an_empty_collection_is_filled_are_the_same(ollama, about):
    with Brain(settings_for(ollama.url)) as brain:
        brain.catalog.store.collection(create=True, remember=about)
        before = brain.prefixes
        fill(brain)
        brain.close()
        assert brain.prefixes == before
        assert brain.ranked("What do we need for the zoo trip?")[0].subject == SLIP.subject


def test_the_last_ingest_goes_with_the_collection(brain, settings):
    fill(brain)
    told = brain.stats().last_ingest
    assert told is not None
    brain.close()
    (file,) = settings.db_path.glob("brain.keywords.*.sqlite3")
    file.unlink()
    assert brain.stats().last_ingest == told
    brain.catalog.store._client.delete_collection(settings.collection)
    brain.close()
    foreign(brain, [("theirs", "x", {"subject": "X"})])
    assert brain.stats().last_ingest is None


def test_an_interrupted_ingest_says_that_mail_was_brought_in(ollama):
    with Brain(settings_for(ollama.url, embed_batch_size=1)) as brain:

        def until_the_server_fails():
            for number in range(60):
                yield "x", mail(f"Note {number}", f"Note {number} about the otters.")
                if number == 40:
                    ollama.fail(Fault.BROKEN, "/api/embed")

        with pytest.raises(Exception, match="status 500"):
            brain.ingest_mails(until_the_server_fails())
        assert 0 < brain.stats().total_documents < 60
        assert brain.stats().last_ingest is not None


def test_an_index_that_can_t_be_opened_for_another_reason_is_left_alone(brain, settings, monkeypatch):
    fill(brain)
    brain.close()

    def locked(*_):
        raise StoreError("database is locked")

    with monkeypatch.context() as patched:
        patched.setattr(Database, "_connect", locked)
        with pytest.raises(StoreError):
            brain.stats()
    assert list(settings.db_path.glob("brain.keywords.*.sqlite3"))
    (file,) = settings.db_path.glob("brain.keywords.*.sqlite3")
    file.unlink()
    file.mkdir()
    with pytest.raises(StoreError):
        brain.stats()


def test_nothing_is_forgotten_by_no_name(brain):
    fill(brain)
    foreign(brain, [("nameless", "x", {"chunk": 1})])
    assert brain.forget("") == 0
    assert brain.stats().total_chunks == len(HOUSEHOLD) + 1


def test_closing_waits_for_a_question_and_does_not_hang(ollama):
    ollama.fail(Fault.SLOW)
    ollama.delay = 0.5
    with fill_later(ollama) as brain:
        asking = threading.Thread(target=lambda: brain.query("What do we need for the zoo field trip?"))
        asking.start()
        time.sleep(0.2)
        closing = threading.Thread(target=brain.close)
        closing.start()
        closing.join(10)
        asking.join(10)
        assert not closing.is_alive()
        assert not asking.is_alive()


def fill_later(ollama):
    ollama.heal()
    brain = fill(Brain(settings_for(ollama.url, llm_read_timeout=5, embed_read_timeout=5, request_timeout=9)))
    brain.close()
    ollama.fail(Fault.SLOW)
    return brain


def test_an_empty_sample_has_no_rows(brain):
    rows, vectors = brain.catalog.store.sample(5)
    assert (rows, vectors.size) == ([], 0)
    fill(brain)
    rows, vectors = brain.catalog.store.sample(3)
    assert (len(rows), vectors.shape, vectors.dtype) == (3, (3, 384), np.float32)
