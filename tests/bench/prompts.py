"""What a language model is given to read for each question of a set, by the brain and by stock LlamaIndex.

    python -m bench.prompts MAIL QUESTIONS FOLDER [NUMBER]

Both embed with the packaged model and ask a language model that only remembers what it was given. Stock LlamaIndex gets
the mails as the brain reads them, in chunks of 1,024 tokens, and asks with ``compact`` and its best three. Printed as
JSON, for each answerable question: the tokens of the prompt, whether a mail that answers is in it, and whether the
answer's own words are. ``FOLDER`` keeps both collections for the next run.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.utils import get_tokenizer
from llama_index.vector_stores.chroma import ChromaVectorStore

from bench.corpus import open_chroma
from brain_pipeline.brain import Brain
from brain_pipeline.evaluate import LabelledQuestion, read_questions
from brain_pipeline.index.chunk import mail_key
from brain_pipeline.mail.mailboxes import iter_messages
from brain_pipeline.mail.reading import read_all
from brain_pipeline.records import Found, Mail
from brain_pipeline.settings import Settings
from brain_pipeline.testing import ScriptedLLM
from brain_pipeline.trial import by_email

TOP_K, CHUNK = 3, 1_024
COLLECTION = "stock"
REPLY = "It is in the letter."

_count = get_tokenizer()


@dataclass(frozen=True)
class Prompt:
    """What a model was given for one question. ``tokens`` is 0 when it was not asked."""

    tokens: int
    gold: bool
    answer: bool

    @classmethod
    def of(cls, texts: list[str], question: LabelledQuestion, *, gold: bool) -> Prompt:
        told = _plain("\n".join(texts))
        held = all(_plain(key) in told for key in question.keys)
        return cls(sum(len(_count(text)) for text in texts), gold, held)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def of_brain(questions: Iterable[LabelledQuestion], mail: Path, settings: Settings) -> Iterator[Prompt]:
    llm = ScriptedLLM(REPLY)
    asked_at: list[datetime] = [datetime.now(settings.zone)]
    with Brain(settings, llm=llm, clock=lambda: asked_at[0]) as brain, asyncio.Runner() as loop:
        brain.ingest(iter_messages([mail]))
        for question in by_email(brain, mail, questions):
            llm.conversations.clear()
            asked_at[0] = question.now or datetime.now(settings.zone)
            found = loop.run(_found(brain, question.question))
            gold = any(source.email in question.gold for source in found.sources)
            yield Prompt.of(llm.prompts, question, gold=gold)


async def _found(brain: Brain, question: str) -> Found:
    events = [event async for event in brain.astream(question)]
    return next(event for event in events if isinstance(event, Found))


def of_stock(
    questions: Iterable[LabelledQuestion], mail: Path, folder: Path, embedder: BaseEmbedding, settings: Settings
) -> Iterator[Prompt]:
    mails = [(origin, each) for origin, each in read_all([mail], settings) if isinstance(each, Mail)]
    keys = {Path(origin).name: mail_key(each) for origin, each in mails}
    client = open_chroma(str(folder / "stock"))
    collection = client.get_or_create_collection(COLLECTION, configuration={"hnsw": {"space": "cosine"}})
    store = ChromaVectorStore(chroma_collection=collection)
    index = VectorStoreIndex.from_vector_store(store, embed_model=embedder)
    nodes = SentenceSplitter(chunk_size=CHUNK).get_nodes_from_documents([_document(each) for _, each in mails])
    if collection.count() != len(nodes):
        client.delete_collection(COLLECTION)
        collection = client.create_collection(COLLECTION, configuration={"hnsw": {"space": "cosine"}})
        index = VectorStoreIndex.from_vector_store(ChromaVectorStore(collection), embed_model=embedder)
        index.insert_nodes(nodes)
    llm = ScriptedLLM(REPLY)
    engine = index.as_query_engine(llm=llm, similarity_top_k=TOP_K, response_mode="compact")
    for question in questions:
        llm.conversations.clear()
        response: Any = engine.query(question.question)
        gold = {keys[Path(name).name] for name in question.gold}
        found = any(node.metadata["key"] in gold for node in response.source_nodes)
        yield Prompt.of(llm.prompts, question, gold=found)


def _document(mail: Mail) -> Document:
    about = {"subject": mail.subject, "date": str(mail.date), "sender": mail.sender, "key": mail_key(mail)}
    hidden = ["key"]
    text = "\n\n".join(filter(None, (mail.text, mail.quoted)))
    return Document(text=text, metadata=about, excluded_llm_metadata_keys=hidden, excluded_embed_metadata_keys=hidden)


def main() -> None:
    mail, asked, folder = map(Path, sys.argv[1:4])
    number = int(sys.argv[4]) if len(sys.argv) > 4 else None
    questions = [question for question in read_questions(asked) if question.gold][:number]
    settings = Settings.load(chroma_db_path=folder / "brain", embed_provider="embedded", embed_model="all-minilm")
    ours = list(of_brain(questions, mail, settings))
    with Brain(settings) as brain:
        stock = list(of_stock(questions, mail, folder, brain.embedder, settings))
    print(json.dumps({name: [vars(each) for each in told] for name, told in (("brain", ours), ("stock", stock))}))


if __name__ == "__main__":
    main()
