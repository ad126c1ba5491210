"""The results as a table and as a file."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from bench.figures import Comparison, Line

RESULTS = Path(__file__).with_name("results") / "bench.json"
BEGIN, END = "<!-- the newest table of `make bench` -->", "<!-- its end -->"  # around the table in the README
_PACKAGES = ("chromadb", "fastapi", "httpx", "llama-index-core", "numpy", "ollama", "pydantic", "uvicorn")
_HEAD = "| what | the brain | against | ratio | goal |\n|---|---|---|---|---|"


@dataclass
class Results:
    """The lines of each row, and where they were measured."""

    about: dict[str, Any]
    rows: dict[str, list[Line]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        kept = json.loads(path.read_text())
        rows = {name: [Line.from_json(line) for line in row["lines"]] for name, row in kept["rows"].items()}
        return cls(kept["about"], rows, {name: row["settings"] for name, row in kept["rows"].items()})

    def add(self, row: str, lines: list[Line], settings: Mapping[str, Any]) -> None:
        """Puts a row in the place of its earlier self; ``settings`` are those of the run."""
        load = os.getloadavg()[0]
        self.rows[row] = lines
        self.settings[row] = {**settings, "at": datetime.now(UTC).isoformat(timespec="seconds"), "load_after": load}

    def write(self, path: Path) -> None:
        rows = {
            name: {"settings": self.settings[name], "lines": [line.as_json() for line in lines]}
            for name, lines in self.rows.items()
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"about": self.about, "rows": rows}, indent=1) + "\n")

    def lines(self) -> list[Line]:
        return [line for lines in self.rows.values() for line in lines]


def this_machine() -> dict[str, Any]:
    """What figures depend on besides the code."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "machine": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory),
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    try:
        told = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in told if line.startswith("model name")), "")


def table(results: Results) -> str:
    """Markdown: one line for everything that a figure is compared with."""
    return "\n".join([_HEAD, *(row for line in results.lines() for row in _rows(line))])


def _rows(line: Line) -> list[str]:
    shown = f"{_figure(line.brain.median)} {line.unit}"
    firsts = [(line.what, shown), *[("", "")] * (len(line.comparisons) - 1)]
    pairs = zip(firsts, line.comparisons, strict=True)
    return [f"| {what} | {brain} | {_compared(each)} |" for (what, brain), each in pairs]


def _compared(each: Comparison) -> str:
    against = f"{each.against}: {_figure(each.spread.median)}"
    if each.goal is None:
        return f"{against} | {each.ratio:.2f} |"
    return f"{against} | {each.ratio:.2f} | {each.goal}{'' if each.goal.met(each.ratio) else ', missed'}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def into_readme(readme: str, results: Results) -> str:
    """The README with the table in place of the one it has."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(results)}\n{END}{after}"
