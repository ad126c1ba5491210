"""The packed Chroma databases that other programs wrote, and what is right about them.

``tests/data/chroma.tar.xz`` holds databases of an invented family, written by Chroma 0.4.24 to 1.5.9 and by LlamaIndex,
with the expected ranking of each question by exact cosine.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from brain_pipeline.settings import Settings

PACKED = Path(__file__).parent / "data" / "chroma.tar.xz"
ANSWERABLE = (
    "chroma-0.4.24-l2-unnormalised",
    "chroma-0.5.23-cosine",
    "chroma-0.6.3-ip",
    "chroma-1.0.20-default-ef",
    "llamaindex-1.5.9-cosine",
)


class KnownVectors(BaseEmbedding):
    """The real model's vectors of known questions; any other text is a mistake of the test."""

    vectors: dict[str, list[float]]
    model_name: str = "all-minilm"

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.vectors[query]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self.vectors[query]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.vectors[text]


@dataclass(frozen=True)
class OtherPrograms:
    """The unpacked databases; copy one before opening it, since opening migrates it."""

    folder: Path
    expected: dict[str, Any]
    embedder: KnownVectors

    @classmethod
    def unpack(cls, folder: Path) -> OtherPrograms:
        with tarfile.open(PACKED) as packed:
            packed.extractall(folder, filter="data")
        expected = json.loads((folder / "expected.json").read_text())["databases"]
        vectors = json.loads((folder / "question_vectors.json").read_text())
        return cls(folder, expected, KnownVectors(vectors=vectors))

    def settings(self, name: str, into: Path, **more: Any) -> Settings:
        """The settings of a copy of database ``name`` in ``into``."""
        shutil.copytree(self.folder / name, into / name)
        given = {"timezone": "UTC", "warm_up": False, **more}
        return Settings.load(environment="embedded", chroma_db_path=into / name, **given)

    def questions(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.expected[name]["questions"]
        return found
