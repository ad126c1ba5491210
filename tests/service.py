"""The service in a process of its own, as ``brain serve`` runs it, to be measured and killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import httpx


class Service:
    """``brain serve`` on a fixed port. ``start`` waits until it answers; ``kill`` is ``kill -9``."""

    def __init__(self, port: int, environment: Mapping[str, str], log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._environment = {**os.environ, **environment, "BRAIN_PORT": str(port)}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "brain_pipeline.cli", "serve"],
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        with httpx.Client(base_url=self.url, transport=httpx.HTTPTransport(retries=30)) as client:
            client.get("/healthz", timeout=30).raise_for_status()
        return self

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def memory(self) -> int:
        """Resident memory in kB."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
