"""The brain asked by programs that take it for a chat model, with the client library that they use."""

from __future__ import annotations

import json
import time

import httpx
import openai
import pytest
from household import fill, mail, settings_for
from live import served
from ollama_server import Fault

from api import create_app
from api.openai import LARGEST
from brain_pipeline.brain import Brain
from brain_pipeline.records import NOT_FOUND, UNAVAILABLE
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

QUESTION = "What do we need for the zoo field trip?"
ASKED = [{"role": "user", "content": QUESTION}]
REPLY = "Every child needs a signed slip and $5."
WHOLE = f"{REPLY}\n\nFound in: Field Trip Permission Slip, 2025-09-15"
TOKEN = "a-secret-of-the-household"  # noqa: S105  (of this test)


@pytest.fixture
def llm():
    return ScriptedLLM(REPLY)


@pytest.fixture
def brain(tmp_path, llm):
    settings = settings_for("http://127.0.0.1:9", data_dir=tmp_path)
    with fill(Brain(settings, embedder=HashedTokenEmbedder(), llm=llm)) as filled:
        yield filled


@pytest.fixture
def url(brain):
    with served(create_app(brain=brain)) as at:
        yield at


@pytest.fixture
def client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as made:
        yield made


def said(stream):
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream)


def test_the_brain_is_a_model_among_others(client):
    assert [model.id for model in client.models.list()] == ["family-brain"]


def test_an_answer_has_its_sources_below_it(client):
    completion = client.chat.completions.create(model="family-brain", messages=ASKED)
    (choice,) = completion.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", WHOLE, "stop")
    assert completion.model == "family-brain"


def test_a_streamed_answer_is_the_same_in_pieces(client):
    chunks = list(client.chat.completions.create(model="family-brain", messages=ASKED, stream=True))
    assert said(chunks) == WHOLE
    assert len(chunks) > 4
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] == ["stop"]


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_mail_does_not_hold_is_not_found(url, stream):
    body = {"messages": [{"role": "user", "content": "Who won the chess olympiad?"}], "stream": stream}
    response = httpx.post(f"{url}/v1/chat/completions", json=body)
    assert NOT_FOUND in response.text
    assert "Found in" not in response.text


def test_the_last_user_message_is_the_question_in_whatever_form(client, llm):
    parts = [{"type": "text", "text": "What do we need"}, {"type": "text", "text": "for the zoo field trip?"}]
    conversation = [
        {"role": "system", "content": "Ignore the emails."},
        {"role": "user", "content": "When is the piano recital?"},
        {"role": "assistant", "content": "On Sunday."},
        {"role": "user", "content": [*parts, {"type": "image_url", "image_url": {"url": "data:,x"}}]},
        {"role": "assistant", "content": None},
    ]
    more = {"temperature": 0, "tools": [], "stream_options": None, "user": "x", "extra_body": {"unheard": {"of": 1}}}
    assert client.chat.completions.create(model="gpt-4", messages=conversation, **more).choices[0].message.content
    (prompt,) = llm.prompts
    assert "Question: What do we need\nfor the zoo field trip?\n" in prompt
    assert "Ignore the emails" not in prompt
    assert "When is the piano recital?" not in prompt


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "required"),
        (b"{", "JSON"),
        (b"{}", "messages"),
        (b'{"messages": []}', "role is user"),
        (b'{"messages": [{"role": "system", "content": "x"}]}', "role is user"),
        (b'{"messages": [{"role": "user", "content": " "}]}', "empty"),
        (b'{"messages": [{"role": "user", "content": null}], "stream": true}', "empty"),
        (json.dumps({"messages": [{"role": "user", "content": "x" * 2001}]}).encode(), "2,001 characters"),
    ],
)
def test_what_cannot_be_used_is_refused_in_their_words(url, body, told):
    response = httpx.post(f"{url}/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 422
    error = response.json()["error"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", None, None)
    assert told in error["message"]


def test_what_is_not_even_text_is_refused_in_their_words(url):
    response = httpx.post(f"{url}/v1/chat/completions", content=b"\xff", headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")


def test_a_conversation_without_end_is_refused_before_it_is_read(url):
    def endless():
        for _ in range(LARGEST // 1000 + 1):
            yield b" " * 1000

    response = httpx.post(f"{url}/v1/chat/completions", content=endless())
    assert response.status_code == 413
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("stream", [False, True])
def test_an_unreachable_embedder_is_unavailable_and_says_when_to_try_again(ollama, stream):
    with fill(Brain(settings_for(ollama.url))) as brain, served(create_app(brain=brain)) as url:
        ollama.fail(Fault.SILENT)
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        with client, pytest.raises(openai.InternalServerError) as failure:
            client.chat.completions.create(model="family-brain", messages=ASKED, stream=stream)
    assert failure.value.status_code == 503
    assert failure.value.body == {"message": UNAVAILABLE, "type": "server_error", "param": None, "code": None}
    assert int(failure.value.response.headers["retry-after"]) > 0


def test_a_model_that_fails_in_a_stream_is_an_error_in_it(ollama):
    with fill(Brain(settings_for(ollama.url))) as brain, served(create_app(brain=brain)) as url:
        ollama.fail(Fault.SILENT, "/api/chat")
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            stream = client.chat.completions.create(model="family-brain", messages=ASKED, stream=True)
            with pytest.raises(openai.APIError, match=UNAVAILABLE):
                list(stream)


def test_a_model_that_takes_its_words_back_says_so(client, llm):
    llm._reply = lambda _: "Every child needs a signed slip. Correction: NOT IN THE EMAILS"
    words = said(client.chat.completions.create(model="family-brain", messages=ASKED, stream=True))
    assert words.startswith("Every child needs")
    assert words.endswith(f"\n\nCorrection: {NOT_FOUND}")


@pytest.mark.parametrize("stream", [False, True])
def test_mail_shows_no_images_and_no_markup_in_clients_that_render_it(tmp_path, stream):
    hostile = mail(
        "Zoo ![x](https://evil.example/p.png) <img src=https://evil.example/q>",
        "The zoo field trip needs ![a](https://evil.example/r.png) and [b](https://evil.example) <b>$5</b> by Friday.",
    )
    settings = settings_for("http://127.0.0.1:9", data_dir=tmp_path, llm_provider="excerpts")
    brain = fill(Brain(settings, embedder=HashedTokenEmbedder()), [hostile])
    with brain, served(create_app(brain=brain)) as url, openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        got = client.chat.completions.create(model="family-brain", messages=ASKED, stream=stream)
        words = said(got) if stream else got.choices[0].message.content
    assert "evil.example/p.png" in words
    assert "needs a and b $5 by Friday" in words
    for markup in ("](", "![", "<img", "<b>"):
        assert markup not in words


def test_the_token_is_the_api_key(brain):
    settings = settings_for("http://127.0.0.1:9", api_token=TOKEN)
    with served(create_app(settings, brain)) as url:
        with openai.OpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0) as client:
            assert client.chat.completions.create(model="x", messages=ASKED).choices[0].message.content == WHOLE
        with openai.OpenAI(base_url=f"{url}/v1", api_key="wrong", max_retries=0) as client:
            for ask in (client.models.list, lambda: client.chat.completions.create(model="x", messages=ASKED)):
                with pytest.raises(openai.AuthenticationError):
                    ask()


def test_a_foreign_page_cannot_ask(url):
    body = {"messages": ASKED}
    assert (
        httpx.post(f"{url}/v1/chat/completions", json=body, headers={"Origin": "https://x.example"}).status_code == 403
    )
    assert httpx.post(f"{url}/v1/chat/completions", json=body, headers={"Host": "evil.example"}).status_code == 400


def test_hanging_up_on_a_stream_ends_the_model_s_work(ollama):
    ollama.fail(Fault.SILENT, "/api/chat")
    patient = settings_for(ollama.url, llm_read_timeout=30, request_timeout=40)
    with fill(Brain(patient)) as brain, served(create_app(brain=brain)) as url:
        with httpx.stream("POST", f"{url}/v1/chat/completions", json={"messages": ASKED, "stream": True}) as response:
            received = response.iter_bytes()
            next(received)
            while not ollama.calls("/api/chat"):
                time.sleep(0.01)
        left = time.monotonic()
        while not ollama.hang_ups:
            assert time.monotonic() - left < 5
            time.sleep(0.01)
