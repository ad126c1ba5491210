"""An Ollama-protocol server in a thread, whose faults can be switched while it runs.

The real client library is exercised against it: it speaks HTTP over real sockets, and its faults are those of real
servers and networks.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, Self

from brain_pipeline.testing import HashedTokenEmbedder

POLL = 0.01
BUSY = "server busy, please try again.  maximum pending requests exceeded"
RUNNER = "llama runner process has terminated: exit status 2"
HTML = b"<!DOCTYPE html><html><body><h1>Welcome to your router</h1></body></html>"


class Fault(Enum):
    """What can go wrong. Faults of embeddings leave chat alone, and the other way round."""

    SILENT = auto()  # accepts the request and never answers
    DRIP = auto()  # a right answer, one byte every `drip_seconds`
    SLOW = auto()  # a right answer after `delay` seconds
    CUT = auto()  # hangs up in the middle of the answer
    MALFORMED = auto()  # JSON that ends too early
    NOT_AN_OBJECT = auto()  # JSON of another shape
    HTML = auto()  # a page of some other program, status 200
    HTML_404 = auto()  # the same, status 404
    MISSING = auto()  # 404: the model is not there
    BROKEN = auto()  # 500 with an error line
    BUSY = auto()  # 503, with Retry-After when `retry_after` is set
    REDIRECT = auto()  # 307 to `location`
    NAN = auto()  # embeddings: the literal NaN
    NULL = auto()  # embeddings: null in place of a number
    ZERO = auto()  # embeddings: a vector of zeros
    NO_NUMBERS = auto()  # embeddings: an empty vector
    WRONG_COUNT = auto()  # embeddings: one too few
    WRONG_DIMENSION = auto()  # embeddings: another length than `dimension`
    RAGGED = auto()  # embeddings: the last vector is shorter
    EMPTY = auto()  # chat: no text
    UNFINISHED = auto()  # chat stream: ends properly but without its last line
    STREAM_ERROR = auto()  # chat stream: an error line after some text


@dataclass(frozen=True)
class Request:
    """A request as it arrived."""

    method: str
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    connection: int


@dataclass
class OllamaServer:
    """The server. ``with OllamaServer() as server:`` starts it; ``fail`` and ``heal`` switch its faults.

    ``reply`` is what chat answers: a text, or a callable over the messages (dicts of role and content). ``refuse``
    stops listening, so that connections are refused; ``listen`` starts again at the same address.
    """

    dimension: int = 384
    models: tuple[str, ...] = ("nomic-embed-text:latest", "qwen2.5-coder:7b")
    reply: str | Callable[[list[dict[str, Any]]], str] = "You need a signed slip and $5."
    delay: float = 1.0
    drip_seconds: float = 1.0
    retry_after: str | None = None
    location: str = "http://127.0.0.1:1/elsewhere"
    requests: list[Request] = field(default_factory=list)
    hang_ups: int = 0
    connections: int = 0
    _faults: dict[str, Fault] = field(default_factory=dict)
    _port: int = 0

    def __enter__(self) -> Self:
        self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def fail(self, fault: Fault, path: str = "") -> None:
        """Switch ``fault`` on for requests whose path begins with ``path``, as ``/api/chat``."""
        self._faults[path] = fault

    def heal(self) -> None:
        self._faults.clear()

    def fault_of(self, path: str) -> Fault | None:
        matching = [prefix for prefix in self._faults if path.startswith(prefix)]
        return self._faults[max(matching, key=len)] if matching else None

    def calls(self, path: str) -> int:
        """How many requests for ``path`` have arrived."""
        return sum(request.path == path for request in self.requests)

    def listen(self) -> None:
        handler = type("BoundHandler", (_Handler,), {"state": self})
        self._http = _Listener(("127.0.0.1", self._port), handler)
        self._port = self._http.server_port
        self._thread = threading.Thread(target=self._http.serve_forever, args=(POLL,), name="ollama-server")
        self._thread.start()

    def refuse(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.hang_up()
        self._http.server_close()

    def vectors(self, texts: list[str]) -> list[list[float]]:
        embedder = HashedTokenEmbedder(dimension=self.dimension)
        return [embedder.get_text_embedding(text) for text in texts]


class _Listener(ThreadingHTTPServer):
    daemon_threads = False  # server_close waits for them, so that no test leaves a thread behind
    request_queue_size = 64

    def __init__(self, *args: Any) -> None:
        self.closing = threading.Event()
        self.open: set[socket.socket] = set()
        super().__init__(*args)

    def hang_up(self) -> None:
        """End every connection, also those that wait on purpose."""
        self.closing.set()
        for connection in list(self.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what many tests are about; anything else must be seen."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _HungUp(Exception):
    pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: OllamaServer
    server: _Listener
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.state.connections += 1
        self.number = self.state.connections

    def finish(self) -> None:
        with suppress(ConnectionError):
            super().finish()

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw) if raw else {}
        self.state.requests.append(
            Request(self.command, self.path, body, {k.lower(): v for k, v in self.headers.items()}, self.number)
        )
        try:
            self._respond(body, self.state.fault_of(self.path))
        except (_HungUp, ConnectionError):
            self.state.hang_ups += not self.server.closing.is_set()
            self.close_connection = True

    def _respond(self, body: dict[str, Any], fault: Fault | None) -> None:
        if canned := self._canned(body).get(fault):
            self._send(*canned)
        elif fault is Fault.SILENT:
            self._wait(float("inf"))
        elif fault is Fault.SLOW:
            self._wait(self.state.delay)
            self._serve(body, None)
        else:
            self._serve(body, fault)

    def _canned(self, body: dict[str, Any]) -> dict[Fault | None, tuple[Any, ...]]:
        after = {"Retry-After": self.state.retry_after} if self.state.retry_after else {}
        return {
            Fault.HTML: (200, HTML, {"Content-Type": "text/html"}),
            Fault.HTML_404: (404, HTML, {"Content-Type": "text/html"}),
            Fault.MISSING: (404, {"error": f"model '{body.get('model', '')}' not found"}),
            Fault.BROKEN: (500, {"error": RUNNER}),
            Fault.BUSY: (503, {"error": BUSY}, after),
            Fault.REDIRECT: (307, b"", {"Location": self.state.location}),
            Fault.MALFORMED: (200, b'{"model": "m", "embeddings": [[0.1,'),
            Fault.NOT_AN_OBJECT: (200, ["not", "an", "object"]),
        }

    def _serve(self, body: dict[str, Any], fault: Fault | None) -> None:
        if self.path == "/api/version":
            self._send(200, {"version": "0.0.0-test"}, fault=fault)
        elif self.path in {"/api/tags", "/api/ps"}:
            self._send(200, {"models": [{"name": name, "model": name} for name in self.state.models]}, fault=fault)
        elif not self._has(body.get("model", "")):
            self._send(404, {"error": f"model '{body.get('model', '')}' not found"})
        elif self.path == "/api/show":
            self._send(200, {"model_info": {"test.context_length": 2048}, "capabilities": []}, fault=fault)
        elif self.path == "/api/embed":
            self._send(200, {"model": body["model"], "embeddings": self._embeddings(body, fault)}, fault=fault)
        elif self.path == "/api/chat":
            self._chat(body, fault)
        else:
            self._send(404, b"404 page not found", {"Content-Type": "text/plain"})

    def _has(self, name: str) -> bool:
        return name in self.state.models or f"{name}:latest" in self.state.models

    def _embeddings(self, body: dict[str, Any], fault: Fault | None) -> list[list[Any]]:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors: list[list[Any]] = self.state.vectors(texts)
        match fault:
            case Fault.NAN:
                vectors[-1][0] = float("nan")
            case Fault.NULL:
                vectors[-1][0] = None
            case Fault.ZERO:
                vectors[-1] = [0.0] * self.state.dimension
            case Fault.NO_NUMBERS:
                vectors[-1] = []
            case Fault.WRONG_COUNT:
                vectors.pop()
            case Fault.WRONG_DIMENSION:
                vectors = [[*vector, 0.0] for vector in vectors]
            case Fault.RAGGED:
                vectors[-1] = vectors[-1][:-1]
        return vectors

    def _chat(self, body: dict[str, Any], fault: Fault | None) -> None:
        messages = body.get("messages") or []
        if not messages:
            self._send(200, _part(body, "", done=True, done_reason="load"), fault=fault)
            return
        reply = self.state.reply if isinstance(self.state.reply, str) else self.state.reply(messages)
        text = "" if fault is Fault.EMPTY else reply
        if body.get("stream") is False:
            self._send(200, _part(body, text, done=True, done_reason="stop"), fault=fault)
        else:
            self._stream(body, [text[at : at + 4] for at in range(0, len(text), 4)], fault)

    def _stream(self, body: dict[str, Any], pieces: list[str], fault: Fault | None) -> None:
        lines = [_part(body, piece, done=False) for piece in pieces]
        if fault is Fault.STREAM_ERROR:
            lines = [*lines[:2], {"error": RUNNER}]
        elif fault is not Fault.UNFINISHED:
            lines.append(_part(body, "", done=True, done_reason="stop"))
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        self._head(200, {"Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked"})
        for part in [data[:60]] if fault is Fault.CUT else self._parts(data.splitlines(keepends=True), fault):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        if fault is Fault.CUT:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _send(
        self, status: int, payload: Any, headers: Mapping[str, str] = MappingProxyType({}), fault: Fault | None = None
    ) -> None:
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self._head(status, {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers})
        if fault is Fault.CUT:
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
            return
        for part in self._parts([data], fault):
            self.wfile.write(part)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _parts(self, parts: Iterable[bytes], fault: Fault | None) -> Iterator[bytes]:
        for part in parts:
            if fault is not Fault.DRIP:
                yield part
                continue
            for byte in part:
                self._wait(self.state.drip_seconds)
                yield bytes([byte])

    def _wait(self, seconds: float) -> None:
        """Sleep, but notice a client that hangs up and a server that is to stop."""
        waited = 0.0
        while waited < seconds:
            readable, _, _ = select.select([self.connection], [], [], min(POLL, seconds - waited))
            if self.server.closing.is_set() or (readable and not self.connection.recv(1, socket.MSG_PEEK)):
                raise _HungUp
            waited += POLL


def _part(body: dict[str, Any], text: str, **more: Any) -> dict[str, Any]:
    return {"model": body["model"], "message": {"role": "assistant", "content": text}, **more}


@contextmanager
def refused_url() -> Iterator[str]:
    """An address at which nothing listens, kept free for as long as the test runs."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@contextmanager
def black_holed_url() -> Iterator[str]:
    """An address that answers no connection attempt at all, as a sleeping PC behind a VPN does.

    Linux drops connection attempts to a socket whose backlog is full.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        with ExitStack() as fillers:
            with suppress(TimeoutError):
                while True:
                    filler = fillers.enter_context(socket.socket())
                    filler.settimeout(0.1)
                    filler.connect(listener.getsockname())
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
