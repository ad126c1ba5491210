"""What holds the project together: the order of imports, lazy entry points, documented settings."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from brain_pipeline.settings import Settings

ROOT = Path(__file__).parents[1]
# Each row may import only from itself and the rows above.
ROWS = [
    ("brain_pipeline.records", "brain_pipeline.errors", "brain_pipeline.cells", "brain_pipeline.text"),
    ("brain_pipeline.settings", "brain_pipeline.loop"),
    ("brain_pipeline.models", "brain_pipeline.sample"),
    ("brain_pipeline.testing", "brain_pipeline.mail"),
    ("brain_pipeline.index",),
    ("brain_pipeline.family",),
    ("brain_pipeline.ask",),
    ("brain_pipeline.brain",),
    (
        "brain_pipeline.evaluate",
        "brain_pipeline.trial",
        "brain_pipeline.doctor",
        "brain_pipeline.remote",
        "brain_pipeline.progress",
        "brain_pipeline.testing_fixtures",
        "brain_pipeline.legacy",
    ),
    ("brain_pipeline.backup", "brain_pipeline.attacks", "brain_pipeline.mcp_server"),
    ("brain_pipeline.cli",),
    ("api",),
]
# The two wings: reading mail knows nothing of the database, asking knows nothing of mail files.
APART = [("brain_pipeline.mail", "brain_pipeline.index"), ("brain_pipeline.ask", "brain_pipeline.mail")]


def modules():
    for folder in ("brain_pipeline", "api"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            yield name, ast.parse(path.read_text())


def imports_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def row_of(name):
    for number, row in enumerate(ROWS):
        if any(name == room or name.startswith(f"{room}.") for room in row):
            return number
    return None


def test_imports_run_one_way():
    for name, tree in modules():
        if name == "brain_pipeline":
            continue
        assert row_of(name) is not None, f"{name} stands in no row"
        for imported in imports_of(tree):
            if (row := row_of(imported)) is not None:
                assert row <= row_of(name), f"{name} imports {imported}"
                for here, there in APART:
                    assert not (name.startswith(here) and imported.startswith(there)), f"{name} imports {imported}"


def test_chroma_is_imported_in_one_place():
    importers = {name for name, tree in modules() for i in imports_of(tree) if i.split(".")[0] == "chromadb"}
    assert importers == {"brain_pipeline.index.chroma", "brain_pipeline.index.store"}


def test_what_is_imported_is_declared():
    declared = (ROOT / "pyproject.toml").read_text().replace("-", "_").lower()
    names = {"dateutil": "python_dateutil", "llama_index": "llama_index_core"}
    for name, tree in modules():
        for imported in imports_of(tree):
            top = imported.split(".")[0]
            if top in sys.stdlib_module_names or top in {"brain_pipeline", "api", "__future__"}:
                continue
            assert f'"{names.get(top, top)}' in declared, f"{name} imports {top}"


@pytest.mark.parametrize("statement", ["import brain_pipeline", "import brain_pipeline.cli"])
def test_importing_loads_neither_chroma_nor_llamaindex(statement):
    code = f"{statement}; import sys; sys.exit(any(m in sys.modules for m in ('chromadb', 'llama_index', 'pydantic')))"
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  (our own statement)


def test_every_setting_is_documented():
    readme = (ROOT / "README.md").read_text()
    for name, field in Settings.model_fields.items():
        variable = field.validation_alias or f"BRAIN_{name.upper()}"
        default = None if field.default_factory else field.default
        shown = "" if default in (None, ()) else f"`{str(default).lower() if isinstance(default, bool) else default}`"
        row = f"| `{variable}` | {shown} | {field.description} |"
        assert row in readme, f"the README's table of settings lacks: {row}"
