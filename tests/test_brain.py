"""The brain as callers hold it: in notebooks, in threads, in other event loops, beside other processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvloop
from household import HOUSEHOLD, SLIP, fill, held_elsewhere, mail, settings_for

from brain_pipeline import Settings, open_brain
from brain_pipeline.brain import Brain
from brain_pipeline.errors import StoreLocked
from brain_pipeline.models import default_prefixes
from brain_pipeline.records import Skip
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

QUESTION = "What do we need for the zoo field trip?"


@pytest.fixture
def settings(tmp_path):
    return Settings.load(data_dir=tmp_path, timezone="America/Chicago")


@pytest.fixture
def brain(settings):
    with fill(Brain(settings, embedder=HashedTokenEmbedder(), llm=ScriptedLLM("A slip and $5."))) as filled:
        yield filled


def test_asking_without_await(brain):
    assert str(brain.query(QUESTION)).startswith("A slip and $5.\nFound in: Field Trip Permission Slip, 2025-09-15")


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_asking_inside_a_running_loop(brain, run):
    async def cell():
        return brain.query(QUESTION), await brain.aquery(QUESTION)

    assert {answer.text for answer in run(cell())} == {"A slip and $5."}


def test_a_script_that_closes_nothing_comes_to_its_end(settings, brain):
    brain.close()
    script = (
        "from brain_pipeline import Settings; from brain_pipeline.brain import Brain\n"
        "from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM\n"
        f"settings = Settings.load(data_dir={str(settings.data_dir)!r})\n"
        "brain = Brain(settings, embedder=HashedTokenEmbedder(), llm=ScriptedLLM('A slip.'))\n"
        f"print(brain.query({QUESTION!r}))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)  # noqa: S603
    assert run.stdout.startswith("A slip.\nFound in: Field Trip Permission Slip")


def test_asking_from_one_loop_after_another_and_from_threads(ollama):
    with fill(Brain(settings_for(ollama.url))) as brain:
        for _ in range(3):
            assert asyncio.run(brain.aquery(QUESTION)).text == ollama.reply
        with ThreadPoolExecutor(4) as pool:
            assert {answer.text for answer in pool.map(brain.query, [QUESTION] * 12)} == {ollama.reply}


def test_a_closed_brain_opens_again(ollama):
    with fill(Brain(settings_for(ollama.url))) as brain:
        first = brain.query(QUESTION)
        brain.close()
        assert brain.query(QUESTION).sources == first.sources


def test_two_brains_on_one_database_in_one_process_are_one_owner(brain, settings):
    with open_brain(settings) as again:
        assert again.stats().total_documents == brain.stats().total_documents == 4


def test_two_brains_in_one_process_stay_apart(brain, tmp_path):
    with Brain(Settings.load(data_dir=tmp_path / "other"), embedder=HashedTokenEmbedder()) as other:
        assert other.stats().total_documents == 0
        assert brain.stats().total_documents == 4


def test_another_process_is_told_who_holds_the_database(brain, settings):
    brain.close()
    with held_elsewhere(settings) as holder:
        with pytest.raises(StoreLocked, match=f"process {holder.pid}") as caught:
            brain.query(QUESTION)
        assert caught.value.owner.pid == holder.pid != os.getpid()
        holder.kill()  # a killed owner leaves no lock behind
        holder.join()
        assert brain.query(QUESTION).sources


def test_the_models_of_a_collection_are_remembered(ollama):
    with fill(Brain(settings_for(ollama.url))) as brain:
        assert brain.prefixes == default_prefixes("nomic-embed-text") == ("search_query: ", "search_document: ")
        sent = [request.body["input"] for request in ollama.requests if request.path == "/api/embed"]
        assert all(text.startswith("search_document: ") for texts in sent for text in texts)
        ollama.requests.clear()
        brain.query(QUESTION)
        assert ollama.requests[0].body["input"] == [f"search_query: {QUESTION}"]
    with Brain(settings_for(ollama.url, embed_query_prefix="")) as brain:
        assert brain.prefixes == ("", "search_document: ")


def test_another_program_s_collection_gets_no_prefix(other_programs, tmp_path):
    settings = other_programs.settings("chroma-0.5.23-cosine", tmp_path, embed_model="nomic-embed-text")
    with Brain(settings) as brain:
        assert brain.prefixes == ("", "")


def test_ingesting_again_changes_nothing(brain, settings):
    def everything():
        got = brain.catalog.store.collection().get(include=["embeddings", "metadatas", "documents"])
        rows = zip(got["ids"], got["documents"], got["metadatas"], got["embeddings"].tolist(), strict=True)
        return sorted(rows, key=lambda row: row[0])

    before = everything()
    again = brain.ingest_mails([("x", each) for each in HOUSEHOLD])
    assert (again.new, again.updated, again.unchanged) == (0, 0, 4)
    assert everything() == before


def test_a_changed_mail_replaces_all_its_chunks(brain):
    long = mail("Plan", "The plan for the spring fair begins. " * 200)
    assert brain.ingest_mails([("x", long)]).new == 1
    many = brain.stats().total_chunks
    short = mail("Plan", "The fair is off.")
    report = brain.ingest_mails([("x", short)])
    assert (report.new, report.updated) == (0, 1)
    assert brain.stats().total_chunks == 5 < many
    assert brain.catalog.keywords().count() == 5
    assert "off" in brain.query("Is the spring fair plan off?").sources[0].passage


def test_a_copy_under_another_id_is_the_same_email(brain):
    copy = mail(SLIP.subject, SLIP.text, message_id="<copy@school.example>")
    assert brain.ingest_mails([("x", copy)]).unchanged == 1
    assert brain.stats().total_documents == 4


def test_what_can_t_be_read_is_counted_by_name(brain):
    report = brain.ingest_mails([("box#3", Skip("no text")), ("box#4", mail("New", "Something new."))])
    assert (report.new, report.skipped, report.total) == (1, [("box#3", "no text")], 2)


def test_the_keyword_index_follows_rows_that_others_add_and_remove(brain):
    collection = brain.catalog.store.collection()
    first = collection.get()["ids"][0]
    vector = HashedTokenEmbedder().get_text_embedding("The dog sees the vet on Monday")
    collection.add(
        ids=["theirs"],
        documents=["The dog sees the vet on Monday"],
        metadatas=[{"subject": "Vet", "date": "2025-09-01"}],
        embeddings=[vector],
    )
    collection.delete(ids=[first])
    collection.add(ids=["theirs-2"], documents=["x"], metadatas=[{"subject": "X"}], embeddings=[vector])
    brain.close()
    assert brain.catalog.keywords().ids() == brain.catalog.store.ids()
    assert brain.query("When does the dog see the vet?").sources[0].subject == "Vet"


def test_a_damaged_keyword_index_is_made_again(brain, settings):
    brain.close()
    (file,) = settings.db_path.glob("brain.keywords.*.sqlite3")
    file.write_bytes(b"not a database" * 500)
    assert brain.stats().total_documents == 4
    assert brain.query(QUESTION).sources
