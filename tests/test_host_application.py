"""The router in an application that has routes of its own, as the owner's service has."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import asynccontextmanager
from importlib.metadata import version
from types import SimpleNamespace

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from household import BAKE, PIANO, fill, settings_for
from llama_index.core.bridge.pydantic import PrivateAttr
from ollama_server import Fault

from api import brain_router, create_app, life, mount_brain, router, routes
from brain_pipeline.brain import Brain
from brain_pipeline.errors import ConfigError
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

OURS = {
    "/brain/emails",
    "/brain/events",
    "/brain/ingest",
    "/brain/members",
    "/brain/query",
    "/brain/query/stream",
    "/brain/source/{id}",
    "/brain/stats",
}


def host(*, with_brain: bool) -> FastAPI:
    life: list[str] = []

    @asynccontextmanager
    async def lifespan(_):
        life.append("started")
        yield
        life.append("stopped")

    app = FastAPI(title="Home", lifespan=lifespan)
    app.state.life = life

    @app.get("/vision/cameras")
    def cameras() -> list[str]:
        return ["door", "yard"]

    @app.post("/vision/frames/{camera}")
    def frame(camera: str, size: int = 3) -> dict[str, object]:
        return {"camera": camera, "size": size}

    @app.get("/system/state")
    async def state() -> dict[str, bool]:
        return {"home": True}

    @app.get("/event_graph/nodes")
    def nodes(limit: int = 10) -> dict[str, int]:
        return {"limit": limit}

    @app.get("/healthz")
    def healthz() -> str:
        return "the host's own"

    @app.get("/", include_in_schema=False)
    def dashboard() -> str:
        return "dashboard"

    if with_brain:
        app.include_router(router)
    return app


@pytest.fixture
def brain(ollama):
    with fill(Brain(settings_for(ollama.url))) as filled:
        yield filled


def test_every_route_of_the_host_stays_as_it_was(brain):
    alone, together = host(with_brain=False), host(with_brain=True)
    together.state.family_brain = brain
    schema, joint = alone.openapi(), together.openapi()
    assert {path: joint["paths"][path] for path in schema["paths"]} == schema["paths"]
    assert set(joint["paths"]) - set(schema["paths"]) == OURS
    assert schema["components"]["schemas"].items() <= joint["components"]["schemas"].items()
    calls = [
        ("GET", "/vision/cameras"),
        ("POST", "/vision/frames/door?size=9"),
        ("POST", "/vision/frames/door?size=big"),
        ("GET", "/system/state"),
        ("GET", "/event_graph/nodes?limit=0"),
        ("GET", "/event_graph/nodes?limit=x"),
        ("GET", "/healthz"),
        ("GET", "/"),
        ("GET", "/nowhere"),
        ("DELETE", "/system/state"),
    ]
    with TestClient(alone) as before, TestClient(together) as after:
        for method, path in calls:
            was, now = before.request(method, path), after.request(method, path)
            assert (now.status_code, now.content) == (was.status_code, was.content), path
            assert now.headers == was.headers, path
        assert after.get("/brain/stats").json()["total_documents"] == 4
    assert together.state.life == alone.state.life == ["started", "stopped"]


def test_the_host_s_shutdown_gives_the_database_back(brain):
    app = host(with_brain=True)
    app.state.family_brain = brain
    with TestClient(app) as client:
        client.get("/brain/stats")
    with Brain(brain.settings) as other:
        assert other.stats().total_documents == 4


def test_without_a_brain_of_its_own_the_host_gets_the_environment_s(monkeypatch, tmp_path):
    monkeypatch.setenv("CHROMA_DB_PATH", str(tmp_path / "none"))
    with TestClient(host(with_brain=True)) as client:
        assert client.get("/brain/stats").json()["db_path"] == str(tmp_path / "none")


def test_the_first_requests_share_one_brain(monkeypatch):
    made = []

    def slowly():
        made.append(object())
        time.sleep(0.1)
        return made[-1]

    monkeypatch.setattr(routes, "open_brain", slowly)
    request = SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace()), state=SimpleNamespace())

    async def at_once():
        return await asyncio.gather(*(routes.get_brain(request) for _ in range(5)))

    assert set(asyncio.run(at_once())) == set(made)
    assert len(made) == 1


@pytest.fixture
def two(tmp_path):
    """Two households: one has the sample of these tests, the other a single mail."""
    made = [
        Brain(
            settings_for("http://127.0.0.1:9", data_dir=tmp_path / name),
            embedder=HashedTokenEmbedder(),
            llm=ScriptedLLM(f"From {name}."),
        )
        for name in ("ours", "theirs")
    ]
    fill(made[0])
    fill(made[1], [BAKE, PIANO])
    yield made
    for brain in made:
        brain.close()


def test_mounting_leaves_every_route_of_the_host_as_it_was(brain):
    alone, together = host(with_brain=False), host(with_brain=False)
    mount_brain(together, brain=brain)
    schema, joint = alone.openapi(), together.openapi()
    assert {path: joint["paths"][path] for path in schema["paths"]} == schema["paths"]
    assert set(joint["paths"]) - set(schema["paths"]) == OURS
    with TestClient(together) as client:
        assert client.get("/brain/stats").json()["total_documents"] == 4
        assert client.get("/healthz").json() == "the host's own"
        assert client.post("/v1/chat/completions", json={"messages": []}).status_code == 404
        assert together.state.life == ["started"]
    assert together.state.life == ["started", "stopped"]
    assert not hasattr(together.state, "family_brain")
    with Brain(brain.settings) as other:  # the database was given back
        assert other.stats().total_documents == 4


def test_two_brains_under_two_prefixes(two):
    app = host(with_brain=False)
    mount_brain(app, brain=two[0], prefix="/ours")
    app.include_router(brain_router(brain=two[1], openai=True), prefix="/theirs")
    question = {"q": "What is for the zoo field trip?"}
    with TestClient(app) as client:
        assert [client.get(f"/{name}/brain/stats").json()["total_documents"] for name in ("ours", "theirs")] == [4, 2]
        assert client.get("/ours/brain/query", params=question).json()["answer"] == "From ours."
        assert client.get("/theirs/brain/query", params=question).json()["sources"] == []
        conversation = {"messages": [{"role": "user", "content": "When is the piano recital?"}]}
        said = client.post("/theirs/v1/chat/completions", json=conversation).json()["choices"][0]["message"]["content"]
        assert said == "From theirs.\n\nFound in: Piano recital, 2025-09-20"
    assert not any(brain.catalog.store.ownership._lock.is_locked for brain in two)


def test_two_applications_in_one_process(two):
    apps = [FastAPI(), FastAPI()]
    for app, brain in zip(apps, two, strict=True):
        mount_brain(app, brain=brain)
    with TestClient(apps[0]) as ours, TestClient(apps[1]) as theirs:
        assert [client.get("/brain/stats").json()["total_documents"] for client in (ours, theirs)] == [4, 2]


def test_mounting_by_settings_opens_nothing_until_it_is_asked(tmp_path):
    app = FastAPI()
    mount_brain(app, settings_for("http://127.0.0.1:9", data_dir=tmp_path / "none"))
    with TestClient(app) as client:
        assert client.get("/brain/stats").json()["total_documents"] == 0
    assert not (tmp_path / "none").exists()


def test_mounting_refuses_a_model_server_outside_the_household(tmp_path):
    with pytest.raises(ConfigError, match="outside the household"):
        mount_brain(FastAPI(), settings_for("http://8.8.8.8", data_dir=tmp_path))


class SlowToLoad(HashedTokenEmbedder):
    """Takes until ``loaded`` is set, and calls ``loading`` when it begins."""

    _loading: threading.Event = PrivateAttr(default_factory=threading.Event)
    _loaded: threading.Event = PrivateAttr(default_factory=threading.Event)

    def get_query_embedding(self, query):
        self._loading.set()
        assert self._loaded.wait(20)
        return super().get_query_embedding(query)


@pytest.mark.parametrize("patience", [20, 0.05])
def test_after_shutdown_the_database_is_closed_whatever_was_warming_up(patience, tmp_path, monkeypatch):
    settings = settings_for("http://127.0.0.1:9", chroma_db_path=tmp_path / "chroma", warm_up=True)
    with fill(Brain(settings, embedder=HashedTokenEmbedder(), llm=ScriptedLLM("x"))) as filled:
        assert filled.stats().total_documents == 4
    monkeypatch.setattr(life, "LONGEST_FAREWELL", patience)
    embedder = SlowToLoad()
    brain = Brain(settings, embedder=embedder, llm=ScriptedLLM("x"))
    with TestClient(create_app(brain=brain)):
        assert embedder._loading.wait(20)
        (warming,) = (thread for thread in threading.enumerate() if thread.name == "warm-up")
        threading.Timer(0.3, embedder._loaded.set).start()
    waited = not warming.is_alive()
    assert waited == (patience > 1)
    warming.join()
    assert brain.catalog.store._client is None
    assert not brain.catalog.store.ownership._lock.is_locked


def test_the_document_says_the_installed_version(brain):
    with TestClient(create_app(brain=brain)) as client:
        assert client.get("/openapi.json").json()["info"]["version"] == version("family-brain")


async def slow_question_and(app, then):
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        question = asyncio.create_task(client.get("/brain/query", params={"q": "What is for the zoo field trip?"}))
        await asyncio.sleep(0.3)
        return await then(client, question)


def test_a_slow_model_stalls_nobody_else(ollama):
    ollama.fail(Fault.SLOW, "/api/chat")
    ollama.delay = 1.5
    patient = settings_for(ollama.url, llm_read_timeout=20, request_timeout=30)

    async def others(client, question):
        answered = [await client.get(path) for path in ("/healthz", "/brain/stats") for _ in range(5)]
        assert not question.done()
        assert all(response.status_code == 200 for response in answered)
        return await question

    with fill(Brain(patient)) as brain:
        assert asyncio.run(slow_question_and(create_app(brain=brain), others)).status_code == 200


def test_a_client_that_hangs_up_cancels_the_model_s_call(brain, ollama):
    ollama.fail(Fault.SILENT, "/api/chat")
    app = create_app(brain=brain)
    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])
    sent = []

    async def receive():
        if message := next(messages, None):
            return message
        while not ollama.calls("/api/chat"):  # noqa: ASYNC110  (the server is in another thread)
            await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    async def request():
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/brain/query",
            "query_string": b"q=What+is+for+the+zoo+field+trip",
            "headers": [(b"host", b"127.0.0.1")],
            "app": app,
        }
        await asyncio.wait_for(app(scope, receive, send), timeout=0.9)  # well before the model's timeout
        for _ in range(100):
            if ollama.hang_ups:
                return
            await asyncio.sleep(0.01)

    asyncio.run(request())
    assert ollama.hang_ups == 1
    assert sent[0]["status"] == 499
