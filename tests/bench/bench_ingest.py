"""How busy ingestion keeps the embedding server, against the floor: the same texts embedded and added to Chroma raw.

    python tests/bench/bench_ingest.py [--messages 20000] [--milliseconds 2]

Both run in a process of their own against the same server. Printed, and written to ``tests/bench/results/ingest.json``:
messages a second, the share of wall time in which the server was embedding, peak memory, and the ratio of both times.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import httpx

HERE = Path(__file__).parent
RESULT = HERE / "results" / "ingest.json"


def write_mailbox(path: Path, messages: int) -> None:
    """An mbox of messages of 40 to 400 words, every fourth of them HTML."""
    chance, vocabulary = random.Random(1), sample_words()
    with path.open("w") as box:
        for number in range(messages):
            words = " ".join(chance.choices(vocabulary, k=chance.randrange(40, 400)))
            kind, body = ("html", f"<html><body><p>{words}</p></body></html>") if number % 4 == 0 else ("plain", words)
            box.write(
                f"From s@school.example Mon Sep 15 15:42:07 2025\nMessage-ID: <{number}@school.example>\n"
                f"Subject: Notice {number} about {chance.choice(vocabulary)}\nFrom: Office <office@school.example>\n"
                f"Date: Mon, 15 Sep 2025 15:42:07 -0500\nMIME-Version: 1.0\n"
                f"Content-Type: text/{kind}; charset=utf-8\n\n{body}\n\n"
            )


def sample_words() -> list[str]:
    """The words of the sample mailbox, as often as they stand there, so that texts have as many tokens as real ones."""
    from brain_pipeline.mail.reading import read_all
    from brain_pipeline.records import Mail
    from brain_pipeline.sample import sample_mail
    from brain_pipeline.settings import Settings

    mails = [mail for _, mail in read_all([sample_mail()], Settings.load()) if isinstance(mail, Mail)]
    return [word for mail in mails for word in mail.text.split()]


def ours(mailbox: Path, folder: Path, url: str) -> dict[str, float]:
    """Ingests the mailbox as ``brain ingest`` does."""
    from brain_pipeline.brain import Brain
    from brain_pipeline.mail.mailboxes import iter_messages
    from brain_pipeline.settings import Settings

    with Brain(Settings.load(chroma_db_path=folder / "ours", ollama_base_url=url)) as brain:
        brain.embedder  # noqa: B018  (built before the clock starts, as the floor's client is)
        began = time.monotonic()
        report = brain.ingest(iter_messages([mailbox]))
        took, peak = time.monotonic() - began, peak_mb()
        rows = [(row.id, row.text, dict(row.metadata)) for row in brain.catalog.store.rows()]
    (folder / "rows.json").write_text(json.dumps(rows))
    return {"seconds": took, "messages": report.new, "chunks": len(rows), "peak_mb": peak}


def floor(_: Path, folder: Path, url: str) -> dict[str, float]:
    """Embeds the same texts in the same batches and adds them to Chroma, with nothing in between."""
    import chromadb

    rows = json.loads((folder / "rows.json").read_text())
    client = chromadb.PersistentClient(str(folder / "floor"), chromadb.config.Settings(anonymized_telemetry=False))
    collection = client.create_collection("floor", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None)
    with httpx.Client(base_url=url, timeout=60) as http:
        began = time.monotonic()
        for start in range(0, len(rows), 128):
            batch = rows[start : start + 128]
            vectors = []
            for at in range(0, len(batch), 32):
                texts = [text for _, text, _ in batch[at : at + 32]]
                vectors += http.post("/api/embed", json={"model": "nomic-embed-text", "input": texts}).json()[
                    "embeddings"
                ]
            ids, documents, metadatas = zip(*batch, strict=True)
            collection.add(ids=list(ids), documents=list(documents), metadatas=list(metadatas), embeddings=vectors)
        took = time.monotonic() - began
    return {"seconds": took, "chunks": len(rows), "peak_mb": peak_mb()}


def peak_mb() -> float:
    """The most memory this process has had resident, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_a_process(what: str, mailbox: Path, folder: Path, url: str) -> dict[str, float]:
    busy = httpx.get(f"{url}/busy").json()["busy"]
    command = [sys.executable, __file__, "--only", what, str(mailbox), str(folder), url]
    measured = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    measured["busy"] = (httpx.get(f"{url}/busy").json()["busy"] - busy) / measured["seconds"]
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--milliseconds", type=float, default=2.0)
    parser.add_argument("--only", nargs=4, metavar=("WHAT", "MAILBOX", "FOLDER", "URL"))
    given = parser.parse_args()
    if given.only:
        what, mailbox, folder, url = given.only
        measured = {"ours": ours, "floor": floor}[what](Path(mailbox), Path(folder), url)
        print(json.dumps(measured))
        return
    server = subprocess.Popen(
        [sys.executable, HERE / "embed_server.py", str(given.milliseconds)], stdout=subprocess.PIPE, text=True
    )
    try:
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            mailbox = Path(folder) / "mail.mbox"
            write_mailbox(mailbox, given.messages)
            results = {what: in_a_process(what, mailbox, Path(folder), url) for what in ("ours", "floor")}
    finally:
        server.kill()
    show(results, given)


def show(results: dict[str, dict[str, float]], given: argparse.Namespace) -> None:
    ours, floor = results["ours"], results["floor"]
    print(f"{ours['messages']:,} messages, {ours['chunks']:,} chunks, server at {given.milliseconds:g} ms a text")
    for name, measured in results.items():
        print(
            f"{name:6} {measured['seconds']:7.1f} s  server busy {measured['busy']:4.0%}  "
            f"peak memory {measured['peak_mb']:5.0f} MB  {measured['chunks'] / measured['seconds']:6.0f} chunks/s"
        )
    print(f"rate, ours over the floor: {floor['seconds'] / ours['seconds']:.2f}")
    about = {
        "machine": platform.platform(),
        "python": platform.python_version(),
        "chromadb": version("chromadb"),
        "messages": given.messages,
        "milliseconds_per_text": given.milliseconds,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"about": about, **results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
