"""How records look in a notebook's cell. Mail is hostile: everything is escaped, and nothing is loaded.

Colours are the notebook's own, so that dark and light both work. The classes keep MathJax from setting "$5 and $10" as
a formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brain_pipeline.records import Answer, Source, Stats

_PLAIN = 'class="tex2jax_ignore mathjax_ignore"'
_QUIET = "opacity:.7;font-size:90%"
_WHOLE = "white-space:nowrap"
_SHORT = 12  # characters, such as a date's


def answer(shown: Answer) -> str:
    """An answer above its sources, each with its passage folded away."""
    sure = f"confidence {shown.confidence}, {shown.query_time_ms:,} ms"
    sources = "".join(map(_folded, shown.sources))
    return _block(f'{_text(shown.text, "font-size:110%")}{sources}<div style="{_QUIET}">{escape(sure)}</div>')


def source(shown: Source) -> str:
    """A source with its passage."""
    about = " · ".join(filter(None, [shown.source_type, shown.sender, f"score {shown.score:.2f}"]))
    head = f"<bdi><b>{escape(shown.attribution)}</b></bdi>"
    return _block(f'{head}<div style="{_QUIET}"><bdi>{escape(about)}</bdi></div>{_text(shown.passage)}')


def stats(shown: Stats) -> str:
    """What the brain holds, as a table."""
    rows = {
        "emails": f"{shown.total_documents:,}",
        "chunks": f"{shown.total_chunks:,}",
        "collection": shown.collection,
        "database": shown.db_path,
        "last ingest": shown.last_ingest.isoformat(" ", "minutes") if shown.last_ingest else "never",
    }
    return _block(_table((), rows.items()))


def explanation(
    question: str, head: Sequence[str], rows: Iterable[Sequence[str]], prompt: Sequence[tuple[str, str]]
) -> str:
    """Candidates as a table, the last column folded away, below it the prompt, folded away too."""
    messages = "".join(f"<b>{escape(role)}</b>{_text(text)}" for role, text in prompt)
    sent = (
        _details("the prompt", messages) if prompt else "<i>No candidate is worth asking the language model about.</i>"
    )
    return _block(f"<bdi><b>{escape(question)}</b></bdi>{_table(head, rows)}{sent}")


def _block(html: str) -> str:
    return f'<div {_PLAIN} style="text-align:left;line-height:1.5">{html}</div>'


def _text(text: str, style: str = "") -> str:
    return f'<div dir="auto" style="white-space:pre-wrap;{style}">{escape(text)}</div>'


def _details(summary: str, html: str) -> str:
    return f"<details><summary><bdi>{escape(summary)}</bdi></summary>{html}</details>"


def _folded(shown: Source) -> str:
    return _details(f"{shown.attribution} ({shown.score:.2f})", _text(shown.passage))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f'<th style="text-align:left">{escape(title)}</th>' for title in head)
    body = "".join(f"<tr>{_cells(row, fold=bool(head))}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{titles}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def _cells(row: Sequence[str], *, fold: bool) -> str:
    shown = [f'<bdi style="{_WHOLE if len(value) <= _SHORT else ""}">{escape(value)}</bdi>' for value in row]
    if fold:
        shown[-1] = _details("text", _text(row[-1]))
    return "".join(f'<td style="text-align:left;vertical-align:top">{value}</td>' for value in shown)
