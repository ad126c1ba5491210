"""No byte leaves the household: a whole day of it in a process that is watched, and in one that has no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# What tells libraries to be quiet without our doing, as on a build server.
QUIETENING = ("CI", "GITHUB_ACTIONS", "ORT_DISABLE_TELEMETRY", "ANONYMIZED_TELEMETRY", "DO_NOT_TRACK", "HF_HUB_OFFLINE")
ALONE = ("unshare", "--user", "--map-root-user", "--net")


def live_through(mode, folder, before=()):
    environment = {name: value for name, value in os.environ.items() if name not in QUIETENING}
    environment |= {"PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent}", "OPENAI_API_KEY": "", "HOME": str(folder)}
    command = [*before, sys.executable, HERE / "a_day.py", mode, folder]
    done = subprocess.run(  # noqa: S603
        [str(word) for word in command], env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def alone():
    if shutil.which("unshare") is None or subprocess.run([*ALONE, "true"], check=False).returncode:  # noqa: S603
        pytest.skip("a network of one's own needs user namespaces")
    return ALONE


def test_no_python_code_reaches_out(tmp_path):
    assert live_through("watched", tmp_path)["attempts"] == []


def test_no_native_code_reaches_out(tmp_path, alone):
    """Onnxruntime, tokenizers and Chroma are not Python; the kernel of a network without routes counts them too."""
    assert live_through("alone", tmp_path, before=alone) == {"attempts": [], "unroutable": 0}


def test_an_attempt_would_be_noticed(tmp_path, alone):
    seen = live_through("reaching", tmp_path, before=alone)
    assert seen["attempts"] == ["socket.connect 192.0.2.7"]
    assert seen["unroutable"] == 2
