"""Model servers of a known speed, in a process of their own: Ollama's protocol, answers without a model.

    python -m bench.model_server [--embed MILLISECONDS] [--think MILLISECONDS]

It prints its URL. ``--embed`` is the time an embedding takes for each text, one request at a time, as on one graphics
card; ``--think`` is how long every request takes besides, any number at once. Without them it answers as fast as it
can: a bare protocol, with vectors rendered beforehand. ``GET /busy`` tells the seconds spent embedding so far.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from functools import cache
from typing import Any

from bench.corpus import place, vector_at

_ANSWER = re.compile(r"Please be there [^.]{10,80}\.")  # every text of the corpus has one such sentence
_LAST = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 1,
    "load_duration": 1,
    "prompt_eval_count": 400,
    "prompt_eval_duration": 1,
    "eval_count": 24,
    "eval_duration": 1,
}


@cache
def rendered(topic: int, variant: int) -> str:
    return json.dumps([round(x, 6) for x in vector_at(topic, variant).tolist()])


class Models:
    """What is answered, and how long it takes."""

    def __init__(self, embed: float, think: float) -> None:
        self._embed, self._think = embed / 1000, think / 1000
        self._busy = 0.0
        self._card = asyncio.Lock()

    async def answer(self, path: str, body: bytes) -> tuple[str, list[str]]:
        """Content type and pieces of the response to a request."""
        if self._think and path in {"/api/embed", "/api/chat"}:
            await asyncio.sleep(self._think)
        if path == "/api/embed":
            return "application/json", [await self._embedded(json.loads(body))]
        if path == "/api/chat":
            return _chatted(json.loads(body))
        return "application/json", [json.dumps({"busy": self._busy, "version": "bench"})]

    async def _embedded(self, request: dict[str, Any]) -> str:
        given = request["input"]
        texts = [given] if isinstance(given, str) else given
        if self._embed:
            async with self._card:
                began = time.monotonic()
                await asyncio.sleep(self._embed * len(texts))
                self._busy += time.monotonic() - began
        vectors = ",".join(rendered(*place(text)) for text in texts)
        return f'{{"model":"bench","embeddings":[{vectors}]}}'


def _chatted(request: dict[str, Any]) -> tuple[str, list[str]]:
    said = "\n".join(message.get("content") or "" for message in request["messages"])
    found = _ANSWER.search(said)
    reply = f"That is what the letter says. {found.group() if found else 'There is no day in it.'}"
    if not request.get("stream", True):
        return "application/json", [_message(reply, **_LAST)]
    pieces = [_message(word, done=False) + "\n" for word in re.findall(r"\s*\S+", reply)]
    return "application/x-ndjson", [*pieces, _message("", **_LAST) + "\n"]


def _message(content: str, **more: Any) -> str:
    about = {"model": "bench", "created_at": "2025-09-15T00:00:00Z"}
    return json.dumps({**about, "message": {"role": "assistant", "content": content}, **more})


class Connection(asyncio.Protocol):
    """One kept connection, one request at a time."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._received = b""
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, rest = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        length = int(found.group(1)) if found else 0
        if len(rest) >= length:
            self._received = rest[length:]
            self._answering = asyncio.create_task(self._answer(head.split(b" ", 2)[1].decode(), rest[:length]))

    async def _answer(self, path: str, body: bytes) -> None:
        kind, pieces = await self._models.answer(path, body)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n"
        if kind == "application/json":
            whole = pieces[0].encode()
            self._transport.write(f"{head}Content-Length: {len(whole)}\r\n\r\n".encode() + whole)
        else:
            framed = "".join(f"{len(piece.encode()):x}\r\n{piece}\r\n" for piece in pieces)
            self._transport.write(f"{head}Transfer-Encoding: chunked\r\n\r\n{framed}0\r\n\r\n".encode())


async def serve(embed: float, think: float) -> None:
    models = Models(embed, think)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(models), "127.0.0.1", 0, backlog=512)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embed", type=float, default=0.0)
    parser.add_argument("--think", type=float, default=0.0)
    given = parser.parse_args()
    asyncio.run(serve(given.embed, given.think))


if __name__ == "__main__":
    main()
