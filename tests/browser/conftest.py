"""A real browser on the real page; the language model speaks at the test's pace."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from household import HOUSEHOLD, fill
from letters import SCHOOL
from live import served
from playwright.sync_api import sync_playwright
from pydantic import PrivateAttr

from api import create_app
from brain_pipeline import Settings
from brain_pipeline.brain import Brain
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

HERE = Path(__file__).parent
AXE = HERE / "node_modules" / "axe-core" / "axe.min.js"


class PacedLLM(ScriptedLLM):
    """A scripted model that says only as many words as it is allowed."""

    _allowed: float = PrivateAttr(default=float("inf"))

    def allow(self, words):
        self._allowed = words

    async def astream_chat(self, messages, **_):
        async def words():
            for number, response in enumerate(self._stream_chat(messages)):
                while number >= self._allowed:  # noqa: ASYNC110  (another thread allows more)
                    await asyncio.sleep(0.01)
                yield response

        return words()


@pytest.fixture
def script():
    """What the model answers; tests put other replies in place."""
    return ["Every child needs a signed permission slip, $5 and the orange class shirt by Friday."]


@pytest.fixture
def llm(script):
    return PacedLLM(lambda _messages: script[0])


@pytest.fixture
def settings(tmp_path):
    # The tests' embedder gives low cosines for what is unrelated, as this model does, and is judged as this model is.
    return Settings.load(data_dir=tmp_path, embed_model="all-minilm", timezone="America/Chicago", warm_up=False)


@pytest.fixture
def brain(settings, llm):
    with fill(Brain(settings, embedder=HashedTokenEmbedder(), llm=llm), (*HOUSEHOLD, *SCHOOL)) as filled:
        yield filled


@pytest.fixture
def url(brain):
    with served(create_app(brain.settings, brain)) as url:
        yield url


@pytest.fixture(scope="session")
def chromium():
    with sync_playwright() as playwright:
        # Chromium's own sandbox refuses to work for root, as in containers.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, url):
    """Opens the page as ``visit(path="/", **options_of_the_context)``.

    Whatever a test does, no script fails, nothing breaks the content security policy, no request leaves our server.
    """
    contexts, wrong = [], []

    def open_page(path="/", base=url, **options):
        options = {"viewport": {"width": 900, "height": 900}, "locale": "en-GB", "reduced_motion": "reduce"} | options
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(5_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: "Policy" in message.text and wrong.append(message.text))
        page.on("request", lambda request: request.url.startswith((base, "data:")) or wrong.append(request.url))
        page.goto(base + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture
def violations():
    """What axe-core finds wrong with a page, as readable lines."""
    script = AXE.read_text()

    def found(page):
        page.evaluate(script)
        results = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{rule['id']}: {node['target']} {node['failureSummary']}"
            for rule in results["violations"]
            for node in rule["nodes"]
        ]

    return found


@pytest.fixture
def picture():
    """Keeps a picture of the page among those the README shows."""

    def take(page, name):
        for varying in page.locator("#took:not(:empty), .wide:not(:empty)").all():
            varying.evaluate("one => { one.hidden = true; }")
        page.screenshot(path=HERE / "screenshots" / f"{name}.png", animations="disabled", caret="hide")

    return take
