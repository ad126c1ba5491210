"""One ingestion in a process of its own, so that its memory is its own too.

    python -m bench.ingestion brain|floor|pipeline MAILBOX FOLDER MODELS_URL

``brain``: as ``brain ingest`` does it. ``floor``: the brain's own chunks embedded in its batches and added to Chroma,
with nothing in between; it needs the folder of a brain's run. ``pipeline``: LlamaIndex's ``IngestionPipeline`` with its
defaults, given the mails as parsed text. Printed as JSON: seconds, mails, chunks, peak memory in MB.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx

from bench.corpus import open_chroma

REQUEST, BATCH = 32, 64  # texts a request, and chunks added at once, as the brain does
SPACE = {"configuration": {"hnsw": {"space": "cosine"}}, "embedding_function": None}


def write_mailbox(path: Path, messages: int) -> None:
    """An mbox of messages of 40 to 400 words, every fourth of them HTML."""
    chance, vocabulary = Random(1), [word for mail in sample_mails() for word in mail.text.split()]
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


def sample_mails() -> list[Any]:
    """The sample mailbox: its words, as often as they stand there, make texts of as many tokens as real ones."""
    from brain_pipeline.sample import sample_mail

    return list(_mails(sample_mail()))


def _mails(mailbox: Path) -> Iterator[Any]:
    from brain_pipeline.mail.reading import read_all
    from brain_pipeline.records import Mail
    from brain_pipeline.settings import Settings

    return (mail for _, mail in read_all([mailbox], Settings.load()) if isinstance(mail, Mail))


def brain(mailbox: Path, folder: Path, url: str) -> dict[str, float]:
    from brain_pipeline.brain import Brain
    from brain_pipeline.mail.mailboxes import iter_messages
    from brain_pipeline.settings import Settings

    with Brain(Settings.load(chroma_db_path=folder / "brain", ollama_base_url=url)) as ours:
        ours.embedder.get_query_embedding("connected")  # before the clock starts, as the floor's client is
        began = time.monotonic()
        report = ours.ingest(iter_messages([mailbox]))
        took, peak = time.monotonic() - began, peak_mb()
        rows = [(row.id, row.text, dict(row.metadata)) for row in ours.catalog.store.rows()]
    (folder / "rows.json").write_text(json.dumps(rows))
    return {"seconds": took, "mails": report.new, "chunks": len(rows), "peak_mb": peak}


def floor(mailbox: Path, folder: Path, url: str) -> dict[str, float]:
    rows = json.loads((folder / "rows.json").read_text())
    collection = open_chroma(str(folder / "floor")).create_collection("floor", **SPACE)
    with httpx.Client(base_url=url, timeout=60) as http:
        http.get("/api/version")
        began = time.monotonic()
        for start in range(0, len(rows), BATCH):
            ids, documents, metadatas = zip(*rows[start : start + BATCH], strict=True)
            vectors = []
            for at in range(0, len(ids), REQUEST):
                asked = {"model": "nomic-embed-text", "input": documents[at : at + REQUEST]}
                vectors += http.post("/api/embed", json=asked).json()["embeddings"]
            collection.add(ids=list(ids), documents=list(documents), metadatas=list(metadatas), embeddings=vectors)
        took = time.monotonic() - began
    return {"seconds": took, "mails": sum(id_.endswith("-0") for id_, *_ in rows), "chunks": len(rows)}


def pipeline(mailbox: Path, folder: Path, url: str) -> dict[str, float]:
    from llama_index.core import Document
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.embeddings.ollama import OllamaEmbedding
    from llama_index.vector_stores.chroma import ChromaVectorStore

    collection = open_chroma(str(folder / "pipeline")).create_collection("pipeline", **SPACE)
    documents = [Document(text=mail.text, metadata={"subject": mail.subject}) for mail in _mails(mailbox)]
    steps = [SentenceSplitter(), OllamaEmbedding("nomic-embed-text", base_url=url)]
    into = IngestionPipeline(transformations=steps, vector_store=ChromaVectorStore(chroma_collection=collection))
    began = time.monotonic()
    nodes = into.run(documents=documents)
    return {"seconds": time.monotonic() - began, "mails": len(documents), "chunks": len(nodes)}


def main() -> None:
    what, mailbox, folder, url = sys.argv[1:]
    measured = {"brain": brain, "floor": floor, "pipeline": pipeline}[what](Path(mailbox), Path(folder), url)
    print(json.dumps({"peak_mb": peak_mb(), **measured}))


def peak_mb() -> float:
    """The most memory that this process has had, in MB."""
    status = Path("/proc/self/status").read_text()  # getrusage tells the most of the process that started this one too
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
