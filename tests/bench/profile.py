"""Flame graphs of questions and of an ingestion: ``python -m bench.profile FOLDER [CHUNKS]``.

They are ``FOLDER/query.svg`` and ``FOLDER/ingest.svg``, drawn by py-spy, which looks at a running process from outside.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bench.ingestion import write_mailbox
from bench.processes import brain, environment, model_server
from bench.run import Run

SECONDS = 20
MAILS = 2_000
PY_SPY = [str(Path(sys.executable).with_name("py-spy")), "record", "--rate", "250"]


def query(folder: Path, chunks: int) -> None:
    """One client asks one question after another; waiting threads are left out."""
    run = Run(folder, small=chunks, rounds=5_000)
    with model_server() as models:
        under = [*PY_SPY, "--output", str(folder / "query.svg"), "--duration", str(SECONDS + 10), "--"]
        with brain(run.database(chunks), models, under=under) as running:
            end = time.monotonic() + SECONDS
            for question in run.questions_of(chunks, seed=9):
                if time.monotonic() > end:
                    break
                running.asked(question)


def ingest(folder: Path) -> None:
    mailbox = folder / "mail.mbox"
    write_mailbox(mailbox, MAILS)
    with model_server() as models:
        under = [*PY_SPY, "--output", str(folder / "ingest.svg"), "--", sys.executable, "-m", "bench.ingestion"]
        work = folder / f"ingest-{time.time_ns()}"
        work.mkdir()
        subprocess.run([*under, "brain", str(mailbox), str(work), models.url], check=True, env=environment())


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    query(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
    ingest(folder)


if __name__ == "__main__":
    main()
