"""A database copied to a Chroma server: a real one, in a process of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import chromadb
import httpx
import numpy as np
import pytest
from household import HOUSEHOLD, fill, held_elsewhere
from service import Service

from brain_pipeline.brain import Brain
from brain_pipeline.errors import StoreError
from brain_pipeline.index import copying
from brain_pipeline.index.chroma import open_server
from brain_pipeline.index.copying import copy_collection
from brain_pipeline.index.store import COUNTED_FOR, Row, Store
from brain_pipeline.mail.mailboxes import iter_messages
from brain_pipeline.sample import sample_mail
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

WRITERS = (
    "chroma-0.4.24-l2-unnormalised",
    "chroma-0.5.23-cosine",
    "chroma-0.6.3-ip",
    "chroma-1.0.20-default-ef",
    "llamaindex-1.5.9-cosine",
)
EVERYTHING = ["embeddings", "documents", "metadatas"]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@contextmanager
def chroma_server(folder: Path) -> Iterator[str]:
    port = free_port()
    command = [Path(sys.executable).with_name("chroma"), "run", "--path", folder, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603  (Chroma's own)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                httpx.get(f"{url}/api/v2/heartbeat").raise_for_status()
            except httpx.HTTPError:
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.05)
            else:
                break
        yield url
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture
def empty_server(server) -> str:
    """The server without a collection."""
    with client_of(server) as client:
        for collection in client.list_collections():
            client.delete_collection(collection.name)
    return server


def client_of(url):
    return closing(open_server(Settings.load(chroma_url=url)))  # Chroma's own client leaves connections open


def rows_of(collection):
    found = collection.get(include=EVERYTHING)
    vectors = np.asarray(found["embeddings"], dtype=np.float32)
    return {
        id_: (vector, text, metadata or None)
        for id_, vector, text, metadata in zip(
            found["ids"], vectors, found["documents"], found["metadatas"], strict=True
        )
    }


def copied(settings, url):
    with closing(Store(settings)) as source, closing(Store(settings.model_copy(update={"chroma_url": url}))) as target:
        return copy_collection(source, target)


@pytest.fixture
def household(tmp_path):
    """Settings of a small database that the brain made."""
    settings = Settings.load(chroma_db_path=tmp_path / "chroma", timezone="America/Chicago", warm_up=False)
    with Brain(settings, embedder=HashedTokenEmbedder()) as brain:
        fill(brain)
    return settings


@pytest.mark.parametrize("name", WRITERS)
def test_whatever_a_program_wrote_arrives(name, other_programs, empty_server, tmp_path, monkeypatch):
    monkeypatch.setattr(copying, "PAGE", 7)  # several pages, the last not full
    settings = other_programs.settings(name, tmp_path)
    number = copied(settings, empty_server)
    with closing(Store(settings)) as source, client_of(empty_server) as client:
        before, after = rows_of(source.collection()), rows_of(client.get_collection("family_knowledge"))
    assert number == len(before) == len(after) > 80
    for id_, (vector, *others) in before.items():
        assert after[id_][1:] == tuple(others)
        assert np.allclose(after[id_][0], vector, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", WRITERS)
def test_the_copy_answers_as_the_original(name, other_programs, empty_server, tmp_path):
    settings = other_programs.settings(name, tmp_path)
    copied(settings, empty_server)
    asked = [question["question"] for question in other_programs.questions(name)]
    found = []
    for where in (settings, settings.model_copy(update={"chroma_url": empty_server})):
        with Brain(where, embedder=other_programs.embedder, llm=ScriptedLLM("yes")) as brain:
            found.append([[(s.id, round(s.score, 4)) for s in brain.ranked(question)[:3]] for question in asked])
    assert found[0] == found[1]


def test_rows_without_text_or_metadata_stay_so(empty_server, tmp_path):
    settings = Settings.load(chroma_db_path=tmp_path / "chroma")
    with closing(chromadb.PersistentClient(tmp_path / "chroma")) as client:
        made = client.create_collection("family_knowledge", embedding_function=None)
        made.add(ids=["bare"], embeddings=[[1.0, 2.0]])
        made.add(ids=["told"], embeddings=[[3.0, 4.0]], documents=["A text."], metadatas=[{"subject": "Zoo", "n": 3}])
    assert copied(settings, empty_server) == 2
    with client_of(empty_server) as client:
        rows = rows_of(client.get_collection("family_knowledge"))
    assert [(rows[id_][0].tolist(), *rows[id_][1:]) for id_ in ("bare", "told")] == [
        ([1.0, 2.0], None, None),
        ([3.0, 4.0], "A text.", {"subject": "Zoo", "n": 3}),
    ]


def test_a_copy_broken_off_is_finished_by_copying_again(household, empty_server, monkeypatch):
    monkeypatch.setattr(copying, "PAGE", 2)
    target = Store(household.model_copy(update={"chroma_url": empty_server}))

    class Stopped(Exception):
        pass

    def stop(done, total):
        raise Stopped

    with closing(Store(household)) as source, closing(target), pytest.raises(Stopped):
        copy_collection(source, target, stop)
    with client_of(empty_server) as client:
        half = client.get_collection("family_knowledge")
        assert half.count() == 2
        assert copied(household, empty_server) == len(HOUSEHOLD) == half.count()


def test_other_rows_on_the_server_are_left_alone(household, empty_server):
    with client_of(empty_server) as client:
        theirs = client.create_collection("family_knowledge", embedding_function=None)
        theirs.add(ids=["theirs"], embeddings=[[1.0] * 384], documents=["Somebody else's."])
        with pytest.raises(StoreError, match="holds 1 rows that the copied database does not have"):
            copied(household, empty_server)
        assert theirs.count() == 1


@pytest.mark.parametrize(
    "change",
    [{"documents": ["Another text."]}, {"metadatas": [{"subject": "Another"}]}, {"embeddings": [[1.0] * 384]}],
    ids=lambda change: next(iter(change)),
)
def test_a_row_that_differs_is_not_written_over(change, household, empty_server):
    copied(household, empty_server)
    with client_of(empty_server) as client:
        theirs = client.get_collection("family_knowledge")
        first = theirs.get(limit=1, include=["embeddings"])
        [one] = first["ids"]
        theirs.update(ids=[one], **{"embeddings": first["embeddings"], **change})  # else Chroma would make a vector
        gone = next(id_ for id_ in theirs.get()["ids"] if id_ != one)
        theirs.delete(ids=[gone])
        with pytest.raises(StoreError, match=r"1 rows of the collection .* differ"):
            copied(household, empty_server)
        assert theirs.get(ids=[gone])["ids"] == []


def test_nothing_is_nothing_to_copy(empty_server, tmp_path):
    with pytest.raises(StoreError, match=r"no mail in .* to copy"):
        copied(Settings.load(chroma_db_path=tmp_path / "none"), empty_server)
    assert not (tmp_path / "none").exists()


def test_the_command_copies_and_the_brain_answers_from_there(household, empty_server, command, monkeypatch):
    monkeypatch.setenv("CHROMA_DB_PATH", str(household.chroma_db_path))
    status, said, _ = command("copy", "--to", empty_server)
    assert status == 0
    assert f"copied {len(HOUSEHOLD)} chunks, read back and compared, to {empty_server}" in said
    moved = household.model_copy(update={"chroma_url": empty_server})
    with Brain(moved, embedder=HashedTokenEmbedder(), llm=ScriptedLLM("A slip and $5.")) as brain:
        assert brain.stats().total_documents == len(HOUSEHOLD)
        assert brain.query("What do we need for the zoo field trip?").sources[0].subject == "Field Trip Permission Slip"


@pytest.mark.parametrize("address", ["https://chroma.example.com", "nonsense", "http://127.0.0.1:9/path"])
def test_an_address_that_is_no_server_of_the_household_is_refused(address, command, household, monkeypatch):
    monkeypatch.setenv("CHROMA_DB_PATH", str(household.chroma_db_path))
    status, _, said = command("copy", "--to", address)
    assert status == 1
    assert said.startswith("brain: ")


def test_a_server_that_is_not_there_is_said(command, household, nobody, monkeypatch):
    monkeypatch.setenv("CHROMA_DB_PATH", str(household.chroma_db_path))
    status, _, said = command("copy", "--to", nobody)
    assert status == 1
    assert "does not answer" in said


def test_a_database_in_use_is_said(command, household, empty_server, monkeypatch):
    monkeypatch.setenv("CHROMA_DB_PATH", str(household.chroma_db_path))
    with held_elsewhere(household):
        status, _, said = command("copy", "--to", empty_server)
    assert status == 1
    assert str(household.chroma_db_path) in said


def test_two_services_answer_from_one_server(household, empty_server, tmp_path):
    copied(household, empty_server)
    shared = {"CHROMA_URL": empty_server, "BRAIN_WARM_UP": "false"}
    with (
        Service(free_port(), shared, tmp_path / "log") as one,
        Service(free_port(), shared, tmp_path / "log") as other,
    ):
        held = [httpx.get(f"{service.url}/brain/stats", timeout=30).json() for service in (one, other)]
    assert [each["total_documents"] for each in held] == [len(HOUSEHOLD)] * 2


def test_a_server_is_asked_for_its_rows_once_a_second_and_after_every_change(household, empty_server, monkeypatch):
    copied(household, empty_server)
    now = [100.0]
    monkeypatch.setattr("brain_pipeline.index.store.time.monotonic", lambda: now[0])
    with (
        closing(Store(household.model_copy(update={"chroma_url": empty_server}))) as store,
        closing(Store(household.model_copy(update={"chroma_url": empty_server}))) as other,
    ):
        assert store.collection() is not None
        before = store.count()
        rows, vectors = store.sample(1)
        other.upsert([Row("another", rows[0].text, rows[0].metadata)], vectors)
        assert store.count() == before
        now[0] += COUNTED_FOR
        assert store.count() == before + 1
        store.delete(["another"])
        assert store.count() == before


def test_whose_mail_is_whose_and_the_invitations_move_too(command, household, empty_server, monkeypatch):
    with Brain(household, embedder=HashedTokenEmbedder()) as brain:
        brain.ingest(iter_messages([sample_mail()]))
        brain.learn_assignment("domain:gulls.example", "Hazel")
        members, invitations = brain.members(), brain.catalog.invitations()
    assert invitations
    monkeypatch.setenv("CHROMA_DB_PATH", str(household.chroma_db_path))
    for _ in range(2):  # again is harmless
        assert command("copy", "--to", empty_server)[0] == 0
    with Brain(household.model_copy(update={"chroma_url": empty_server}), embedder=HashedTokenEmbedder()) as moved:
        assert moved.members() == members
        assert moved.catalog.invitations() == invitations
        moved.learn_assignment("sender:beatrix@lamb.example", "Sullivan")
    assert command("copy", "--to", empty_server)[0] == 0
    with Brain(household.model_copy(update={"chroma_url": empty_server}), embedder=HashedTokenEmbedder()) as moved:
        assert "Sullivan" in {member.name for member in moved.members()}
