"""Mail and calendar in one answer, over the sample family and through HTTP."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime

import pytest
from fastapi.testclient import TestClient
from household import SLIP, fill, mail

from api import create_app
from brain_pipeline.ask.events import merged, source_of, when
from brain_pipeline.brain import Brain
from brain_pipeline.mail.mailboxes import iter_messages
from brain_pipeline.records import NOT_FOUND, Event, Source
from brain_pipeline.sample import sample_calendar, sample_mail
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

ZOO_WEEK = "2025-09-16T08:00"
ZOO = "Found in: Zoo field trip (Sullivan), 2025-09-19"


def settings_in(folder, **more):
    given = {"timezone": "America/Chicago", "calendars": (sample_calendar(),), "warm_up": False, **more}
    return Settings.load(environment="embedded", data_dir=folder, **given)


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    folder = tmp_path_factory.mktemp("family")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRAIN_ALLOWED_HOSTS", "testserver")
        settings = settings_in(folder)
    with Brain(settings, embedder=HashedTokenEmbedder()) as brain:
        brain.ingest(iter_messages([sample_mail()]))
        yield brain


@pytest.fixture(scope="module")
def client(family):
    with TestClient(create_app(family.settings, family)) as started:
        yield started


def ask(client, question, now=ZOO_WEEK, **more):
    response = client.get("/brain/query", params={"q": question, "now": now, **more})
    assert response.status_code == 200, response.text
    body = response.json()
    return body, [source["attribution"] for source in body["sources"]]


def test_event_and_mail_are_found_together(client):
    body, found = ask(client, "What do the kids need for the field trip this Friday?")
    [slip] = [each for each in found if each.endswith("Field Trip Permission Slip, 2025-09-15")]
    assert ZOO in found
    assert "a signed permission slip" in body["answer"]
    assert "Friday 19 September 2025, 8:45 am to 2:15 pm: Zoo field trip (Sullivan), Danforth Zoo" in body["answer"]
    kinds = {source["attribution"]: source["source_type"] for source in body["sources"]}
    assert (kinds[ZOO], kinds[slip]) == ("calendar", "email")
    scores = [source["score"] for source in body["sources"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert len(scores) <= 3


def test_the_calendar_answers_where_no_mail_does(tmp_path):
    with Brain(settings_in(tmp_path), embedder=HashedTokenEmbedder()) as brain:
        answer = brain.query("What's on this Friday?", now=datetime.fromisoformat(ZOO_WEEK))
        assert [source.attribution for source in answer.sources] == [ZOO]
        assert answer.confidence == "high"
        nothing = brain.query("What's on this Friday?", now=datetime.fromisoformat("2026-07-01T08:00"))
        assert (nothing.text, nothing.sources) == (NOT_FOUND, ())
    assert not list(tmp_path.iterdir())  # asking creates nothing


@pytest.mark.parametrize(
    ("question", "now", "told"),
    [
        ("When is spring break?", "2026-01-09T08:00", "Monday 16 March 2026 to Friday 20 March 2026: Spring break"),
        ("When is Hazel's next piano lesson?", "2026-03-04T08:00", "Thursday 5 March 2026, 4:45 pm to 5:30 pm"),
        ("When is Hazel's next piano lesson?", "2026-03-06T08:00", "Thursday 12 March 2026, 4:45 pm to 5:30 pm"),
        ("When is Sullivan's piano lesson?", "2025-11-19T08:00", "Tuesday 2 December 2025, 4:00 pm"),
        ("What's on tomorrow?", "2026-03-09T23:30", "Tuesday 10 March 2026, 4:00 pm to 4:30 pm: Piano lesson"),
        ("What's on tomorrow?", "2026-03-10T04:30+00:00", "Tuesday 10 March 2026, 4:00 pm to 4:30 pm: Piano lesson"),
        ("When is the ski weekend?", "2026-01-15T08:00", "Friday 20 February 2026 to Sunday 22 February 2026"),
    ],
)
def test_the_answer_tells_local_days_and_times(client, question, now, told):
    body, _ = ask(client, question, now)
    assert told in body["answer"]


def test_a_later_mail_comes_before_the_event_that_it_moves(client):
    body, found = ask(client, "When is Sullivan's soccer game against the Plovers this weekend?", "2025-09-25T08:00")
    game = "Found in: Soccer game against the Plovers (Sullivan), 2025-09-27"
    moved = "Found in: This week's game: Sunday, not Saturday, 2025-09-24"
    assert {game, moved} <= set(found)
    assert found.index(moved) < found.index(game)
    assert "Sunday, September 28" in body["answer"]
    assert "Saturday 27 September 2025, 9:00 am" in body["answer"]


@pytest.mark.parametrize(
    ("source", "kinds"),
    [("calendar", {"calendar"}), (" Calendar ", {"calendar"}), ("email", {"email"}), ("newsletter", {"newsletter"})],
)
def test_source_selects(client, source, kinds):
    body, _ = ask(client, "What is at school this Friday, the zoo trip?", source=source)
    assert {each["source_type"] for each in body["sources"]} <= kinds
    assert body["sources"] or source == "newsletter"


def test_the_calendar_alone_is_searched_by_words_too(client):
    _, found = ask(client, "spring break", "2026-01-09T08:00", source="calendar")
    assert found[0] == "Found in: Spring break, 2026-03-16"
    body, found = ask(client, "water heater", "2026-01-09T08:00", source="calendar")
    assert (body["answer"], found) == (NOT_FOUND, [])


def test_an_event_s_passage(client):
    with client.stream("GET", "/brain/query/stream", params={"q": "zoo trip this Friday", "now": ZOO_WEEK}) as events:
        text = events.read().decode()
    start = text.index('"id":"calendar:') + len('"id":"')
    id_ = text[start : text.index('"', start)]
    body = client.get(f"/brain/source/{id_}").json()
    assert body["attribution"] == ZOO
    assert body["source_type"] == "calendar"
    assert "Where: Danforth Zoo" in body["passage"]
    assert client.get("/brain/source/calendar:nothing").status_code == 404


def test_what_is_on(client):
    body = client.get("/brain/events", params={"when": "next week", "now": "2026-03-09T08:00"}).json()
    assert body["window"] == ["2026-03-16", "2026-03-22"]
    assert [event["title"] for event in body["events"]] == [
        "Spring break", "Piano lesson (Sullivan)", "Piano lesson (Hazel)"
    ]  # fmt: skip
    assert body["events"][1]["start"] == "2026-03-17T16:00:00-05:00"
    away = {"when": "tomorrow", "now": "2026-03-09T23:00+13:00", "zone": "Pacific/Auckland"}
    assert client.get("/brain/events", params=away).json()["window"] == ["2026-03-10", "2026-03-10"]
    assert client.get("/brain/events", params={**away, "zone": "../etc"}).status_code == 422
    nothing = client.get("/brain/events", params={"when": "whatever"}).json()
    assert nothing == {"window": None, "events": []}


def test_an_invitation_s_update_moves_its_event(client):
    def on(day):
        body = client.get("/brain/events", params={"when": day}).json()
        return [(event["title"], event["start"]) for event in body["events"]]

    assert on("2025-05-31") == []
    assert on("2025-06-01") == [("Noor turns 8!", "2025-06-01T11:00:00-05:00")]


@pytest.mark.parametrize("path", ["/brain/query?q=x", "/brain/query/stream?q=x", "/brain/events?when=x"])
def test_a_moment_that_is_none_is_refused(client, path):
    response = client.get(f"{path}&now=soon")
    assert response.status_code == 422
    assert "2026-01-09T08:00" in response.json()["detail"]


def test_the_prompt_holds_events_and_mail(tmp_path):
    llm = ScriptedLLM()
    with fill(Brain(settings_in(tmp_path), embedder=HashedTokenEmbedder(), llm=llm)) as brain:
        asked = datetime.fromisoformat(ZOO_WEEK)
        prompt = "\n".join(
            text for _, text in brain.explain("What about the zoo field trip on Friday?", now=asked).prompt
        )
        without = "\n".join(text for _, text in brain.explain("What about the zoo field trip?", now=asked).prompt)
    assert "Calendar event: Zoo field trip (Sullivan)" in prompt
    assert "Friday 19 September 2025, 8:45 am to 2:15 pm\nWhere: Danforth Zoo" in prompt
    assert "Today is Tuesday, 16 September 2025." in prompt
    assert SLIP.text in prompt
    assert "alendar" not in without


def test_days_of_the_question_favour_mail_that_names_them(tmp_path):
    settings = settings_in(tmp_path, calendars=())
    notices = [
        mail(f"Notice {n}", f"Swimming is at ten on October {day}.", day=n, message_id=f"<{n}@a.example>")
        for n, day in enumerate((3, 10, 17, 24), start=1)
    ]
    with fill(Brain(settings, embedder=HashedTokenEmbedder()), notices) as brain:
        for now, subject in (("2025-10-06T08:00", "Notice 2"), ("2025-10-20T08:00", "Notice 4")):
            best, *_ = brain.ranked("When do we go swimming on Friday?", now=datetime.fromisoformat(now))
            assert best.subject == subject


CENTRAL = Settings(timezone="America/Chicago").zone


def event(day=13, **more):
    start = datetime(2025, 12, day, 16, 30, tzinfo=CENTRAL)
    return replace(Event("e", "Winter recital", start, start, all_day=False), **more)


def test_times_are_told_as_people_tell_them():
    noon = datetime(2025, 12, 13, 12, tzinfo=CENTRAL)
    midnight = datetime(2025, 12, 14, tzinfo=CENTRAL)
    assert when(event(start=noon, end=noon)) == "Saturday 13 December 2025, 12:00 pm"
    late = "Saturday 13 December 2025, 12:00 pm to Sunday 14 December 2025, 12:00 am"
    assert when(event(start=noon, end=midnight)) == late
    whole = event(start=datetime(2025, 12, 13, tzinfo=CENTRAL), end=midnight, all_day=True)
    assert when(whole) == "Saturday 13 December 2025, all day"


def letter(sent, text="It moved.", score=0.3):
    return Source("m", "m", "Winter recital", sent, "", "email", score, text)


@pytest.mark.parametrize(
    ("sent", "changed", "text", "first"),
    [
        (date(2025, 12, 1), datetime(2025, 11, 4, tzinfo=CENTRAL), "It moved.", "email"),
        (date(2025, 12, 1), None, "It moved.", "email"),
        (date(2025, 10, 20), datetime(2025, 11, 4, tzinfo=CENTRAL), "It moved.", "calendar"),
        (date(2025, 12, 1), datetime(2025, 11, 4, tzinfo=CENTRAL), "It will be lovely.", "calendar"),
        (date(2026, 1, 5), datetime(2025, 11, 4, tzinfo=CENTRAL), "It was moved.", "calendar"),
        (None, None, "It moved.", "calendar"),
    ],
)
def test_a_newer_mail_of_the_same_event_comes_first(sent, changed, text, first):
    found = merged([source_of(event(changed=changed), 0.8)], [letter(sent, text)], 3)
    assert found[0].source_type == first
    assert len(found) == 2
    assert [source.score for source in found] == sorted((source.score for source in found), reverse=True)


def test_all_events_of_a_month_are_told_though_three_have_a_place(client):
    body, found = ask(client, "What's on in January?", now="2026-01-06T08:00")
    assert len(found) == 3
    for day in (6, 8, 13, 15, 20, 22, 27, 29):
        assert f" {day} January 2026" in body["answer"]
    assert "Winter break" in body["answer"]


def test_what_others_there_are_is_told_to_the_model_and_may_be_answered():
    days = [source_of(replace(event(9 + n), id=f"e{n}", title=f"Lesson {n}"), 0.9) for n in range(5)]
    *_, last = merged(days, [], 3)
    assert last.passage.endswith(
        "Also in the calendar:\n"
        "Friday 12 December 2025, 4:30 pm: Lesson 3\n"
        "Saturday 13 December 2025, 4:30 pm: Lesson 4"
    )
    less = [*days[:3], replace(days[3], score=0.5)]
    assert "Also" not in merged(less, [], 3)[-1].passage
