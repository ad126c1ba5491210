"""Ten minutes of a household's worst day: many clients, and a model server and a service that are killed.

``make soak`` runs it. 200 clients ask without pause while mail comes in one by one; every 30 seconds the model server
or the service itself is ended with ``kill -9`` and started again. It fails on a response that is neither a right answer
nor a clean refusal, and on mail that was taken in and can't be found at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import socket
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from email.message import EmailMessage
from multiprocessing.process import BaseProcess
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))
from ollama_server import OllamaServer
from service import Service

from brain_pipeline.records import NOT_FOUND, UNAVAILABLE

REPLY = "It is all in the mail."
CLIENTS, PAUSE = 200, 30.0  # at once; seconds between two killings
SLOWEST = 40.0  # seconds a response may take: the service's whole limit, and some


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def serve_models(port: int) -> None:
    """A model server that answers until it is killed."""
    with OllamaServer(reply=REPLY, _port=port) as server:
        while True:
            time.sleep(1)
            server.requests.clear()


class ModelServer:
    """The model server in a process of its own."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: BaseProcess | None = None

    def start(self) -> None:
        self._process = multiprocessing.get_context("spawn").Process(target=serve_models, args=(self.port,))
        self._process.start()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()


@dataclass
class Day:
    """What happened: responses by kind, what was wrong, which mail was taken in."""

    end: float
    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    taken_in: list[int] = field(default_factory=list)
    slowest: float = 0.0


def ticket(number: int) -> str:
    """A word that stands in one letter only."""
    return f"zx{number:05}"


def question(number: int) -> str:
    return f"What to bring for errand {ticket(number)}?"


def letter(number: int) -> bytes:
    mail = EmailMessage()
    mail["Subject"] = f"Errand {ticket(number)}"
    mail["From"] = "Ms. Okafor <okafor@school.example>"
    mail["Date"] = "Mon, 15 Sep 2025 15:42:07 -0500"
    mail["Message-ID"] = f"<errand-{number}@school.example>"
    mail.set_content(f"For errand {ticket(number)} please bring the blue folder to the north gate.\n")
    return bytes(mail)


def judged(response: httpx.Response, about: int | None, day: Day) -> str:
    """What kind of response to a question about letter ``about`` it is; what is no kind is kept as wrong."""
    body = response.json()
    if response.status_code == 200 and body["answer"] == REPLY and body["sources"]:
        return "answered"
    if response.status_code == 200 and body["answer"] == NOT_FOUND and about is None:
        return "nothing there yet"
    if response.status_code == 503 and body["answer"] == UNAVAILABLE and response.headers.get("Retry-After"):
        return "refused"
    day.wrong.append(f"{response.status_code}: {response.text[:200]}")
    return "wrong"


async def ask(client: httpx.AsyncClient, day: Day) -> None:
    while time.monotonic() < day.end:
        about = random.choice(day.taken_in) if day.taken_in else None
        asked = question(about or 0)
        began = time.monotonic()
        try:
            response = await client.get("/brain/query", params={"q": asked})
        except httpx.TransportError as error:  # the service was killed under us
            day.seen[type(error).__name__] += 1
            if isinstance(error, httpx.ReadTimeout):
                day.wrong.append("a request that was never answered")
            await asyncio.sleep(0.5)
            continue
        day.slowest = max(day.slowest, time.monotonic() - began)
        kind = judged(response, about, day)
        day.seen[kind] += 1
        if kind == "refused":
            await asyncio.sleep(0.2)


async def bring_in(client: httpx.AsyncClient, day: Day) -> None:
    """Brings letters in, each again and again until the service says that it has it."""
    number = 0
    while time.monotonic() < day.end:
        files = {"files": (f"{number}.eml", letter(number), "message/rfc822")}
        try:
            response = await client.post("/brain/ingest", files=files)
        except httpx.TransportError:
            await asyncio.sleep(0.5)
            continue
        if response.status_code == 200:
            day.taken_in.append(number)
            number += 1
        await asyncio.sleep(0.2)


async def kill(service: Service, models: ModelServer, day: Day) -> None:
    for victim in (models, service) * 1_000:
        await asyncio.sleep(PAUSE)
        if time.monotonic() > day.end - 10:
            return
        victim.kill()
        await asyncio.sleep(2)
        await asyncio.to_thread(victim.start)


async def live(service: Service, models: ModelServer, seconds: float) -> Day:
    day = Day(end=time.monotonic() + seconds)
    limits = httpx.Limits(max_connections=CLIENTS + 10, max_keepalive_connections=CLIENTS)
    async with httpx.AsyncClient(base_url=service.url, timeout=SLOWEST, limits=limits) as client:
        clients = (ask(client, day) for _ in range(CLIENTS))
        await asyncio.gather(bring_in(client, day), kill(service, models, day), *clients)
    return day


def lost(service: Service, day: Day) -> list[int]:
    """The letters that were taken in and can't be found by their ticket."""
    with httpx.Client(base_url=service.url, timeout=60) as client:
        held = client.get("/brain/stats").json()
        missing = [] if held["total_documents"] >= len(day.taken_in) else [-1]
        for number in day.taken_in:
            response = client.get("/brain/query", params={"q": question(number)})
            subjects = [source["subject"] for source in response.json()["sources"]]
            if f"Errand {ticket(number)}" not in subjects:
                missing.append(number)
    return missing


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=600.0)
    seconds = arguments.parse_args().seconds
    models = ModelServer()
    models.start()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        environment = {
            "CHROMA_DB_PATH": f"{folder}/chroma",
            "OLLAMA_BASE_URL": f"http://127.0.0.1:{models.port}",
            "LLM_URL": f"http://127.0.0.1:{models.port}",
            "BRAIN_REQUEST_TIMEOUT": "30",
        }
        service = Service(free_port(), environment, Path(folder) / "log")
        try:
            with service:
                day = asyncio.run(live(service, models, seconds))
                missing = lost(service, day)
        finally:
            models.kill()
    sys.stdout.write(
        f"{dict(day.seen)}\nslowest response {day.slowest:.1f} s\n{len(day.taken_in)} mails taken in, lost: {missing}\n"
        f"wrong: {day.wrong[:5]}\n"
    )
    return 1 if missing or day.wrong or not day.seen["answered"] else 0


if __name__ == "__main__":
    sys.exit(main())
