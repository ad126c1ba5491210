"""Answers and reports as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from brain_pipeline.cli.app import out

if TYPE_CHECKING:
    from brain_pipeline.records import Answer, Report, Source


def answer_lines(answer: Answer) -> Text:
    """An answer, where it was found, and how sure that is."""
    footer = f"  confidence {answer.confidence}, {answer.query_time_ms} ms" if answer.sources else ""
    return lines(answer.text, answer.sources, footer)


def lines(text: str, sources: Sequence[Source], footer: str = "") -> Text:
    """An answer's text, even an unfinished one, above its sources."""
    shown = [Text(text or "…", "bold"), *(Text(f"  {source.attribution}", "cyan") for source in sources)]
    return Text("\n").join([*shown, Text(footer, "dim")] if footer else shown)


def show_report(report: Report) -> None:
    """Prints what an ingestion did, and every skipped message with its reason."""
    counts = f"{report.new} new, {report.updated} updated, {report.unchanged} unchanged, {len(report.skipped)} skipped"
    out.print(counts, markup=False)
    for origin, reason in report.skipped:
        out.print(f"  skipped {origin}: {reason}", style="yellow", markup=False)
