"""The family's members over HTTP, on the command line, and as what questions keep to."""

from __future__ import annotations

import json

import pytest
from fastapi.testclient import TestClient
from household import BAKE, HOUSEHOLD, PIANO, SLIP, fill, mail

from api import create_app
from brain_pipeline.brain import Brain
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder

NEEDS = ("a red hat", "two tall boots", "a blue scarf", "four coins", "warm socks", "an old map", "an apple", "a pin")
TRIPS = [
    mail(f"Trip {number}", f"The zoo trip needs {need} for {name}.", day=number, sender_name=name)
    for number, (name, need) in enumerate(zip(["Hazel", "Sullivan"] * 4, NEEDS, strict=True), 1)
]


@pytest.fixture
def settings(tmp_path):
    return Settings.load(
        chroma_db_path=tmp_path / "chroma",
        timezone="America/Chicago",
        members={"Sullivan": ["Sully"], "Hazel": []},
        embed_model="all-minilm",
        llm_provider="excerpts",
        warm_up=False,
    )


@pytest.fixture
def brain(settings):
    with fill(Brain(settings, embedder=HashedTokenEmbedder()), [*HOUSEHOLD, *TRIPS]) as filled:
        yield filled


@pytest.fixture
def client(brain):
    return TestClient(create_app(brain=brain))


def found(client, **query):
    body = client.get("/brain/query", params={"q": "What does the zoo trip need?", "top_k": 3, **query}).json()
    return {source["subject"] for source in body["sources"]}


def test_members_are_taught_and_untaught(client):
    taught = client.post("/brain/members", json={"pattern": "subject:recital", "member": "hazel"})
    assert taught.status_code == 200
    sullivan, hazel = taught.json()["members"]
    assert sullivan == {"name": "Sullivan", "nicknames": ["Sully"], "rules": [], "emails": 4}
    assert (hazel["rules"], hazel["emails"]) == ([{"pattern": "subject:recit", "times": 1, "of": 1}], 5)
    assert client.get("/brain/members").json() == taught.json()
    assert client.delete("/brain/members", params={"pattern": "subject:recital"}).json() == {"rules": 1}
    assert client.delete("/brain/members", params={"pattern": "subject:recital"}).json() == {"rules": 0}
    assert client.get("/brain/members").json()["members"][1]["emails"] == 4


@pytest.mark.parametrize(
    "lesson",
    [
        {"member": "Hazel"},
        {"member": "Hazel", "pattern": "subject:zoo", "source": "x"},
        {"member": " ", "pattern": "subject:zoo"},
        {"member": "x" * 101, "pattern": "subject:zoo"},
        {"member": "Hazel", "pattern": "zoo"},
        {"member": "Hazel", "source": "none"},
        {"pattern": "subject:zoo"},
    ],
)
def test_what_can_t_be_learned_is_refused_with_what_to_send(client, lesson):
    refused = client.post("/brain/members", json=lesson)
    assert refused.status_code == 422
    assert refused.json()["detail"]


def test_a_foreign_page_can_t_teach(client):
    lesson = {"pattern": "subject:zoo", "member": "Hazel"}
    foreign = {"Origin": "https://evil.example"}
    assert client.post("/brain/members", json=lesson, headers=foreign).status_code == 403
    assert client.request("DELETE", "/brain/members?pattern=subject:zoo", headers=foreign).status_code == 403


@pytest.mark.parametrize("name", ["Sullivan", "sully"])
def test_a_question_keeps_to_a_member(client, name):
    theirs = {each.subject for each in TRIPS if each.sender_name == "Sullivan"}
    assert len(found(client)) == 3
    assert found(client, member=name)
    assert found(client, member=name) <= theirs
    assert found(client, member=name, source="newsletter") == set()
    assert found(client, member="nobody") == found(client)


def test_a_name_in_the_question_prefers_their_mail(brain):
    for name in ("Sullivan", "Hazel"):
        trips = [
            source
            for source in brain.ranked(f"What does the zoo trip of {name} need?")
            if source.subject.startswith("Trip")
        ]
        theirs = [source.score for source in trips if name in source.members]
        others = [source.score for source in trips if name not in source.members]
        assert len(theirs) >= 3
        assert min(theirs) > max(others, default=0.0)


def test_more_of_a_member_s_mail_than_is_fetched_at_once_is_looked_up(settings, monkeypatch):
    many = [mail(f"Note {n}", "The zoo trip needs a slip.", day=1 + n % 28, message_id=f"<{n}@x>") for n in range(60)]
    monkeypatch.setattr("brain_pipeline.ask.retrieve.MOST", 10)
    with fill(Brain(settings, embedder=HashedTokenEmbedder()), [*many, *HOUSEHOLD, *TRIPS]) as brain:
        for each in many[:45]:
            brain.learn_assignment(f"email:{each.message_id}", "Noor")
        brain.learn_assignment("subject:bake", "Noor")
        answer = brain.query("Who bakes cookies for the gym on Saturday?", member="Noor")
        assert [source.subject for source in answer.sources] == [BAKE.subject]
        assert brain.query("Where is the piano recital?", member="Noor").sources == ()


def test_a_source_tells_its_members_and_takes_a_correction(client):
    def sources():
        lines = client.get("/brain/query/stream", params={"q": "Where is the piano recital?"}).text.splitlines()
        return json.loads(next(line for line in lines if line.startswith("data: ")).removeprefix("data: "))["sources"]

    (before, *_) = sources()
    assert (before["subject"], before["members"]) == (PIANO.subject, [])
    assert client.post("/brain/members", json={"source": before["id"], "member": "Hazel"}).status_code == 200
    assert sources()[0]["members"] == ["Hazel"]
    passage = client.get(f"/brain/source/{before['id']}").json()
    assert passage["members"] == ["Hazel"]
    answer = client.get("/brain/query", params={"q": "Where is the piano recital?"}).json()
    assert set(answer["sources"][0]) == {"attribution", "subject", "date", "score", "source_type"}


def test_in_the_terminal(command, monkeypatch, tmp_path):
    for name, value in {
        "BRAIN_ENV": "embedded",
        "CHROMA_DB_PATH": str(tmp_path / "chroma"),
        "BRAIN_MEMBERS": '{"Sullivan": ["Sully"]}',
    }.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "slip.eml").write_text(f"Subject: {SLIP.subject}\nFrom: {SLIP.sender}\n\n{SLIP.text}\n")
    assert command("ingest", tmp_path / "slip.eml")[0] == 0
    assert command("members", "list")[1] == "Sullivan (Sully): 0 emails\n"
    assert command("members", "learn", "sender:okafor@school.example", "Sully")[0] == 0
    assert command("members", "list")[1] == ("Sullivan (Sully): 1 email\n  sender:okafor@school.example  1 of 1\n")
    assert "signed permission slip" in command("ask", "What is needed for the zoo trip?", "--member", "Sullivan")[1]
    assert command("members", "forget", "sender:okafor@school.example")[1].startswith("forgotten")
    code, _, err = command("members", "forget", "sender:okafor@school.example")
    assert code == 1
    assert "Nothing was learned" in err
    assert "Write one as" in command("members", "learn", "okafor", "Sully")[2]
