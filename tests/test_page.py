"""The page as the server sends it; what a browser makes of it is tested in ``tests/browser``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from household import SLIP, fill, mail
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import api
from api import create_app, router
from api.page import CONTENT_SECURITY_POLICY
from brain_pipeline import Settings
from brain_pipeline.brain import Brain
from brain_pipeline.errors import ModelUnreachable
from brain_pipeline.records import NOT_FOUND
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

HERE = Path(api.__file__).parent
FILES = sorted(path for folder in ("static", "templates") for path in (HERE / folder).iterdir())
QUESTION = "What do we need for the zoo field trip?"
MARKUP = '"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def brain(tmp_path_factory):
    chosen = Settings.load(data_dir=tmp_path_factory.mktemp("page"), allowed_hosts=("testserver",), warm_up=False)
    llm = ScriptedLLM(lambda messages: "It is <b>on</b> Friday." if "zoo" in messages[-1].content else "x")
    with fill(Brain(chosen, embedder=HashedTokenEmbedder(), llm=llm)) as filled:
        yield filled


@pytest.fixture(scope="module")
def client(brain):
    with TestClient(create_app(brain.settings, brain)) as started:
        yield started


def test_the_page_weighs_less_than_60_kb(client):
    sent = [client.get("/"), *(client.get(f"/static/{path.name}") for path in FILES if path.parent.name == "static")]
    assert all(response.status_code == 200 for response in sent)
    assert sum(len(response.content) for response in sent) < 60_000


def test_it_allows_its_own_files_and_nothing_else(client):
    response = client.get("/")
    assert response.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    policy = dict(part.split(" ", 1) for part in CONTENT_SECURITY_POLICY.split("; "))
    assert policy.pop("default-src") == "'none'"
    assert set(policy.values()) <= {"'self'", "'none'", "'script'"}
    assert response.headers["referrer-policy"] == "no-referrer"


def test_it_has_no_inline_script_style_or_handler(client):
    html = client.get("/", params={"q": QUESTION}).text
    assert re.findall(r"<script[^>]*>(.*?)</script>", html, re.DOTALL) == [""]
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", html)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_of_it_comes_from_elsewhere_or_becomes_markup(path):
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(
        r"https?:|//\w+\.\w|@import|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text
    )


@pytest.mark.parametrize("path", ["/", "/answer"])
def test_a_question_in_the_address_is_text(client, path):
    html = client.get(path, params={"q": MARKUP, "source": MARKUP}).text
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text())
def test_any_question_in_the_address_gives_the_page(client, question):
    response = client.get("/", params={"q": question, "source": question})
    assert response.status_code == 200
    assert response.text.count("<script") == 1


def test_without_scripts_a_link_leads_to_its_answer(client):
    html = client.get("/", params={"q": "zoo & school?", "source": "email"}).text
    assert '<noscript><meta http-equiv="refresh" content="0; url=answer?q=zoo+%26+school%3F&amp;source=email">' in html
    assert "<noscript>" not in client.get("/").text


def test_the_answer_without_scripts(client):
    response = client.get("/answer", params={"q": QUESTION})
    assert response.status_code == 200
    assert "Friday." in response.text
    assert "<b>" not in response.text
    assert f"Found in: <bdi>{SLIP.subject}</bdi>" in response.text
    assert SLIP.text in response.text
    assert response.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert response.headers["cache-control"] == "no-store"


def test_mail_that_is_markup_is_text_without_scripts(tmp_path):
    chosen = Settings.load(data_dir=tmp_path, warm_up=False)
    hostile = mail(f"Zoo {MARKUP}", f"The zoo trip {MARKUP}", sender_name=MARKUP)
    with fill(Brain(chosen, embedder=HashedTokenEmbedder(), llm=ScriptedLLM("Yes.")), [hostile]) as brain:
        html = TestClient(create_app(chosen, brain)).get("/answer", params={"q": "zoo trip"}).text
    assert "<script>alert" not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 2


def test_an_abstention_without_scripts(client):
    html = client.get("/answer", params={"q": "xylophone quantum zebra"}).text
    assert 'data-state="abstained"' in html
    assert NOT_FOUND.replace("'", "&#39;") in html


@pytest.mark.parametrize("question", ["", "  ", "x" * 2001])
def test_a_question_that_can_t_be_asked_without_scripts(client, question):
    response = client.get("/answer", params={"q": question})
    assert response.status_code == 422
    assert 'data-state="refused"' in response.text


def test_no_model_without_scripts(brain, tmp_path):
    chosen = Settings.load(data_dir=tmp_path, warm_up=False)
    down = ScriptedLLM(ModelUnreachable("nobody there"))
    with fill(Brain(chosen, embedder=HashedTokenEmbedder(), llm=down)) as other:
        response = TestClient(create_app(chosen, other)).get("/answer", params={"q": QUESTION})
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) > 0
    assert 'data-state="unavailable"' in response.text
    assert SLIP.subject in response.text


def test_a_host_application_keeps_its_own_page(brain):
    app = FastAPI()
    app.include_router(router)
    app.state.family_brain = brain
    assert {"/", "/answer", "/static"}.isdisjoint(route.path for route in app.routes if hasattr(route, "path"))
    assert "/" not in app.openapi()["paths"]
