"""What is installed works away from the repository, and every name that is documented is there."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from brain_pipeline.brain import Brain
from brain_pipeline.settings import Settings

ROOT = Path(__file__).parents[1]
DOCUMENTS = {name: (ROOT / name).read_text() for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")}
README = DOCUMENTS["README.md"]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
DATABASE = "chroma-1.0.20-default-ef"
QUESTION = "What do I need to send in for Sullivan's zoo field trip?"
FOUND = "Room 12 zoo field trip: permission slip & $5 due Friday, 2025-05-06"
PAGE = """
import asyncio, httpx
from api import create_app
from brain_pipeline import Settings

app = create_app(Settings.load(allowed_hosts=("testserver",), warm_up=False))

async def get(path):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://testserver") as client:
        return (await client.get(path)).status_code

print([asyncio.run(get(path)) for path in ("/", "/static/app.js", "/static/style.css", "/brain/stats")])
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel, made from the source distribution, and that."""
    folder = tmp_path_factory.mktemp("dist")
    copy = folder / "source"  # others may be writing to the checkout's files
    ignored = shutil.ignore_patterns(".*", "node_modules", "__pycache__", "screenshots")
    shutil.copytree(ROOT, copy, ignore=ignored)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(copy)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def beside(built, tmp_path_factory):
    """The Python of an environment that holds the wheel, and its dependencies from this one."""
    folder = tmp_path_factory.mktemp("beside")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)  # noqa: S603
    python = folder / "bin" / "python"
    there = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.run([python, "-c", there], check=True, capture_output=True, text=True).stdout.strip())  # noqa: S603
    # As a path and no more: the entries that make this checkout importable are not read there.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    with zipfile.ZipFile(built[0]) as wheel:
        wheel.extractall(packages)  # noqa: S202  (our own)
    return python


def run(python, *words, cwd, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE"))}
    command = [str(python), *map(str, words)]
    done = subprocess.run(  # noqa: S603
        command, cwd=cwd, env={**environment, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask_over_a_copied_collection(python, databases, folder):
    shutil.copytree(databases / DATABASE, folder / "chroma")
    asked = {"BRAIN_ENV": "embedded", "CHROMA_DB_PATH": str(folder / "chroma"), "BRAIN_TIMEZONE": "UTC"}
    return run(python, "-m", "brain_pipeline.cli", "ask", QUESTION, cwd=folder, **asked)


def test_the_wheel_asks_over_a_copied_collection(beside, other_programs, tmp_path):
    where = run(beside, "-c", "import brain_pipeline, api; print(brain_pipeline.__file__, api.__file__)", cwd=tmp_path)
    assert str(ROOT) not in where
    assert FOUND in ask_over_a_copied_collection(beside, other_programs.folder, tmp_path)


def test_the_wheel_has_the_sample_and_the_page(beside, tmp_path):
    sample = "from brain_pipeline.sample import sample_mail; print(len(list(sample_mail().glob('*.eml'))))"
    assert int(run(beside, "-c", sample, cwd=tmp_path)) == len(
        list((ROOT / "brain_pipeline/sample/mail").glob("*.eml"))
    )
    assert run(beside, "-c", PAGE, cwd=tmp_path, BRAIN_DATA_DIR=str(tmp_path)).strip() == "[200, 200, 200, 200]"


def test_every_environment_is_in_the_wheel(built):
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    for config in (ROOT / "configs").glob("*.toml"):
        assert f"brain_pipeline/configs/{config.name}" in names
    assert {"brain_pipeline/py.typed", "api/py.typed"} <= names
    assert not [name for name in names if name.startswith(("tests/", "notebooks/")) or "__pycache__" in name]


def test_the_source_distribution_can_be_tested(built):
    with tarfile.open(built[1]) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"Makefile", "requirements.lock", "configs/staging.toml", "notebooks/explore.ipynb"} <= names
    assert {"tests/test_package.py", "tests/data/chroma.tar.xz", "tests/conftest.py"} <= names


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_environment_with_only_the_wheel_asks_over_a_copied_collection(built, other_programs, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)  # noqa: S603
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", f"{built[0]}[embedded]", cwd=tmp_path)
    assert FOUND in ask_over_a_copied_collection(python, other_programs.folder, tmp_path)
    assert run(python, "-c", PAGE, cwd=tmp_path, BRAIN_DATA_DIR=str(tmp_path)).strip() == "[200, 200, 200, 200]"


# Names.


def test_every_public_name_is_documented():
    for module in ("brain_pipeline", "api"):
        for name in importlib.import_module(module).__all__:
            assert re.search(rf"\b{name}\b", README), f"{module}.{name}"
    fixtures = importlib.import_module("brain_pipeline.testing_fixtures")
    for name in [name for name, value in vars(fixtures).items() if "FixtureFunction" in type(value).__name__]:
        assert f"`{name}`" in README, name
    legacy = importlib.import_module("brain_pipeline.legacy")
    for name in [name for name, value in vars(legacy).items() if getattr(value, "__module__", "") == legacy.__name__]:
        assert name.startswith("_") or f"`{name}`" in README, name


def test_every_documented_name_exists():
    for text in DOCUMENTS.values():
        for module, names in re.findall(r"^from ((?:brain_pipeline|api)[\w.]*) import ([\w, ]+)", text, re.MULTILINE):
            for name in names.split(", "):
                assert hasattr(importlib.import_module(module), name), f"{module}.{name}"
        for name in re.findall(r"\bbrain_pipeline(?:\.[a-z_]+)+", text):
            module, _, last = name.rpartition(".")
            found = importlib.import_module(module)
            assert hasattr(found, last) or importlib.util.find_spec(name), name
        for name in re.findall(r"\bbrain\.([a-z]\w+)", text):
            made = Brain(Settings.load(environment="embedded")) if name == "settings" else Brain
            assert hasattr(made, name) or name in {"zip", "lan", "service"}, f"brain.{name}"


def test_every_extra_is_documented_with_its_licence_and_its_size():
    for name in set(EXTRAS) - {"dev"}:
        [row] = re.findall(rf"^\| `{name}` \|.*\|$", README, re.MULTILINE)
        assert re.search(r"\d MB", row), row
        assert re.search(r"MIT|Apache-2.0|BSD", row), row
        for line in EXTRAS[name]:
            assert re.match(r"[\w-]+", line).group() in row, line
