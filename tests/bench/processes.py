"""Starting what is measured, each in a process of its own, and asking it over HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

TESTS = Path(__file__).parents[1]
_URL = re.compile(r"http://[\w.]+:\d+")
_PATIENCE = 600  # seconds a service has to make its keyword index


class Failed(SystemExit):
    """Something that is measured did not do its work."""


class NotReady(Failed):
    """It says that it can do its work later."""


@dataclass
class Service:
    """A running process that serves HTTP, and one kept connection to it."""

    process: subprocess.Popen[str]
    url: str

    def __post_init__(self) -> None:
        self.reconnect()

    def reconnect(self) -> None:
        self._connection = HTTPConnection(urlsplit(self.url).netloc, timeout=60)

    def get(self, path: str, **parameters: str) -> Any:
        """The JSON that it answers; ``Failed`` when it does not answer with status 200."""
        return json.loads(self._raw(f"{path}?{urlencode(parameters)}"))

    def timed(self, path: str, **parameters: str) -> float:
        """How long it takes to answer, in milliseconds."""
        target = f"{path}?{urlencode(parameters)}"
        began = time.perf_counter()
        self._raw(target)
        return (time.perf_counter() - began) * 1000

    def asked(self, question: str, **parameters: str) -> float:
        """How long an answer takes, in milliseconds; ``Failed`` when it is none, which takes less."""
        began = time.perf_counter()
        body = self._raw(f"/brain/query?{urlencode({'q': question, **parameters})}")
        took = (time.perf_counter() - began) * 1000
        if not json.loads(body)["sources"]:
            raise Failed(f"{self.url} does not answer {question!r} {parameters or ''}.")
        return took

    def _raw(self, target: str) -> bytes:
        self._connection.request("GET", target)
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            kind = NotReady if response.status == 503 else Failed
            raise kind(f"{self.url}{target} answers with status {response.status}: {body[:300]!r}")
        return body

    def memory(self) -> float:
        """Memory that is its own, not a file's, in bytes; a file's pages are the system's to drop."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024.0 for line in status.splitlines() if line.startswith("RssAnon"))


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """That of our processes: our own settings and no one else's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BRAIN_", "CHROMA_", "OLLAMA_"))}
    return {**kept, "PYTHONPATH": str(TESTS), "ANONYMIZED_TELEMETRY": "False", **(more or {})}


@contextmanager
def service(
    command: Sequence[str], more: Mapping[str, str] | None = None, *, under: Sequence[str] = ()
) -> Iterator[Service]:
    """Runs ``python`` with these arguments until the end, ``under`` a profiler perhaps; it must print its URL."""
    process = subprocess.Popen(
        [*under, sys.executable, *command],
        env=environment(more),
        stdout=subprocess.PIPE,
        text=True,
        cwd=TESTS.parent,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        url = next((found.group() for line in process.stdout if (found := _URL.search(line))), None)
        if url is None:
            raise Failed(f"{' '.join(command)} ended with status {process.wait()} before it served anything.")
        yield Service(process, url)
    finally:
        _end(process, signal.SIGINT if under else signal.SIGTERM)  # at which a profiler writes what it has seen


@contextmanager
def model_server(*, embed: float = 0.0, think: float = 0.0) -> Iterator[Service]:
    """Both models, as fast as can be or with these milliseconds; see ``bench.model_server``."""
    with service(["-m", "bench.model_server", "--embed", str(embed), "--think", str(think)]) as models:
        yield models


@contextmanager
def peer(name: str, database: str, models: Service) -> Iterator[Service]:
    """``floor``, ``stock`` or ``citation``; see ``bench.peers``."""
    with service(["-m", "bench.peers", name, database, models.url]) as running:
        yield running


@contextmanager
def brain(database: str, models: Service, *, under: Sequence[str] = (), **settings: str) -> Iterator[Service]:
    """``brain serve`` over a database or a Chroma server, its models loaded."""
    surroundings = brain_environment(database, models, **settings)
    with service(["-m", "brain_pipeline.cli", "serve"], surroundings, under=under) as running:
        _await(running, "/brain/query", q="warm")
        yield running


def brain_environment(database: str, models: Service, **settings: str) -> dict[str, str]:
    """The settings of a brain as environment variables."""
    where = {"CHROMA_URL": database} if database.startswith("http") else {"CHROMA_DB_PATH": database}
    ours = {"OLLAMA_BASE_URL": models.url, "LLM_URL": models.url, "BRAIN_PORT": "0", "BRAIN_LOG_LEVEL": "warning"}
    return {**where, **ours, **settings}


def _await(running: Service, path: str, **parameters: str) -> None:
    """Waits until it answers. The brain's first answer may wait for its keyword index to be made."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            running.get(path, **parameters)
        except (NotReady, OSError):
            running.reconnect()
            if time.monotonic() > deadline or running.process.poll() is not None:
                raise
            time.sleep(0.1)
        else:
            return


def _end(process: subprocess.Popen[str], how: signal.Signals = signal.SIGTERM) -> None:
    """Ends a process and those that it started."""
    try:
        os.killpg(process.pid, how)
        process.wait(20)
    except ProcessLookupError:
        process.wait()
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextmanager
def chroma_server(folder: str) -> Iterator[Service]:
    """``chroma run`` over a database."""
    chroma = str(Path(sys.executable).with_name("chroma"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [chroma, "run", "--path", folder, "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        command,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    running = Service(process, f"http://127.0.0.1:{port}")
    try:
        _await(running, "/api/v2/heartbeat")
        yield running
    finally:
        _end(process)


def run_module(module: str, *arguments: str) -> Any:
    """The JSON that a module of ours prints as a process of its own."""
    command = [sys.executable, "-m", module, *arguments]
    printed = subprocess.run(command, check=True, env=environment(), stdout=subprocess.PIPE, text=True).stdout
    return json.loads(printed)


def make_keyword_index(database: str) -> None:
    """Has the brain open a database once, in a process that ends."""
    command = [sys.executable, "-m", "brain_pipeline.cli", "stats"]
    surroundings = environment({"CHROMA_DB_PATH": database})
    subprocess.run(command, check=True, env=surroundings, stdout=subprocess.DEVNULL)
