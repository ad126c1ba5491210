"""Measures the rows that are named, or all: ``python -m bench [ROW ...]``, with ``tests`` on the path.

Every row is written to the results as soon as it is there, and can be measured alone. Chroma collections are made once
and kept in the cache.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path

from bench.plot import GROWTH, growth_svg
from bench.rows import NOT_QUICK, ROWS
from bench.run import Run
from bench.table import RESULTS, Results, into_readme, table, this_machine

README = Path(__file__).parents[2] / "README.md"
SIZES = [each for each in fields(Run) if each.name != "cache"]


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that what was started is ended
    given = _arguments()
    with ExitStack() as undo:
        cache = given.cache or Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="family-brain-bench-")))
        chosen = {each.name: getattr(given, each.name) for each in SIZES if getattr(given, each.name) is not None}
        run = replace(Run.quick(cache) if given.quick else Run(cache), **chosen)
        results = _results(given.out, resume=given.resume or bool(given.rows))
        for name in given.rows or [each for each in ROWS if not (given.quick and each in NOT_QUICK)]:
            if given.resume and name in results.rows:
                continue
            began = time.monotonic()
            print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
            lines = ROWS[name](run)
            print(f"{time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            settings = {each.name: getattr(run, each.name) for each in SIZES}
            results.add(name, lines, settings)
            if given.out:
                results.write(given.out)
    print(table(results))
    if given.out == RESULTS:
        _publish(results)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=[[], *ROWS], metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works; nothing is kept")
    parser.add_argument("--resume", action="store_true", help="leave out rows that the results have")
    parser.add_argument("--cache", type=Path, help="where collections are kept; default a folder that is deleted again")
    parser.add_argument("--out", type=Path, help=f"where results go; default {RESULTS.name}, nowhere with --quick")
    for each in SIZES:
        kind = float if each.name == "seconds" else int
        parser.add_argument(f"--{each.name}", type=kind, help=f"default {each.default}")
    given = parser.parse_args()
    given.out = given.out or (None if given.quick else RESULTS)
    return given


def _results(path: Path | None, *, resume: bool) -> Results:
    """Those of an earlier run that this one goes on with: on the same machine, with the same versions."""
    here = this_machine()
    if resume and path is not None and path.exists():
        kept = Results.read(path)
        if kept.about == here:
            return kept
    return Results(here)


def _publish(results: Results) -> None:
    """Puts what was measured where readers see it."""
    README.write_text(into_readme(README.read_text(), results))
    for line in results.rows.get("growth", []):
        if points := line.about.get("points"):
            GROWTH.write_text(growth_svg(points))


if __name__ == "__main__":
    main()
