"""Ask a question in the terminal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from brain_pipeline.cli.app import Environment, Now, app, brain_of, err, load_settings, out, screen
from brain_pipeline.cli.show import answer_lines, lines

if TYPE_CHECKING:
    from brain_pipeline.records import Answer, Found, Piece, Source


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="In plain words, in quotes.")],
    top_k: Annotated[int | None, typer.Option(help="Sources wanted at most.")] = None,
    source: Annotated[str, typer.Option(help="email, newsletter, calendar or all.")] = "all",
    member: Annotated[str | None, typer.Option(help="Of the family: only their mail.")] = None,
    now: Now = None,
    environment: Environment = None,
) -> None:
    """Ask a question."""
    with brain_of(load_settings(environment, now=now)) as brain:
        if screen.is_terminal:
            import asyncio

            answer = asyncio.run(watch(brain.astream(question, top_k=top_k, source=source, member=member)))
        else:
            answer = brain.query(question, top_k=top_k, source=source, member=member)
            out.print(answer_lines(answer))
        if not answer.sources and not (held := brain.stats()).total_documents:
            err.print(
                f"There is no mail yet in {held.db_path}, environment {brain.settings.environment}. Bring some in with "
                "`brain ingest PATH`, or name another environment with BRAIN_ENV; `brain demo` uses embedded.",
                markup=False,
            )


async def watch(events: AsyncGenerator[Found | Piece | Answer, None]) -> Answer:
    """Shows the sources at once, above them the answer's words as they come, at last the answer itself."""
    from rich.live import Live

    from brain_pipeline.records import Answer, Found, Piece

    text = ""
    sources: Sequence[Source] = ()
    with Live(console=screen, auto_refresh=False, vertical_overflow="visible") as live:
        async for event in events:
            if isinstance(event, Found):
                sources = event.sources
            elif isinstance(event, Piece):
                text += event.text
            shown = lines(text, sources) if isinstance(event, Found | Piece) else answer_lines(event)
            live.update(shown, refresh=True)
    assert isinstance(event, Answer)  # noqa: S101  (the last event always is)
    return event
