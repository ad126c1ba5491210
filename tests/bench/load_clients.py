"""Many clients at once, in a process of their own.

    python -m bench.load_clients SECONDS CLIENTS SIZE SEED URL...

Each client keeps one connection and asks its next question as soon as it has an answer; clients are dealt to the URLs
in turn. Printed as JSON: answers a second, and how many answers were not of status 200.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

from bench.corpus import questions

WARM_UP = 0.5  # seconds that are not counted
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class Tally:
    answered = failed = 0


async def client(url: str, asked: Iterator[str], tally: Tally, begin: float, end: float) -> None:
    host, port = urlsplit(url).netloc.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    while time.monotonic() < end:
        target = f"/brain/query?q={quote(next(asked))}"
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        await reader.readexactly(int(length.group(1)) if length else 0)
        if begin <= time.monotonic() < end:
            tally.answered += 1
            tally.failed += b" 200 " not in head.partition(b"\r\n")[0]
    writer.close()


async def load(seconds: float, clients: int, size: int, seed: int, urls: list[str]) -> dict[str, float]:
    tally, asked = Tally(), iter(questions(20_000, size, seed))
    begin = time.monotonic() + WARM_UP
    end = begin + seconds
    await asyncio.gather(*(client(urls[n % len(urls)], asked, tally, begin, end) for n in range(clients)))
    return {"a_second": tally.answered / seconds, "failed": tally.failed}


def main() -> None:
    seconds, clients, size, seed, *urls = sys.argv[1:]
    print(json.dumps(asyncio.run(load(float(seconds), int(clients), int(size), int(seed), urls))))


if __name__ == "__main__":
    main()
