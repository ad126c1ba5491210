"""A database that can't be used: a clear sentence, a 503, and nothing made worse."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import chromadb
import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from household import HOUSEHOLD, fill, mail

from api import create_app
from brain_pipeline.brain import Brain
from brain_pipeline.doctor import diagnose
from brain_pipeline.errors import ConfigError, StoreError
from brain_pipeline.index.chroma import _only_errors_of_chroma, foreign_errors
from brain_pipeline.index.hnsw import damage
from brain_pipeline.index.store import Store
from brain_pipeline.records import NOT_FOUND, UNAVAILABLE
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

QUESTION = "What do we need for the zoo field trip?"
ROOT = Path(__file__).parents[1]


def brain_in(folder, **more):
    settings = Settings.load(chroma_db_path=folder, warm_up=False, timezone="America/Chicago", **more)
    return Brain(settings, embedder=HashedTokenEmbedder(), llm=ScriptedLLM("A slip and $5."))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A database with a vector index on disk, which Chroma writes from a thousand rows on."""
    folder = tmp_path_factory.mktemp("whole") / "chroma"
    with brain_in(folder) as brain:
        fill(brain, [*HOUSEHOLD, *(mail(f"Note {n}", f"Note number {n} is about item {n}.") for n in range(1_050))])
    assert list(folder.rglob("header.bin"))
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "chroma"))


def garbage(path):
    path.write_bytes(bytes(byte ^ 0xA5 for byte in path.read_bytes()))


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 8])


def index_file(name):
    return lambda folder: next(folder.rglob(name))


def sqlite(statement):
    def change(folder):
        with closing(sqlite3.connect(folder / "chroma.sqlite3")) as database, database:
            database.execute(statement)

    return change


def middle(folder):
    path = folder / "chroma.sqlite3"
    data = bytearray(path.read_bytes())
    for at in range(200_000, 220_000):
        data[at] ^= 0xA5
    path.write_bytes(data)


FUTURE = "INSERT INTO migrations SELECT 'sysdb', 99, '00099-x.sqlite.sql', 'CREATE TABLE x (y)', 'hash'"
# How it is broken, and what the sentence says of it.
FAULTS = {
    "header": (lambda folder: garbage(index_file("header.bin")(folder)), "vector index"),
    "short header": (lambda folder: cut(index_file("header.bin")(folder)), "vector index"),
    "vectors": (lambda folder: garbage(index_file("data_level0.bin")(folder)), "vector index"),
    "short vectors": (lambda folder: cut(index_file("data_level0.bin")(folder)), "vector index"),
    "no vectors": (lambda folder: index_file("data_level0.bin")(folder).unlink(), "vector index"),
    "short lengths": (lambda folder: cut(index_file("length.bin")(folder)), "vector index"),
    "links": (lambda folder: garbage(index_file("link_lists.bin")(folder)), "vector index"),
    "short links": (lambda folder: cut(index_file("link_lists.bin")(folder)), "vector index"),
    "labels": (lambda folder: garbage(index_file("*.pickle")(folder)), "vector index"),
    "no labels": (lambda folder: index_file("*.pickle")(folder).unlink(), "vector index"),
    "no index": (lambda folder: shutil.rmtree(index_file("header.bin")(folder).parent), "vector index"),
    "file": (lambda folder: garbage(folder / "chroma.sqlite3"), "file is damaged"),
    "short file": (lambda folder: cut(folder / "chroma.sqlite3"), "file is damaged"),
    "middle of the file": (middle, "file is damaged"),
    "empty file": (lambda folder: (folder / "chroma.sqlite3").write_bytes(b""), "is empty"),
    "no table": (sqlite("DROP TABLE embeddings"), "file is damaged"),
    "no segments": (sqlite("DELETE FROM segments"), "file is damaged"),
    "newer": (sqlite(FUTURE), "newer Chroma"),
    "other": (sqlite("UPDATE migrations SET hash = 'other'"), "another version of Chroma"),
}


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.bin")}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_database_is_a_503_with_a_sentence_and_not_made_worse(folder, fault, caplog):
    break_it, words = FAULTS[fault]
    words = "a file of it damaged" if break_it is middle else words  # Chroma does not say what it met
    break_it(folder)
    before = contents(folder)
    with brain_in(folder) as brain, TestClient(create_app(brain=brain)) as client:
        for _ in range(2):  # Chroma keeps what it half opened
            response = client.get("/brain/query", params={"q": QUESTION})
            assert (response.status_code, response.json()["answer"]) == (503, UNAVAILABLE)
            assert int(response.headers["Retry-After"]) > 0
        assert client.get("/healthz").status_code == 200
        assert client.get("/brain/stats").status_code in (200, 503)
    assert words in caplog.text
    assert str(folder) in caplog.text
    assert contents(folder) == before


@pytest.mark.parametrize("fault", FAULTS)
def test_doctor_finds_it_and_says_what_to_do(folder, fault):
    break_it, words = FAULTS[fault]
    break_it(folder)
    settings = Settings.load(chroma_db_path=folder, llm_provider="excerpts", embed_provider="embedded")
    found = next(finding for finding in diagnose(settings) if not finding.ok)
    assert words in found.remedy
    assert any(advice in found.remedy for advice in ("brain restore", "pip install", "Use that version"))


def test_a_whole_database_is_whole(whole, other_programs):
    folders = [file.parent for root in (whole, other_programs.folder) for file in root.rglob("header.bin")]
    assert len(folders) > 3
    assert {damage(folder) for folder in folders} == {""}


@pytest.mark.parametrize("space", ["l2", "ip", "cosine"])
def test_an_index_of_any_space_with_deleted_rows_is_whole(space, tmp_path):
    vectors = np.random.default_rng(0).normal(size=(2_500, 8)).astype(np.float32)
    ids = [str(number) for number in range(len(vectors))]
    client = chromadb.PersistentClient(tmp_path / "chroma")
    try:
        made = client.create_collection("family_knowledge", configuration={"hnsw": {"space": space}})
        for start in range(0, len(ids), 500):
            made.add(ids=ids[start : start + 500], embeddings=vectors[start : start + 500])
        made.delete(ids=ids[:400])
    finally:
        client.close()
    if space != "cosine":  # hnswlib writes what its memory held
        lengths = next(tmp_path.rglob("length.bin"))
        lengths.write_bytes(np.full(lengths.stat().st_size // 4, -np.nan, np.float32).tobytes())
    store = Store(Settings.load(chroma_db_path=tmp_path / "chroma"))
    try:
        store.check()
        assert store.count() == 2_100
        assert next(iter(store.nearest(vectors[-1], 50))) == ids[-1]
    finally:
        store.close()


def test_an_index_that_was_never_written_is_whole(tmp_path):
    assert damage(tmp_path) == ""
    assert damage(tmp_path, written=True) == "its files are gone"


def test_a_restored_file_is_used_by_the_same_process(folder):
    path = folder / "chroma.sqlite3"
    good = path.read_bytes()
    garbage(path)
    with brain_in(folder) as brain:
        with pytest.raises(StoreError):
            brain.query(QUESTION)
        path.write_bytes(good)
        assert brain.query(QUESTION).sources


def test_a_collection_that_is_dropped_under_us(folder):
    with brain_in(folder) as brain:
        assert brain.query(QUESTION).sources
        client = brain.catalog.store._client
        client.delete_collection("family_knowledge")
        assert brain.query(QUESTION).text == NOT_FOUND
        assert brain.stats().total_documents == 0
        fill(brain)
        assert brain.query(QUESTION).sources
        assert brain.stats().total_documents == len(HOUSEHOLD)


def test_a_collection_that_is_made_anew_under_us(folder):
    with brain_in(folder) as brain:
        assert brain.stats().total_documents > 1_000
        client = brain.catalog.store._client
        client.delete_collection("family_knowledge")
        vector = HashedTokenEmbedder().get_text_embedding("zoo field trip")
        anew = client.create_collection("family_knowledge", embedding_function=None)
        anew.add(ids=["1"], documents=["The zoo field trip"], metadatas=[{"subject": "Zoo"}], embeddings=[vector])
        assert [source.subject for source in brain.query(QUESTION).sources] == ["Zoo"]
        assert brain.stats().total_documents == 1


class PanicException(BaseException):
    """What pyo3 raises when Rust code panics; it is no ``Exception``."""


PanicException.__module__ = "pyo3_runtime"


def test_a_panic_in_chroma_is_a_503(folder, monkeypatch):
    def panic(*_, **__):
        raise PanicException("called `Option::unwrap()` on a `None` value")

    with brain_in(folder) as brain, TestClient(create_app(brain=brain)) as client:
        monkeypatch.setattr(brain.catalog.store.collection(), "count", panic)
        assert client.get("/brain/stats").status_code == 503
        assert client.get("/brain/stats").status_code == 200


def test_being_stopped_is_not_a_database_fault():
    with pytest.raises(KeyboardInterrupt), foreign_errors("x"):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk is full"),
        (OSError(errno.EFBIG, "File too large"), "disk is full"),
        (sqlite3.OperationalError("database or disk is full"), "disk is full"),
        (OSError(errno.EROFS, "Read-only file system"), "can't be written"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "can't be written"),
        (RuntimeError("something else"), "RuntimeError"),
    ],
)
def test_what_is_said_of_what_goes_wrong(error, words):
    with pytest.raises(StoreError, match=words) as caught, foreign_errors("/srv/brain"):
        raise error
    assert caught.value.__cause__ is error
    assert "/srv/brain" in str(caught.value)


# What only another process can show: a full disk, a disk that can't be written.

CHILD = """
import json, resource, signal, sys
sys.path[:0] = json.loads(sys.argv[1])
from test_store_faults import QUESTION, brain_in
from household import fill, mail
from pathlib import Path
from brain_pipeline.errors import BrainError
limit = int(sys.argv[3])
if limit:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
mails = [mail(f"More {n}", f"More of item {n} for the fair. " * 40) for n in range(300)]
said = []
with brain_in(Path(sys.argv[2])) as brain:
    for act in (lambda: fill(brain, mails), lambda: brain.query(QUESTION)):
        try:
            act()
            said.append("")
        except BrainError as error:
            said.append(f"{type(error).__name__}: {error}")
print(json.dumps(said))
"""


def in_another_process(folder, *, limit=0, before=()):
    paths = json.dumps([str(ROOT / "tests"), str(ROOT)])
    command = [*before, sys.executable, "-c", CHILD, paths, str(folder), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_disk_that_fills_up_loses_nothing(folder):
    with brain_in(folder) as brain:
        held = brain.stats().total_documents
    largest = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    filling, _ = in_another_process(folder, limit=largest + 200_000)
    assert "its disk may be full" in filling
    with brain_in(folder) as brain:  # there is room again
        assert brain.stats().total_documents >= held
        brain.catalog.store.check()
        assert brain.query(QUESTION).sources
        mails = [mail(f"More {n}", f"More of item {n} for the fair. " * 40) for n in range(300)]
        fill(brain, mails)
        assert brain.stats().total_documents == held + 300
        assert brain.catalog.keywords().ids() == brain.catalog.store.ids()


def test_a_disk_that_can_t_be_written(folder):
    mounted = f'mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} && exec "$@"'
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted, "sh"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], check=False).returncode:  # noqa: S603
        pytest.skip("mounting needs user namespaces")
    before = contents(folder)
    for said in in_another_process(folder, before=alone):
        assert said.startswith("StoreError")
        assert "can't be written" in said
    assert contents(folder) == before


# A Chroma server.


@pytest.fixture
def silent():
    """A server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("kind", ["silent", "nobody", "black_hole"])
def test_a_chroma_server_that_hangs_is_not_waited_for(kind, request):
    settings = Settings.load(chroma_url=request.getfixturevalue(kind), chroma_timeout=0.3)
    brain = Brain(settings, embedder=HashedTokenEmbedder(), llm=ScriptedLLM("x"))
    with brain, TestClient(create_app(brain=brain)) as client:
        began = time.monotonic()
        responses = [client.get("/brain/stats"), client.get("/brain/query", params={"q": QUESTION})]
        assert time.monotonic() - began < 5
    assert [response.status_code for response in responses] == [503, 503]


@pytest.fixture
def chroma_server(tmp_path):
    program = Path(sys.executable).with_name("chroma")
    if not program.exists():
        pytest.skip("Chroma's server is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "ANONYMIZED_TELEMETRY": "False"}
    command = [program, "run", "--path", tmp_path / "server", "--host", "127.0.0.1", "--port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, **quiet, env=environment)  # noqa: S603
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", server
    finally:
        server.kill()
        server.wait()


def test_a_chroma_server_answers_and_its_end_is_a_503(chroma_server):
    url, process = chroma_server
    settings = Settings.load(chroma_url=url, chroma_timeout=3)
    with Brain(settings, embedder=HashedTokenEmbedder(), llm=ScriptedLLM("A slip.")) as brain:
        fill(brain)
        assert brain.query(QUESTION).sources
        process.kill()
        process.wait()
        with pytest.raises(StoreError, match="does not answer"):
            brain.query(QUESTION)


class Answering(BaseHTTPRequestHandler):
    status, body = 200, b"<html>hello</html>"

    def do_GET(self):
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        pass


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (502, b"<html>Bad Gateway</html>", "answers with the HTTP status 502"),
        (500, b'{"error": "NewError", "message": "x"}', "answers with the HTTP status 500"),
        (404, b"[]", "answers with the HTTP status 404"),
        (500, b'{"error": "InternalError", "message": "disk I/O error"}', "reports InternalError"),
        (200, b"<html>hello</html>", "is not Chroma's"),
    ],
)
def test_what_is_said_of_a_server_that_is_not_well(status, body, words):
    answering = type("Answering", (Answering,), {"status": status, "body": body})
    with ThreadingHTTPServer(("127.0.0.1", 0), answering) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            with pytest.raises(StoreError, match=f"The Chroma server {url} can't be used: .*{words}.*CHROMA_URL"):
                Store(Settings.load(chroma_url=url, chroma_timeout=3)).count()
        finally:
            server.shutdown()


def test_a_proxy_s_error_page_in_mid_use_is_no_plain_exception():
    response = httpx.Response(502, text="Bad Gateway", request=httpx.Request("GET", "http://127.0.0.1"))
    with pytest.raises(StoreError, match="502"), foreign_errors("http://127.0.0.1", server=True):
        _only_errors_of_chroma(response)


@pytest.mark.parametrize("url", ["localhost:8000", "127.0.0.1", "http://", "ftp://pc.lan", "http://pc.lan/chroma"])
def test_a_server_s_address_that_is_none_is_refused_with_an_example(url):
    with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:8000"):
        Settings.load(chroma_url=url)


def test_questions_go_on_while_many_threads_meet_the_same_fault(folder):
    garbage(folder / "chroma.sqlite3")
    errors = []

    def ask(brain):
        try:
            brain.query(QUESTION)
        except StoreError as error:
            errors.append(error)

    with brain_in(folder) as brain:
        threads = [threading.Thread(target=ask, args=(brain,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(errors) == 8
