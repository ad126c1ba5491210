"""How soon a person sees something: the first event of a streamed answer, against retrieval alone.

    python -m bench.first_event DATABASE MODELS_URL CHUNKS QUESTIONS

Retrieval is what a host calls in its own process, retriever and postprocessors; the stream is read by a client in
another. Printed as JSON: the milliseconds of each.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

import httpx
from live import served

from api import create_app
from bench.corpus import questions
from bench.figures import interleaved
from brain_pipeline.brain import Brain
from brain_pipeline.settings import Settings

WARM_UP = 10


async def retrieval(brain: Brain, question: str) -> float:
    began = time.perf_counter()
    nodes = await brain.retriever.aretrieve(question)
    for postprocessor in brain.postprocessors:
        nodes = postprocessor.postprocess_nodes(nodes)
    return (time.perf_counter() - began) * 1000


def first_event(url: str, question: str) -> float:
    """In the client's process."""
    began = time.perf_counter()
    with client(url).stream("GET", "/brain/query/stream", params={"q": question}) as response:
        text = next(response.iter_text())
        took = (time.perf_counter() - began) * 1000
    if not text.startswith("event: sources"):
        raise SystemExit(f"The first event is {text[:60]!r}.")
    return took


@cache
def client(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, timeout=30)


def main() -> None:
    database, models_url, chunks, number = sys.argv[1:]
    settings = Settings.load(chroma_db_path=database, ollama_base_url=models_url, llm_url=models_url, warm_up=False)
    with (
        Brain(settings) as brain,
        served(create_app(settings, brain)) as url,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as elsewhere,
        asyncio.Runner() as loop,
    ):
        contenders = {
            "brain": lambda question: elsewhere.submit(first_event, url, question).result(),
            "retrieval alone": lambda question: loop.run(retrieval(brain, question)),
        }
        asked = questions(WARM_UP + int(number), int(chunks), seed=4)
        print(json.dumps(interleaved(contenders, asked, warm_up=WARM_UP)))


if __name__ == "__main__":
    main()
