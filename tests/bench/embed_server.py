"""An embedding server of a known speed, in a process of its own: Ollama's protocol, vectors without a model.

    python tests/bench/embed_server.py MILLISECONDS_PER_TEXT [DIMENSION]

It prints its URL. ``GET /busy`` answers the seconds it has spent embedding so far.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from zlib import crc32

import numpy as np

VECTORS = 4096  # distinct ones, rendered beforehand so that the server's own work is small


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seconds = 0.002
    rendered: tuple[str, ...] = ()
    busy = 0.0
    lock = threading.Lock()

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._send(json.dumps({"busy": Handler.busy, "version": "bench"}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        with Handler.lock:  # one model, one batch at a time
            began = time.monotonic()
            time.sleep(self.seconds * len(texts))
            Handler.busy += time.monotonic() - began
        vectors = ",".join(self.rendered[crc32(text.encode()) % VECTORS] for text in texts)
        self._send(f'{{"model":"bench","embeddings":[{vectors}]}}'.encode())

    def _send(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    dimension = int(sys.argv[2]) if len(sys.argv) > 2 else 768
    Handler.seconds = float(sys.argv[1]) / 1000
    vectors = np.random.default_rng(0).normal(size=(VECTORS, dimension))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    Handler.rendered = tuple(json.dumps([round(x, 6) for x in vector]) for vector in vectors.tolist())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
