"""What SECURITY.md says is so: its tests exist, and what the project stands on is locked and licensed."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
SECURITY = (ROOT / "SECURITY.md").read_text()
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DIRECT = [Requirement(line) for line in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["embedded"])]
# Licences without conditions on the code that uses a package.
FREE = re.compile(r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|CNRI|MPL|Mozilla|Zlib|CC0|Academic Free")


def licence(name):
    about = importlib.metadata.metadata(name)
    classifiers = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier", []) if c.startswith("License")]
    return about.get("License-Expression") or "; ".join(classifiers) or about.get("License", "")


def everything():
    """The names of all installed packages that the project needs, directly or not."""
    found, waiting = set(), [each.name for each in DIRECT]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found.add(name)
        for line in importlib.metadata.requires(name) or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)
    return found


def test_every_promise_names_tests_that_exist():
    rows = [line for line in SECURITY.splitlines() if line.startswith("|") and ".py::" in line]
    assert len(rows) > 20
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", SECURITY)
    assert len(named) >= len(rows)
    for file, test in named:
        assert f"def {test}(" in (ROOT / "tests" / file).read_text(), f"{file}::{test}"


def test_every_promise_has_a_test():
    promises = SECURITY.split("## What is promised")[1].split("## What is not promised")[0]
    for line in promises.splitlines():
        if line.startswith("|") and not line.startswith(("| promise", "|---")):
            assert ".py::test_" in line, line


def test_every_locked_package_has_hashes():
    blocks = re.split(r"^(?=[a-zA-Z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert len(blocks) > 100
    assert all("==" in block and "--hash=sha256:" in block for block in blocks)


def test_every_dependency_is_locked():
    locked = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", LOCK, flags=re.MULTILINE)}
    assert {canonicalize_name(each.name) for each in DIRECT} <= locked


@pytest.mark.parametrize("name", sorted({each.name for each in DIRECT}))
def test_every_licence_is_listed(name):
    assert f"| {name} | {licence(name)} |" in SECURITY


def test_every_licence_is_free_of_conditions_on_our_code():
    assert not {name: licence(name) for name in everything() if not FREE.search(licence(name))}
