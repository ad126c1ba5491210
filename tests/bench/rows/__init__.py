"""The rows of the table, by name: each measures one thing in a run of its own."""

from __future__ import annotations

from collections.abc import Callable

from bench.figures import Line
from bench.rows.growth import growth
from bench.rows.ingest import ingest
from bench.rows.load import load
from bench.rows.query import first_event, query, sources
from bench.rows.start import start
from bench.rows.stats import stats
from bench.rows.tokens import tokens
from bench.run import Run

ROWS: dict[str, Callable[[Run], list[Line]]] = {
    "query-small": lambda run: [query(run, run.small)],
    "query-large": lambda run: [query(run, run.large)],
    "sources": lambda run: [line for size in sorted({run.small, run.large}) for line in sources(run, size)],
    "first-event": lambda run: [first_event(run)],
    "load": lambda run: [load(run)],
    "ingest": ingest,
    "tokens": tokens,
    "start": lambda run: [start(run)],
    "growth": growth,
    "stats": lambda run: [stats(run)],
    "server-query": lambda run: [query(run, run.small, server=True)],
    "server-sources": lambda run: sources(run, run.small, server=True),
    "server-load": lambda run: [load(run, server=True)],
    "server-stats": lambda run: [stats(run, server=True)],
}

# What a quick run leaves out: the same code as in another row, with other numbers.
NOT_QUICK = {"query-large", "first-event", "server-sources", "server-load", "server-stats"}
