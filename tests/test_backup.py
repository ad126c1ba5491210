"""A backup is whole or refused, and a restore loses nothing."""

from __future__ import annotations

import json
import stat
import zipfile

import pytest
from household import HOUSEHOLD, fill, held_elsewhere, mail

from brain_pipeline.backup import MANIFEST, back_up, restore, verify
from brain_pipeline.brain import Brain
from brain_pipeline.errors import ConfigError, StoreError, StoreLocked
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

QUESTION = "What do we need for the zoo field trip?"


def settings_in(folder):
    return Settings.load(chroma_db_path=folder / "chroma", timezone="America/Chicago")


def brain_in(folder):
    return Brain(settings_in(folder), embedder=HashedTokenEmbedder(), llm=ScriptedLLM("A slip."))


def everything(folder):
    with brain_in(folder) as brain:
        rows = brain.catalog.store.collection().get(include=["embeddings", "documents", "metadatas"])
        listed = zip(rows["ids"], rows["documents"], rows["metadatas"], rows["embeddings"].tolist(), strict=True)
        return sorted(listed, key=lambda row: row[0]), brain.stats().total_documents, brain.query(QUESTION).sources


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filled")
    with brain_in(folder) as brain:
        fill(brain, [*HOUSEHOLD, *(mail(f"Note {n}", f"Note number {n} on item {n}.") for n in range(1_020))])
    return folder


@pytest.fixture
def archive(filled, tmp_path):
    back_up(settings_in(filled), tmp_path / "brain.backup")
    return tmp_path / "brain.backup"


def test_a_restored_database_is_the_one_that_was_backed_up(filled, archive, tmp_path):
    assert restore(settings_in(tmp_path), archive) is None
    assert everything(tmp_path) == everything(filled)


def test_a_backup_is_for_its_owner_only_and_leaves_nothing_else(archive, tmp_path):
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name not in {"data-home", "cache-home"}] == [archive.name]
    names = set(verify(archive).files)
    assert "chroma.sqlite3" in names
    assert any(name.endswith("data_level0.bin") for name in names)
    assert not any("lock" in name or "owner" in name for name in names)


def test_what_was_there_before_is_kept(archive, tmp_path):
    with brain_in(tmp_path) as brain:
        fill(brain, HOUSEHOLD[:1])
    before = restore(settings_in(tmp_path), archive)
    assert len(everything(tmp_path)[0]) > 1_000
    (tmp_path / "chroma").rename(tmp_path / "other")
    before.rename(tmp_path / "chroma")
    assert everything(tmp_path)[1] == 1


def test_a_damaged_database_is_replaced(archive, tmp_path):
    (tmp_path / "chroma").mkdir()
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"nonsense")
    assert restore(settings_in(tmp_path), archive).name.startswith("chroma.before-")
    assert everything(tmp_path)[2]


def damaged(archive, place):
    data = bytearray(archive.read_bytes())
    data[place if place >= 0 else len(data) + place] ^= 0xFF
    archive.write_bytes(data)


@pytest.mark.parametrize("place", [0, 100, 5_000, 100_000, -30, -2])
def test_a_damaged_backup_is_refused_and_nothing_is_touched(archive, tmp_path, place):
    with brain_in(tmp_path) as brain:
        fill(brain)
    before = sorted(tmp_path.rglob("*"))
    damaged(archive, place)
    try:
        restore(settings_in(tmp_path), archive)
    except StoreError as error:
        assert "damaged" in str(error)  # noqa: PT017  (some bytes of a zip mean nothing)
        assert sorted(tmp_path.rglob("*")) == before
    assert everything(tmp_path)[1] >= len(HOUSEHOLD)


def rewritten(archive, change):
    with zipfile.ZipFile(archive) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    manifest = json.loads(parts[MANIFEST])
    change(manifest, parts)
    parts[MANIFEST] = json.dumps(manifest).encode()
    with zipfile.ZipFile(archive, "w") as packed:
        for name, data in parts.items():
            packed.writestr(name, data)


def swap(manifest, parts):
    parts["chroma.sqlite3"] = parts["chroma.sqlite3"][:-1] + b"?"


def escape(manifest, parts):
    parts["../outside"] = b"x"
    manifest["files"]["../outside"] = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"


def absolute(manifest, parts):
    parts["/tmp/outside"] = b"x"  # noqa: S108
    manifest["files"]["/tmp/outside"] = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"  # noqa: S108


def later(manifest, parts):
    manifest["format"] = 2


def missing(manifest, parts):
    del parts[next(name for name in parts if name.endswith(".bin"))]


def odd(manifest, parts):
    manifest["files"] = ["chroma.sqlite3"]


@pytest.mark.parametrize("change", [swap, escape, absolute, later, missing, odd])
def test_a_forged_backup_is_refused(archive, tmp_path, change):
    rewritten(archive, change)
    with pytest.raises(StoreError, match="damaged"):
        restore(settings_in(tmp_path), archive)
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "chroma").exists()


@pytest.mark.parametrize("content", [b"", b"not a zip", None])
def test_what_is_no_backup_is_refused(tmp_path, content):
    path = tmp_path / "x"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StoreError):
        restore(settings_in(tmp_path), path)


def test_nothing_is_overwritten_and_nothing_is_made_of_nothing(filled, archive, tmp_path):
    with pytest.raises(ConfigError, match="exists already"):
        back_up(settings_in(filled), archive)
    with pytest.raises(StoreError, match="no database"):
        back_up(settings_in(tmp_path), tmp_path / "new")
    assert not (tmp_path / "chroma").exists()
    assert not (tmp_path / "new").exists()
    for act in (back_up, restore):
        with pytest.raises(ConfigError, match="back it up there"):
            act(Settings.load(chroma_url="http://127.0.0.1:1"), tmp_path / "new")


def test_a_database_in_use_is_neither_copied_nor_replaced(archive, tmp_path):
    with brain_in(tmp_path) as brain:
        fill(brain)
    with held_elsewhere(settings_in(tmp_path)):
        for act, path in ((back_up, tmp_path / "new"), (restore, archive)):
            with pytest.raises(StoreLocked, match="in use by process"):
                act(settings_in(tmp_path), path)
    assert not (tmp_path / "new").exists()
    assert everything(tmp_path)[1] == len(HOUSEHOLD)


def test_in_the_terminal(filled, tmp_path, monkeypatch, command):
    monkeypatch.setenv("BRAIN_ENV", "embedded")
    monkeypatch.setenv("CHROMA_DB_PATH", str(filled / "chroma"))
    assert command("backup", tmp_path / "b")[0] == 0
    monkeypatch.setenv("CHROMA_DB_PATH", str(tmp_path / "chroma"))
    restored = "1024 emails in 1024 chunks"
    assert restored in command("restore", tmp_path / "b")[1]
    _, out, _ = command("restore", tmp_path / "b")
    assert restored in out
    assert "chroma.before-" in out
    code, _, err = command("restore", tmp_path / "none")
    assert code == 1
    assert "brain: There is no file" in err


def test_a_new_database_is_for_its_owner_only(tmp_path):
    with brain_in(tmp_path) as brain:
        fill(brain)
    assert stat.S_IMODE((tmp_path / "chroma").stat().st_mode) == 0o700
