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


def has_namespaces():
    return shutil.which("unshare") and not subprocess.run([*ALONE, "true"], check=False).returncode  # noqa: S603


def test_nothing_reaches_out(tmp_path):
    """Python's audit sees its own code; the kernel of a network without routes counts native code's attempts too."""
    mode, before = ("alone", ALONE) if has_namespaces() else ("watched", ())
    day = live_through(mode, tmp_path, before)
    assert day["attempts"] == []
    if mode == "alone":
        assert day["unroutable"] == 0


def test_an_attempt_would_be_noticed(tmp_path):
    if not has_namespaces():
        pytest.skip("a network of one's own needs user namespaces")
    seen = live_through("reaching", tmp_path, ALONE)
    assert seen == {"attempts": ["socket.connect 192.0.2.7"], "unroutable": 2}
