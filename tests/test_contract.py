"""The HTTP contract, with the real client library against a real socket."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from household import BAKE, HOUSEHOLD, SLIP, fill, mail, settings_for
from ollama_server import Fault

from api import create_app
from api.routes import STATUS, status_of
from brain_pipeline import errors
from brain_pipeline.brain import Brain
from brain_pipeline.records import NOT_FOUND, UNAVAILABLE

QUESTION = "What do we need for the zoo field trip?"


@pytest.fixture
def brain(ollama):
    with fill(Brain(settings_for(ollama.url))) as filled:
        yield filled


@pytest.fixture
def client(brain):
    with TestClient(create_app(brain.settings, brain)) as started:
        yield started


def ask(client, **params):
    return client.get("/brain/query", params={"q": QUESTION, **params})


def test_an_answer_has_exactly_the_contract_s_keys(client, ollama):
    response = ask(client)
    body = response.json()
    assert response.status_code == 200
    assert list(body) == ["answer", "sources", "confidence", "query_time_ms"]
    assert body["answer"] == ollama.reply
    best = body["sources"][0]
    assert list(best) == ["attribution", "subject", "date", "score", "source_type"]
    assert best["attribution"] == "Found in: Field Trip Permission Slip, 2025-09-15"
    assert (best["subject"], best["date"], best["source_type"]) == (SLIP.subject, "2025-09-15", "email")
    assert 0 <= best["score"] <= 1
    assert body["query_time_ms"] >= 0


def test_one_question_is_one_call_to_each_model(client, ollama):
    ollama.requests.clear()
    ask(client)
    assert ollama.calls("/api/chat") == 1
    assert ollama.calls("/api/embed") == 1
    assert ollama.calls("/api/show") == 0


def test_the_prompt_holds_the_sources_and_nothing_else(client, ollama):
    ollama.requests.clear()
    sources = ask(client).json()["sources"]
    prompt = "\n".join(m["content"] for m in ollama.requests[-1].body["messages"])
    for each in HOUSEHOLD:
        assert (each.text in prompt) == any(source["subject"] == each.subject for source in sources)
    assert f"From: {SLIP.sender}" in prompt


def test_an_invented_amount_is_replaced_by_the_words_of_the_source_it_should_stand_in(client, ollama):
    ollama.reply = "You need a slip and $45.30 for the zoo field trip."
    body = ask(client).json()
    assert SLIP.text in body["answer"]
    assert "45.30" not in body["answer"]
    assert [source["subject"] for source in body["sources"]] == [SLIP.subject]


def test_excerpts_cite_exactly_the_emails_that_they_quote(ollama):
    also = mail("Zoo trip", "The zoo trip bus leaves for the field at nine sharp.", day=16)
    settings = settings_for(ollama.url, llm_provider="excerpts")
    with fill(Brain(settings), [SLIP, also]) as brain:
        answer = brain.query("What about the zoo field trip?")
    assert answer.text.count("\u201c") == len(answer.sources) > 0
    for source in answer.sources:
        assert source.passage in answer.text


def test_top_k_asks_for_fewer_and_is_capped(client):
    assert len(ask(client, top_k=1).json()["sources"]) == 1
    assert len(ask(client, top_k=50).json()["sources"]) <= 3


@pytest.mark.parametrize("kind", ["newsletter", " NewsLetter "])
def test_source_keeps_to_one_kind(client, kind):
    body = client.get("/brain/query", params={"q": "When are library books due?", "source": kind}).json()
    assert {source["source_type"] for source in body["sources"]} == {"newsletter"}


def test_an_unknown_source_searches_everything(client):
    assert ask(client, source="pigeon").json()["sources"] == ask(client).json()["sources"]


@pytest.mark.parametrize(
    ("params", "hint"),
    [
        ({"q": "  "}, "empty"),
        ({"q": "x" * 2001}, "2,000"),
        ({"top_k": 0}, "1 or more"),
        ({"top_k": -3}, "1 or more"),
        ({"top_k": "many"}, "top_k"),
    ],
)
def test_a_request_that_can_t_be_used_is_told_what_to_send(client, params, hint):
    response = ask(client, **params)
    assert response.status_code == 422
    assert list(response.json()) == ["detail"]
    assert hint in response.json()["detail"]


def test_a_missing_question_is_told_what_to_send(client):
    response = client.get("/brain/query")
    assert response.status_code == 422
    assert "q" in response.json()["detail"]


def test_2000_characters_are_a_question(client):
    assert ask(client, q="field trip " * 181).status_code == 200


@pytest.mark.parametrize("reply", ["NOT IN THE EMAILS", "not in the emails.", NOT_FOUND])
def test_when_the_model_declines_nothing_is_cited(client, ollama, reply):
    ollama.reply = reply
    body = ask(client).json()
    assert (body["answer"], body["sources"], body["confidence"]) == (NOT_FOUND, [], "low")


def test_nothing_related_is_an_answer_without_a_call_to_the_model(client, ollama):
    ollama.requests.clear()
    body = ask(client, q="xylophone quantum zebra").json()
    assert (body["answer"], body["sources"], body["confidence"]) == (NOT_FOUND, [], "low")
    assert ollama.calls("/api/chat") == 0


def test_one_entry_per_email_even_when_one_email_fills_the_candidates(ollama):
    parts = (f"The zoo field trip, part {n}. " + "Elephants walk. " * 60 for n in range(200))
    long = mail("Zoo trip", "\n\n".join(parts))
    with fill(Brain(settings_for(ollama.url)), [long, SLIP, BAKE]) as brain:
        assert brain.stats().total_chunks > 200
        nodes = brain.retriever.retrieve(QUESTION)
        assert {brain.catalog.reader.read(n.metadata, n.text).subject for n in nodes} >= {"Zoo trip", SLIP.subject}
        assert len({source.email for source in brain.query(QUESTION).sources}) == len(brain.query(QUESTION).sources)


def test_a_mail_without_date_and_subject_is_still_attributed(ollama):
    nameless = mail("", SLIP.text, date=None, message_id="<nameless@school.example>")
    with fill(Brain(settings_for(ollama.url)), [nameless]) as brain, TestClient(create_app(brain=brain)) as client:
        source = ask(client).json()["sources"][0]
    assert source["attribution"] == "Found in: (no subject), unknown date"
    assert (source["subject"], source["date"]) == ("", None)


def test_with_no_database_reading_answers_and_creates_nothing(ollama, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    settings = settings_for(ollama.url, data_dir=tmp_path / "none")
    with TestClient(create_app(settings)) as client:
        response = ask(client)
        assert response.status_code == 200
        assert (response.json()["answer"], response.json()["sources"]) == (NOT_FOUND, [])
        held = client.get("/brain/stats")
        assert held.status_code == 200
        assert held.json() == {
            "total_documents": 0,
            "total_chunks": 0,
            "collection": "family_knowledge",
            "db_path": str(tmp_path / "none" / "staging" / "chroma"),
            "last_ingest": None,
        }
    assert sorted(tmp_path.rglob("*")) == before


def test_stats_count_emails_and_need_no_model_server(client, ollama):
    ollama.refuse()
    body = client.get("/brain/stats").json()
    ollama.listen()
    assert (body["total_documents"], body["total_chunks"]) == (4, 4)
    assert body["last_ingest"][-6:] == "-06:00" or body["last_ingest"][-6:] == "-05:00"


def test_healthz(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert [client.head(path).status_code for path in ("/", "/healthz")] == [200, 200]


FAULTS = [
    *(("/api/chat", fault) for fault in (Fault.BROKEN, Fault.BUSY, Fault.CUT, Fault.DRIP, Fault.EMPTY, Fault.HTML)),
    *(("/api/chat", fault) for fault in (Fault.MALFORMED, Fault.MISSING, Fault.REDIRECT, Fault.SILENT)),
    *(("/api/embed", fault) for fault in (Fault.BROKEN, Fault.BUSY, Fault.CUT, Fault.DRIP, Fault.HTML, Fault.NAN)),
    *(("/api/embed", fault) for fault in (Fault.MALFORMED, Fault.MISSING, Fault.SILENT, Fault.WRONG_COUNT)),
]


@pytest.mark.parametrize(("path", "fault"), FAULTS, ids=lambda value: getattr(value, "name", value))
def test_a_model_server_that_fails_is_a_clean_503(client, ollama, path, fault):
    ollama.fail(fault, path)
    began = time.monotonic()
    response = ask(client)
    assert time.monotonic() - began < client.app.state.family_brain.settings.request_timeout + 1
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    body = response.json()
    assert set(body) == {"answer", "detail", "sources", "confidence", "query_time_ms"}
    assert (body["answer"], body["detail"]) == (UNAVAILABLE, UNAVAILABLE)
    found = [source["subject"] for source in body["sources"]]
    assert found[:1] == ([SLIP.subject] if path == "/api/chat" else [])


@pytest.mark.parametrize("which", ["ollama_base_url", "llm_url"])
@pytest.mark.parametrize("how", ["nobody", "black_hole"])
def test_a_server_that_can_t_be_reached_is_a_503_within_its_timeout(request, ollama, brain, which, how):
    url = request.getfixturevalue(how)
    brain.close()
    other = Brain(settings_for(ollama.url, **{which: url}))
    with TestClient(create_app(other.settings, other)) as client:
        began = time.monotonic()
        response = ask(client)
        assert time.monotonic() - began < other.settings.embed_connect_timeout + 1
    assert response.status_code == 503
    assert bool(response.json()["sources"]) == (which == "llm_url")


def test_an_overloaded_server_says_when_to_try_again(client, ollama):
    ollama.retry_after = "7"
    ollama.fail(Fault.BUSY, "/api/chat")
    assert ask(client).headers["Retry-After"] == "7"


def test_a_locked_database_is_a_503_and_the_log_says_who_has_it(client, brain, caplog):
    brain.close()
    (lock := Path(brain.settings.db_path / "brain.lock")).unlink()
    lock.mkdir()  # a lock that can't be taken, as on a read-only disk
    response = ask(client)
    assert response.status_code == 503
    assert f"StoreError: The database {brain.settings.db_path} can't be used" in caplog.text


def test_every_error_has_a_status():
    def tree(kind):
        yield kind
        for child in kind.__subclasses__():
            yield from tree(child)

    kinds = list(tree(errors.BrainError))
    public = [kind for kind in kinds if kind.__module__ == errors.__name__]
    assert len(public) == sum(isinstance(item, type) for item in vars(errors).values())
    for kind in public:
        expected = 503 if issubclass(kind, errors.BrainUnavailable) else STATUS[kind]
        assert status_of(kind("x")) == expected
        assert kind.__name__ in errors.__doc__
