"""How soon a person sees something: the time to the first event of a streamed answer, against retrieval alone.

    python tests/bench/bench_first_event.py [--rounds 200] [--emails 2000]

Both answer the same questions in turn, with the packaged embedding model and a language model that is slow to begin:
the brain's retriever and postprocessors as a host calls them in its own process, and ``GET /brain/query/stream`` as a
client in another process reads it. Printed, and written to ``tests/bench/results/first_event.json``: the median of each
in milliseconds, and their ratio, which is to stay below 1.3.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import random
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

import httpx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from household import fill, mail  # noqa: E402  (the tests' own helpers)
from live import served  # noqa: E402
from ollama_server import Fault, OllamaServer  # noqa: E402

from api import create_app  # noqa: E402
from brain_pipeline.brain import Brain  # noqa: E402
from brain_pipeline.settings import Settings  # noqa: E402

WARM_UP = 5  # rounds that are not counted
RESULT = HERE / "results" / "first_event.json"
WORDS = ("school", "zoo", "trip", "slip", "soccer", "game", "field", "lunch", "bus", "money", "recital", "dentist")


def letters(number: int, chance: random.Random):
    for n in range(number):
        words = " ".join(f"{chance.choice(WORDS)}{chance.randrange(300)}" for _ in range(chance.randrange(40, 200)))
        yield mail(f"Notice {n} about {chance.choice(WORDS)}", words, message_id=f"<{n}@school.example>")


def milliseconds(began: float) -> float:
    return (time.perf_counter() - began) * 1000


async def retrieval(brain: Brain, question: str) -> float:
    began = time.perf_counter()
    nodes = await brain.retriever.aretrieve(question)
    for postprocessor in brain.postprocessors:
        nodes = postprocessor.postprocess_nodes(nodes)
    return milliseconds(began)


def first_event(url: str, question: str) -> float:
    """In the client's process."""
    began = time.perf_counter()
    with client(url).stream("GET", "/brain/query/stream", params={"q": question}) as response:
        text = next(response.iter_text())
        took = milliseconds(began)
    if not text.startswith("event: sources"):
        raise SystemExit(f"The first event is {text[:60]!r}.")
    return took


@cache
def client(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, timeout=30)


def measure(brain: Brain, url: str, rounds: int, chance: random.Random) -> dict[str, float]:
    alone, streamed = [], []
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as elsewhere, asyncio.Runner() as runner:
        for number in range(WARM_UP + rounds):
            question = f"When is the {chance.choice(WORDS)}{chance.randrange(300)} {chance.choice(WORDS)}?"
            took = runner.run(retrieval(brain, question)), elsewhere.submit(first_event, url, question).result()
            if number >= WARM_UP:
                alone.append(took[0])
                streamed.append(took[1])
    medians = statistics.median(alone), statistics.median(streamed)
    return {"retrieval_ms": medians[0], "first_event_ms": medians[1], "ratio": medians[1] / medians[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--emails", type=int, default=2_000)
    given = parser.parse_args()
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder, OllamaServer(delay=0.2) as ollama:
        settings = Settings.load(
            data_dir=folder,
            embed_provider="embedded",
            embed_model="all-minilm",
            llm_url=ollama.url,
            warm_up=False,
            llm_concurrency=64,
        )
        with fill(Brain(settings), letters(given.emails, chance)) as brain, served(create_app(settings, brain)) as url:
            ollama.fail(Fault.SLOW, "/api/chat")
            figures = measure(brain, url, given.rounds, chance)
    machine = {"python": platform.python_version(), "chromadb": version("chromadb"), "fastapi": version("fastapi")}
    result = {"emails": given.emails, "rounds": given.rounds, **figures, **machine}
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
