"""The ``brain`` command: the one place where errors become sentences. Every module of ``commands`` adds commands."""

from __future__ import annotations

import sys
from importlib import import_module
from io import TextIOWrapper
from pkgutil import iter_modules

from brain_pipeline.cli import commands
from brain_pipeline.cli.app import app, err
from brain_pipeline.errors import BrainError

for _module in iter_modules(commands.__path__, f"{commands.__name__}."):
    import_module(_module.name)


def main() -> None:
    """Runs the command; an error of ours is printed as a sentence, with status 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file's name may be no text, and is printed nevertheless
    try:
        app()
    except BrainError as error:
        err.print(f"brain: {error}", style="red", markup=False)
        sys.exit(1)
