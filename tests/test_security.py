"""Who may ask, over real sockets where that matters."""

from __future__ import annotations

import asyncio
import io
import logging
import socket
import zipfile

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from household import fill, settings_for
from live import served
from ollama_server import Fault

import api.security
from api import create_app, router
from api.security import HEADERS, Security, require_token
from api.serve import run
from brain_pipeline.brain import Brain
from brain_pipeline.doctor import diagnose
from brain_pipeline.errors import ConfigError
from brain_pipeline.remote import RemoteBrain
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

TOKEN = "a-long-secret-of-the-house"  # noqa: S105
QUESTION = {"q": "What do we need for the zoo field trip?"}
PATHS = ["/brain/query", "/brain/stats", "/brain/query/stream", "/brain/source/x", "/answer", "/openapi.json", "/x"]


LLM = ScriptedLLM("A slip and $5.")


def a_brain(folder, **more):
    settings = Settings.load(data_dir=folder, allowed_hosts=("testserver",), warm_up=False, **more)
    return fill(Brain(settings, embedder=HashedTokenEmbedder(), llm=LLM))


@pytest.fixture(scope="module")
def brain(tmp_path_factory):
    with a_brain(tmp_path_factory.mktemp("brain")) as filled:
        yield filled


@pytest.fixture(scope="module")
def client(brain):
    with TestClient(create_app(brain=brain), base_url="http://127.0.0.1:8000") as started:
        yield started


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locked")
    with a_brain(folder, api_token=TOKEN) as brain, TestClient(create_app(brain=brain)) as client:
        yield client


# The name it is called by.


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1:8000", "127.0.0.1", "localhost:8000", "LOCALHOST", "[::1]:8000", "192.168.1.7:8000", "100.64.1.2"),
        *("testserver", "localhost.:8000", socket.gethostname(), f"{socket.gethostname()}.local:8000"),
    ],
)
def test_names_of_the_household(client, host):
    assert client.get("/brain/stats", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example", "93.184.215.14", ""),
        *("127.0.0.1@evil.example", "evil.example@127.0.0.1", "127.0.0.1/x", "[::1", "sub.localhost"),
    ],
)
@pytest.mark.parametrize("path", ["/", "/healthz", "/brain/stats", "/static/app.js"])
def test_a_foreign_name_reaches_nothing(client, host, path):
    refused = client.get(path, headers={"Host": host})
    assert refused.status_code == 400
    assert list(refused.json()) == ["detail"]


def test_more_names_are_a_setting(brain):
    settings = brain.settings.model_copy(update={"allowed_hosts": ("Brain.lan",)})
    with TestClient(create_app(settings, brain)) as client:
        assert client.get("/healthz", headers={"Host": "brain.LAN:80"}).status_code == 200
        assert client.get("/healthz", headers={"Host": "x.brain.lan"}).status_code == 400


# Other pages in the family's browsers.


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:3000", "https://localhost", ""])
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/brain/ingest"), ("GET", "/brain/stats"), ("OPTIONS", "/brain")]
)
def test_a_foreign_origin_is_refused(client, origin, method, path):
    response = client.request(method, path, headers={"Origin": origin})
    assert response.status_code == 403
    assert not [name for name in response.headers if name.startswith("access-control")]


def test_the_page_s_own_origin_passes(client):
    own = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}
    assert client.get("/brain/stats", headers=own).status_code == 200
    assert client.post("/brain/ingest", headers=own).status_code == 422


def test_what_a_foreign_page_loads_is_refused_and_a_link_is_not(client):
    before = LLM.calls
    image = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert client.get("/brain/query", params=QUESTION, headers=image).status_code == 403
    assert LLM.calls == before
    assert client.get("/", headers={**image, "Sec-Fetch-Mode": "navigate"}).status_code == 200


def test_no_response_lets_another_origin_read_it(client):
    for path in PATHS:
        response = client.get(path, params=QUESTION, headers={"Access-Control-Request-Method": "GET"})
        assert not [name for name in response.headers if name.startswith("access-control")]


# The token.


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", ""])
def test_another_address_than_loopback_needs_a_token(host):
    settings = Settings.load(host=host)
    for start in (require_token, create_app, lambda settings: run(Brain(settings))):
        with pytest.raises(ConfigError, match="BRAIN_API_TOKEN"):
            start(settings)
    require_token(Settings.load(host=host, api_token=TOKEN))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_loopback_needs_none(host):
    require_token(Settings.load(host=host))


@pytest.mark.parametrize("server", [("192.168.1.7", 8000), ("fd00::1", 8000, 0, 0), ("0.0.0.0", 8000)])
def test_an_application_that_someone_else_binds_elsewhere_answers_nobody(brain, server):
    app, sent = create_app(brain=brain), []

    async def receive():
        return {"type": "http.request"}

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"192.168.1.7")]
    scope = {"type": "http", "method": "GET", "path": "/brain/stats", "query_string": b"", "headers": headers}
    asyncio.run(app({**scope, "server": server, "app": app}, receive, send))
    assert sent[0]["status"] == 403


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN),
        *(f"Bearer {TOKEN.upper()}", "Bearer \xe9"),
    ],
)
def test_without_the_token_nothing_is_told(locked, path, header):
    before = LLM.calls
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    refused = locked.get(path, params=QUESTION, headers=headers)
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert TOKEN not in refused.text
    assert LLM.calls == before


@pytest.mark.parametrize("path", ["/healthz", "/", "/static/app.js"])
def test_the_page_loads_without_it_to_ask_for_it(locked, path):
    assert locked.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/static/../brain/stats", "/static/%2e%2e/brain/stats", "//brain/stats", "/healthz/"])
def test_no_way_round(locked, path):
    with served(locked.app) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 5) as raw:
            raw.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: raw.recv(4096), b""))
    assert b" 200 " not in answer.splitlines()[0]
    assert b"total_documents" not in answer


def test_with_the_token_everything_works(locked):
    bearer = {"Authorization": f"bearer  {TOKEN}"}
    assert locked.get("/brain/query", params=QUESTION, headers=bearer).json()["sources"]
    assert locked.get("/brain/stats", headers=bearer).json()["total_documents"] == 4


def test_the_token_is_compared_in_constant_time(locked, monkeypatch):
    compared = []

    def compare(one, other):
        compared.append((one, other))
        return False

    monkeypatch.setattr(api.security.hmac, "compare_digest", compare)
    assert locked.get("/brain/stats", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 401
    assert compared == [(TOKEN.encode(), TOKEN.encode())]


def test_a_short_token_is_refused_and_not_repeated():
    with pytest.raises(ConfigError) as refused:
        Settings.load(api_token="hunter2")  # noqa: S106
    assert "16" in str(refused.value)
    assert "hunter2" not in str(refused.value) + repr(refused.value.__cause__)


def test_the_command_line_hands_the_token_to_the_brain_that_is_served(locked):
    settings = locked.app.state.family_brain.settings
    with served(locked.app) as url, RemoteBrain(settings, url) as remote:
        assert remote.stats().total_documents == 4


def test_the_secret_stands_nowhere(ollama, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    settings = settings_for(ollama.url, api_token=TOKEN)
    shown = [repr(settings), str(settings), settings.model_dump_json(), *map(repr, diagnose(settings))]
    ollama.fail(Fault.BROKEN, "/api/chat")
    with fill(Brain(settings)) as brain, TestClient(create_app(brain=brain)) as client:
        response = client.get("/brain/query", params=QUESTION, headers={"Authorization": f"Bearer {TOKEN}"})
    shown += [response.text, caplog.text, *capsys.readouterr()]
    assert response.status_code == 503
    assert TOKEN not in "".join(shown)


def test_neither_questions_nor_mail_stand_in_the_log(ollama, caplog):
    caplog.set_level(logging.DEBUG)
    with fill(Brain(settings_for(ollama.url))) as brain, served(create_app(brain=brain)) as url:
        assert httpx.get(f"{url}/brain/query", params={"q": "What is for the zoo field trip, says Esmeralda?"}).json()
        ollama.fail(Fault.BROKEN, "/api/chat")
        assert httpx.get(f"{url}/brain/query", params=QUESTION).status_code == 503
    ours = "\n".join(r.getMessage() for r in caplog.records if r.name.split(".")[0] in {"api", "brain_pipeline"})
    assert "ModelBadResponse" in ours
    for secret in ("Esmeralda", "zoo", "permission", "cookies"):
        assert secret not in ours


# Headers and bodies.


@pytest.mark.parametrize("path", ["/", "/healthz", "/brain/query?q=slip", "/brain/query", "/nowhere", "/static/app.js"])
def test_every_response_has_the_security_headers(client, path):
    headers = client.get(path).headers
    assert all(name in headers for name in HEADERS)
    assert headers["X-Content-Type-Options"] == "nosniff"
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "server" not in headers


def test_refusals_have_them_too(locked, client):
    for refused in (locked.get("/brain/stats"), client.get("/", headers={"Host": "evil.example"})):
        assert {name: refused.headers[name] for name in HEADERS} == HEADERS


@pytest.fixture
def small(brain):
    with served(create_app(brain.settings.model_copy(update={"upload_limit": 10_000}), brain)) as url:
        yield url


def chunks(size, count):
    for _ in range(count):
        yield b"x" * size


def test_a_body_that_is_announced_too_large_is_refused_before_it_is_sent(small):
    host, port = small.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 5) as raw:
        raw.sendall(
            f"POST /brain/ingest HTTP/1.1\r\nHost: {host}\r\nContent-Length: 10001\r\n"
            "Content-Type: multipart/form-data; boundary=b\r\n\r\n".encode()
        )
        assert b" 413 " in raw.recv(4096).splitlines()[0]


@pytest.mark.filterwarnings("ignore:Unclosed file:ResourceWarning")  # an old Starlette leaves it to be collected
def test_a_body_that_grows_too_large_is_refused_on_the_way(small):
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    head = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.eml"\r\n\r\n'
    response = httpx.post(f"{small}/brain/ingest", content=[head, *chunks(1000, 11)], headers=kind)
    assert response.status_code == 413
    assert "10,000" in response.json()["detail"]


def test_a_body_that_stops_coming_is_not_waited_for(small, monkeypatch):
    monkeypatch.setattr(api.security, "SLOWEST_BODY", 0.2)
    host, port = small.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 5) as raw:
        raw.sendall(
            f"POST /brain/ingest HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n"
            "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n".encode()
        )
        assert b" 408 " in raw.recv(4096).splitlines()[0]


def upload(name, content):
    return {"files": (name, content, "application/octet-stream")}


@pytest.mark.parametrize(
    "name",
    [
        *("../../etc/cron.d/x.eml", "/etc/passwd", "..\\..\\x.eml", "a/b/c.eml", "\x00.eml", "..", ".", "", "x" * 3000),
        *("con.eml", "-rf.eml", "$(id).eml", "a\nb.eml", "\u202egpj.eml"),
    ],
)
def test_a_name_never_leaves_the_upload_s_folder(brain, tmp_path, name):
    before = {path for path in tmp_path.parent.rglob("*") if path.is_file()}
    message = b"Subject: Owl\r\nFrom: a@b.example\r\nDate: Mon, 15 Sep 2025 10:00:00 +0000\r\n\r\nOwls at eight."
    with TestClient(create_app(brain=brain)) as client:
        response = client.post("/brain/ingest", files=upload(name or "x", message))
    assert response.status_code in (200, 422)
    after = {path for path in tmp_path.parent.rglob("*") if path.is_file()}
    assert {path for path in after - before if not path.is_relative_to(brain.settings.db_path)} == set()


def bomb(size):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("big.mbox", "w") as member:
        for _ in range(size // 1_000_000):
            member.write(b"\0" * 1_000_000)
    return packed.getvalue()


def test_a_zip_bomb_is_a_skip(brain):
    with TestClient(create_app(brain=brain)) as client:
        response = client.post("/brain/ingest", files=upload("mail.zip", bomb(150_000_000)))
    assert response.status_code == 200
    body = response.json()
    assert body["new"] == 0
    assert body["skipped"]


def test_a_thousand_files_are_too_many_for_one_request(brain):
    files = [("files", (f"{number}.eml", b"x", "message/rfc822")) for number in range(1001)]
    with TestClient(create_app(brain=brain)) as client:
        response = client.post("/brain/ingest", files=files)
    assert response.status_code == 400
    assert "1000" in response.json()["detail"]


# In an application of someone else's.


@pytest.fixture
def host_application(brain):
    app = FastAPI()

    @app.post("/lamp")
    async def lamp(request: Request) -> int:
        return len(await request.body())

    app.include_router(router)
    app.state.family_brain = brain
    return app


def test_the_router_alone_leaves_that_to_its_host(host_application):
    with TestClient(host_application) as client:
        assert client.get("/brain/stats", headers={"Host": "evil.example"}).status_code == 200


def test_the_host_adds_the_middleware_for_all_of_it(host_application, brain):
    settings = brain.settings.model_copy(update={"upload_limit": 5})
    host_application.add_middleware(Security, settings=settings)
    with TestClient(host_application) as client:
        assert client.get("/brain/stats", headers={"Host": "evil.example"}).status_code == 400
        assert client.post("/lamp", headers={"Origin": "http://evil.example"}).status_code == 403
        assert client.post("/lamp", content=b"12345").json() == 5
        assert client.post("/lamp", content=iter([b"123", b"456"])).status_code == 413
        assert client.get("/brain/stats").status_code == 200


def test_under_a_path_of_its_host_the_same_is_open(brain):
    settings = brain.settings.model_copy(update={"api_token": Settings.load(api_token=TOKEN).api_token})
    outer = FastAPI()
    outer.mount("/family", create_app(settings, brain))
    with TestClient(outer) as client:
        assert client.get("/family/healthz").status_code == 200
        assert client.get("/family/brain/stats").status_code == 401
