"""Any request at all: an answer as documented, never a 500."""

from __future__ import annotations

import asyncio
import json

import pytest
import schemathesis
from fastapi.testclient import TestClient
from household import fill
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from api import create_app
from brain_pipeline.brain import Brain
from brain_pipeline.errors import InvalidRequest
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

NAMES = ("origin", "content-length", "sec-fetch-site", "authorization", "accept", "last-event-id", "cookie")
KINDS = ("message/rfc822", "application/zip", "application/mbox", "text/html", "x")
RELAXED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much]


@pytest.fixture(scope="module")
def brain(tmp_path_factory):
    told = Settings.load(data_dir=tmp_path_factory.mktemp("fuzz"), allowed_hosts=("testserver",), warm_up=False)
    with fill(Brain(told, embedder=HashedTokenEmbedder(), llm=ScriptedLLM("Bring cookies."))) as filled:
        yield filled


@pytest.fixture(scope="module")
def app(brain):
    return create_app(brain=brain)


@pytest.fixture(scope="module")
def client(app):
    with TestClient(app, raise_server_exceptions=False) as started:
        yield started


@pytest.fixture(scope="module")
def operations(app):
    document = schemathesis.openapi.from_asgi("/openapi.json", app)
    return {f"{each.ok().method.upper()} {each.ok().path}": each.ok() for each in document.get_all_operations()}


def test_every_endpoint_is_documented(operations):
    assert {"GET /brain/query", "GET /brain/stats", "POST /brain/ingest", "GET /healthz"} <= set(operations)


@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=RELAXED)
def test_every_endpoint_keeps_to_its_document(operations, data):
    operation = operations[data.draw(st.sampled_from(sorted(operations)))]
    mode = data.draw(st.sampled_from(list(schemathesis.GenerationMode)))
    # A stream has begun, with status 200, before its question is looked at: an event tells what is wrong with it. In an
    # upload, whatever was made of the document's data is a file.
    lenient = operation.path.endswith("/stream") or operation.method == "post"
    excluded = [negative_data_rejection] if lenient else []
    # A conversation need not ask anything, and no schema says what a pattern is.
    if operation.path in {"/v1/chat/completions", "/brain/members"}:
        excluded.append(positive_data_acceptance)
    case = data.draw(operation.as_strategy(generation_mode=mode))
    case.call_and_validate(checks=CHECKS.get_all(), excluded_checks=excluded)


@given(q=st.text(), top_k=st.none() | st.integers() | st.text(), source=st.none() | st.text())
@settings(max_examples=60, deadline=None, suppress_health_check=RELAXED)
def test_any_question_gets_an_answer_or_is_told_what_to_send(client, q, top_k, source):
    given_ones = {name: value for name, value in (("q", q), ("top_k", top_k), ("source", source)) if value is not None}
    response = client.get("/brain/query", params={k: str(v).encode("utf-8", "replace") for k, v in given_ones.items()})
    assert response.status_code in (200, 422), response.text
    body = response.json()
    if response.status_code == 422:
        assert set(body) == {"detail"}
        assert isinstance(body["detail"], str)
    else:
        assert set(body) == {"answer", "sources", "confidence", "query_time_ms"}
        assert body["answer"]
        assert len(body["sources"]) <= 3
        assert all(source["attribution"].startswith("Found in: ") for source in body["sources"])


@given(q=st.text(st.characters(), max_size=2_100), top_k=st.none() | st.integers(), source=st.text())
@settings(max_examples=60, deadline=None, suppress_health_check=RELAXED)
def test_any_question_to_the_brain_itself(brain, q, top_k, source):
    try:
        answer = brain.query(q, top_k=top_k, source=source)
    except InvalidRequest:
        return
    assert answer.text
    json.dumps(answer.text).encode()


@given(query=st.binary(max_size=200), headers=st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=60)))
@settings(max_examples=60, deadline=None, suppress_health_check=RELAXED)
def test_any_bytes_as_query_and_headers(app, query, headers):
    sent = []
    messages = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive():
        if messages:
            return messages.pop()
        return await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    named = [(b"host", b"testserver"), *((name.encode(), value) for name, value in headers.items())]
    scope = {"type": "http", "method": "GET", "path": "/brain/query", "query_string": b"q=zoo+trip&" + query}
    asyncio.run(app({**scope, "headers": named, "app": app}, receive, send))
    assert sent[0]["status"] in (200, 403, 413, 422)


@given(content=st.binary(max_size=500), name=st.text(max_size=60), kind=st.sampled_from(KINDS))
@settings(max_examples=40, deadline=None, suppress_health_check=RELAXED)
def test_any_upload_is_mail_or_a_named_skip(client, content, name, kind):
    response = client.post("/brain/ingest", files={"files": (name.replace("\x00", "") or "x", content, kind)})
    assert response.status_code in (200, 422), response.text
    if response.status_code == 200:
        assert all(skip["reason"] for skip in response.json()["skipped"])
