"""An invented mail collection of any size, and vectors that have neighbours: every text is about one topic.

The same seed gives the same words, topics and vectors in every process, so that the model server's vector for a
question is near those of the chunks about its topic.
"""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

DIMENSION = 768
TOPICS, WORDS_OF_TOPIC = 100, 12
VOCABULARY = 6_000  # the first of them are the topics' own
VARIANTS = 8  # different vectors that the model server has for one topic
NEWSLETTER = 10  # every so many mails there is one
BATCH = 2_000  # chunks added at once
COLLECTION = "family_knowledge"
# What a collection of the brain's own remembers of its making.
MADE_BY = {"embed_model": "nomic-embed-text", "embed_query_prefix": "", "embed_document_prefix": ""}

_ONSETS = ("b", "br", "d", "f", "g", "gl", "k", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "tr", "v", "w", "z")
_VOWELS = ("a", "e", "i", "o", "u", "ea", "oo")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")


@cache
def vocabulary() -> tuple[str, ...]:
    """Invented words, the topics' own first."""
    chance = random.Random(1)
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        syllables = (chance.choice(_ONSETS) + chance.choice(_VOWELS) for _ in range(chance.choice((2, 2, 3))))
        words["".join(syllables) + chance.choice(("", "n", "r", "s", "t"))] = None
    return tuple(words)


@cache
def topic_of_word() -> dict[str, int]:
    return {word: number // WORDS_OF_TOPIC for number, word in enumerate(vocabulary()[: TOPICS * WORDS_OF_TOPIC])}


def words_of(topic: int) -> tuple[str, ...]:
    return vocabulary()[topic * WORDS_OF_TOPIC : (topic + 1) * WORDS_OF_TOPIC]


def topic_of(text: str) -> int:
    """What a text is about: the topic of most of its words, any one when it has no topic's words."""
    topics = Counter(topic_of_word()[word] for word in re.findall(r"\w+", text.lower()) if word in topic_of_word())
    return topics.most_common(1)[0][0] if topics else crc32(text.encode()) % TOPICS


@cache
def centres() -> NDArray[np.float32]:
    """One unit vector a topic, shape (topics, dimension); like a real model's, all have something in common."""
    chance = np.random.default_rng(2)
    return _unit(0.6 * _unit(chance.normal(size=(1, DIMENSION))) + 0.8 * _unit(chance.normal(size=(TOPICS, DIMENSION))))


def _unit(vectors: NDArray[Any]) -> NDArray[np.float32]:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def around(topics: NDArray[np.int64], spread: float, seed: int) -> NDArray[np.float32]:
    """A unit vector near the centre of each topic, shape (topics, dimension)."""
    noise = _unit(np.random.default_rng(seed).normal(size=(len(topics), DIMENSION)))
    return _unit(centres()[topics] + spread * noise)


def place(text: str) -> tuple[int, int]:
    """The topic and the variant of a text's vector."""
    return topic_of(text), crc32(text.encode()) % VARIANTS


@cache
def vector_at(topic: int, variant: int) -> NDArray[np.float32]:
    """What the model server has for every text of that place, shape (dimension,)."""
    [vector] = around(np.array([topic]), 0.5, seed=1_000_000 + topic * VARIANTS + variant)
    return vector.round(6)


def questions(number: int, size: int, seed: int = 0) -> list[str]:
    """As many different questions about newsletters of a collection of ``size`` chunks; emails tell of the same."""
    chance = random.Random(f"questions {seed}")
    asked: dict[str, None] = {}
    while len(asked) < number:
        topic, _ = _mail(chance.randrange(0, size // 2, NEWSLETTER))
        asked["When is the {} {} with the {}, the {} or the {}?".format(*chance.sample(words_of(topic), 5))] = None
    return list(asked)


def _mail(number: int) -> tuple[int, random.Random]:
    """What a mail is about, and what draws the rest of it."""
    chance = random.Random(f"mail {number}")
    return chance.randrange(TOPICS), chance


def text(topic: int, chance: random.Random) -> str:
    """Sixty to a hundred and fifty words about a topic, one sentence of them with a day, a time and an amount."""
    own, common = words_of(topic), vocabulary()
    words = [
        chance.choice(own) if chance.random() < 0.2 else common[int(len(common) * chance.random() ** 3)]
        for _ in range(chance.randrange(60, 150))
    ]
    sentences = [" ".join(words[at : at + 11]).capitalize() + "." for at in range(0, len(words), 11)]
    told = f"at {chance.randrange(1, 12)}:{chance.choice(('00', '15', '30'))} pm and bring ${chance.randrange(2, 60)}"
    sentences.insert(chance.randrange(len(sentences)), f"Please be there on {chance.choice(_DAYS)} {told}.")
    return " ".join(sentences)


def chunks(start: int, stop: int) -> Iterator[tuple[str, int, str, dict[str, Any]]]:
    """Id, topic, text and metadata of chunks; two in a row are of one mail, one mail in ten is a newsletter."""
    for number in range(start, stop):
        mail = number // 2
        topic, of_mail = _mail(mail)
        some, other = of_mail.sample(words_of(topic), 2)
        about = {
            "message_id": f"<{mail}@bench.example>",
            "subject": f"The {some} {other} and {of_mail.choice(vocabulary())}".capitalize(),
            "date": f"20{of_mail.randrange(21, 26)}-{of_mail.randrange(1, 13):02}-{of_mail.randrange(1, 29):02}"
            f"T{of_mail.randrange(6, 22):02}:15:00-05:00",
            "sender": f"{of_mail.choice(vocabulary()).capitalize()} <office@{of_mail.choice(words_of(topic))}.example>",
            "source_type": "newsletter" if mail % NEWSLETTER == 0 else "email",
        }
        yield f"{mail:07}-{number % 2}", topic, text(topic, random.Random(f"chunk {number}")), about


def collection_of(cache_folder: Path, size: int) -> Path:
    """A Chroma database of so many chunks, made by raw adds where the cache has none."""
    path = cache_folder / f"chunks-{size}"
    if not (path / "complete").exists():
        shutil.rmtree(path, ignore_errors=True)
        fill(open_chroma(str(path)), size)
        (path / "complete").touch()
    return path


def open_chroma(where: str) -> Any:
    """A Chroma client, of a server when ``where`` is a URL."""
    import chromadb

    quiet = chromadb.config.Settings(anonymized_telemetry=False)
    if where.startswith("http"):
        host, _, port = where.removeprefix("http://").partition(":")
        return chromadb.HttpClient(host=host, port=int(port), settings=quiet)
    return chromadb.PersistentClient(where, quiet)


def fill(client: Any, size: int) -> None:
    made = client.create_collection(
        COLLECTION, metadata=MADE_BY, configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
    )
    for start in range(0, size, BATCH):
        ids, topics, texts, about = zip(*chunks(start, min(start + BATCH, size)), strict=True)
        vectors = around(np.array(topics), 0.9, seed=start)
        made.add(ids=list(ids), embeddings=vectors, documents=list(texts), metadatas=list(about))
    client.close()
