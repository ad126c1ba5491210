"""What the brain is measured against, each a FastAPI service in a process of its own.

    python -m bench.peers floor|stock|citation DATABASE_OR_URL MODELS_URL

``floor``: one embedding request, one Chroma query, one chat request, nothing else; also an empty route and a count.
``stock``: LlamaIndex's ``as_query_engine`` as its documentation shows it. ``citation``: its ``CitationQueryEngine``.
It prints its URL.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from bench.corpus import COLLECTION, open_chroma

EMBED_MODEL, LLM_MODEL = "nomic-embed-text", "qwen2.5-coder:7b"
TOP_K = 3
CANDIDATES = 10  # Chroma's own default
WINDOW = 8192

Ask = Callable[[str, str | None], dict[str, Any]]


def prompt(question: str, texts: list[str]) -> list[dict[str, str]]:
    passages = "\n\n".join(texts)
    return [{"role": "user", "content": f"Answer from these emails:\n\n{passages}\n\nQuestion: {question}"}]


def floor(collection: Any, models_url: str) -> Ask:
    http = httpx.Client(
        base_url=models_url, timeout=60, trust_env=False, limits=httpx.Limits(max_keepalive_connections=64)
    )

    def ask(question: str, kind: str | None) -> dict[str, Any]:
        vectors = http.post("/api/embed", json={"model": EMBED_MODEL, "input": [question]}).json()["embeddings"]
        found = collection.query(
            query_embeddings=vectors,
            n_results=CANDIDATES,
            where={"source_type": kind} if kind else None,
            include=["documents", "metadatas", "embeddings", "distances"],
        )
        messages = prompt(question, found["documents"][0][:TOP_K])
        reply = http.post("/api/chat", json={"model": LLM_MODEL, "messages": messages, "stream": False}).json()
        return {"answer": reply["message"]["content"], "sources": found["metadatas"][0][:TOP_K]}

    return ask


def llama_index(collection: Any, models_url: str, kind: str) -> Ask:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.query_engine import CitationQueryEngine
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
    from llama_index.embeddings.ollama import OllamaEmbedding
    from llama_index.llms.ollama import Ollama
    from llama_index.vector_stores.chroma import ChromaVectorStore

    llm = Ollama(model=LLM_MODEL, base_url=models_url, request_timeout=60, context_window=WINDOW)
    embedder = OllamaEmbedding(EMBED_MODEL, base_url=models_url)
    index = VectorStoreIndex.from_vector_store(ChromaVectorStore(chroma_collection=collection), embed_model=embedder)

    def engine(source: str | None) -> Any:
        wanted = [MetadataFilter(key="source_type", value=source)] if source else []
        options = {"similarity_top_k": TOP_K, "filters": MetadataFilters(filters=wanted) if wanted else None}
        if kind == "stock":
            return index.as_query_engine(llm=llm, **options)
        return CitationQueryEngine.from_args(index, llm=llm, **options)

    engines = {source: engine(source) for source in (None, "email", "newsletter")}

    def ask(question: str, source: str | None) -> dict[str, Any]:
        response = engines[source].query(question)
        return {"answer": str(response), "sources": [node.metadata for node in response.source_nodes]}

    return ask


def application(name: str, database: str, models_url: str) -> FastAPI:
    collection = open_chroma(database).get_collection(COLLECTION, embedding_function=None)
    ask = floor(collection, models_url) if name == "floor" else llama_index(collection, models_url, name)
    app = FastAPI()

    @app.get("/brain/query")
    def query(q: str, source: str | None = None) -> dict[str, Any]:
        return ask(q, source)

    @app.get("/empty")
    async def empty() -> dict[str, str]:
        return {}

    @app.get("/count")
    def count() -> int:
        return int(collection.count())

    return app


def main() -> None:
    name, database, models_url = sys.argv[1:]
    app = application(name, database, models_url)
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_keep_alive=600)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
