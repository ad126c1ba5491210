"""The ``brain`` command: the one place where errors become sentences."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup
from typing_extensions import override

from brain_pipeline.errors import BrainError

if TYPE_CHECKING:
    from brain_pipeline.brain import Brain
    from brain_pipeline.records import Answer, Found, Piece, Report, Source
    from brain_pipeline.remote import RemoteBrain
    from brain_pipeline.settings import Settings

FIRST_QUESTION = "What do the kids need for the field trip?"
SECOND_QUESTION = "How much did the water heater cost?"

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)
screen = Console(highlight=False)  # for what is drawn anew, which must be wrapped here to be cleared again


class Commands(TyperGroup):
    """The commands; Typer itself says nothing when one is interrupted."""

    @override
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            err.print("brain: stopped. What was finished is kept; run the same command again to go on.", markup=False)
            raise typer.Exit(130) from error


app = typer.Typer(
    cls=Commands,
    help="Ask a household's own emails and newsletters, and be told where the answer was found.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Environment = Annotated[
    str | None, typer.Option("--env", "-e", help="Which configs/<name>.toml to use; default BRAIN_ENV, else staging.")
]


def main() -> None:
    """Runs the command; an error of ours is printed as a sentence, with status 1."""
    try:
        app()
    except BrainError as error:
        err.print(f"brain: {error}", style="red", markup=False)
        sys.exit(1)


def _settings(environment: str | None, **overrides: Any) -> Settings:
    from brain_pipeline.settings import Settings

    given = {name: value for name, value in overrides.items() if value is not None}
    return Settings.load(**given, **({"environment": environment} if environment else {}))


def _open(settings: Settings) -> Brain | RemoteBrain:
    """The brain itself, or, while another process serves it, that process."""
    from brain_pipeline.index.ownership import Ownership

    owner = Ownership(settings.db_path).elsewhere() if settings.chroma_url is None else None
    if owner is not None:
        from brain_pipeline.remote import RemoteBrain

        return RemoteBrain(settings, owner.url)
    from brain_pipeline.brain import open_brain

    return open_brain(settings)


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="In plain words, in quotes.")],
    top_k: Annotated[int | None, typer.Option(help="Sources wanted at most.")] = None,
    source: Annotated[str, typer.Option(help="email, newsletter or all.")] = "all",
    environment: Environment = None,
) -> None:
    """Ask a question."""
    with _open(_settings(environment)) as brain:
        if screen.is_terminal:
            import asyncio

            answer = asyncio.run(_watch(brain.astream(question, top_k=top_k, source=source)))
        else:
            answer = brain.query(question, top_k=top_k, source=source)
            _show(answer)
        if not answer.sources and not (held := brain.stats()).total_documents:
            err.print(
                f"There is no mail yet in {held.db_path}, environment {brain.settings.environment}. Bring some in with "
                "`brain ingest PATH`, or name another environment with BRAIN_ENV; `brain demo` uses embedded.",
                markup=False,
            )


async def _watch(events: AsyncGenerator[Found | Piece | Answer, None]) -> Answer:
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
            shown = _lines(text, sources) if isinstance(event, Found | Piece) else _answer_lines(event)
            live.update(shown, refresh=True)
    assert isinstance(event, Answer)  # noqa: S101  (the last event always is)
    return event


def _show(answer: Answer) -> None:
    out.print(_answer_lines(answer))


def _answer_lines(answer: Answer) -> Text:
    footer = f"  confidence {answer.confidence}, {answer.query_time_ms} ms" if answer.sources else ""
    return _lines(answer.text, answer.sources, footer)


def _lines(text: str, sources: Sequence[Source], footer: str = "") -> Text:
    lines = [Text(text or "…", "bold"), *(Text(f"  {source.attribution}", "cyan") for source in sources)]
    return Text("\n").join([*lines, Text(footer, "dim")] if footer else lines)


@app.command()
def ingest(
    paths: Annotated[
        list[Path], typer.Argument(help="Mail: .eml, .mbox, Maildir, .zip, folders of them; - reads stdin.")
    ],
    environment: Environment = None,
) -> None:
    """Bring mail into the brain; what it holds already is left alone."""
    from brain_pipeline.mail.mailboxes import iter_messages
    from brain_pipeline.progress import Watch

    with _open(_settings(environment)) as brain, Watch(err, iter_messages(paths), paths) as watch:
        report = brain.ingest(watch, on_progress=watch.show)
    _show_report(report)
    if report.total == len(report.skipped):
        raise typer.Exit(1)


@app.command()
def parse(
    paths: Annotated[list[Path], typer.Argument(help="Mail, as for ingest.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    environment: Environment = None,
) -> None:
    """Show what would be read of mail, without storing anything."""
    from brain_pipeline.mail.reading import read_all
    from brain_pipeline.mail.show import as_json_line, as_text

    show = as_json_line if as_json else as_text
    for origin, mail in read_all(paths, _settings(environment)):
        sys.stdout.write(show(origin, mail) + "\n")


def _show_report(report: Report) -> None:
    counts = f"{report.new} new, {report.updated} updated, {report.unchanged} unchanged, {len(report.skipped)} skipped"
    out.print(counts, markup=False)
    for origin, reason in report.skipped:
        out.print(f"  skipped {origin}: {reason}", style="yellow", markup=False)


@app.command()
def stats(environment: Environment = None) -> None:
    """What the brain holds."""
    with _open(_settings(environment)) as brain:
        held = brain.stats()
    out.print(f"{held.total_documents} emails in {held.total_chunks} chunks", markup=False)
    out.print(f"collection {held.collection} in {held.db_path}", markup=False)
    out.print(f"last ingest {held.last_ingest.isoformat() if held.last_ingest else 'never'}", markup=False)


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.")] = None,
    environment: Environment = None,
) -> None:
    """Serve the brain over HTTP."""
    from brain_pipeline.brain import open_brain

    settings = _settings(environment, host=host, port=port)
    with open_brain(settings) as brain:
        _serve(brain)


def _serve(brain: Brain) -> None:
    # The HTTP side stands above the pipeline; only this command, which starts it, knows it by name.
    with suppress(KeyboardInterrupt):  # how a person stops it
        import_module("api.serve").run(brain, announce=lambda url: out.print(f"Serving {url} (Ctrl-C stops it)"))


@app.command("eval")
def evaluate(
    sets: Annotated[list[Path], typer.Argument(help="JSONL files of questions with their right answers.")],
    mail: Annotated[Path | None, typer.Option(help="A folder of mail to measure over; default the open brain.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    answers: Annotated[bool, typer.Option("--answers", help="Ask the language model too, for the key facts.")] = False,
    baseline: Annotated[Path | None, typer.Option(help="What --json printed before, to compare with.")] = None,
    environment: Environment = None,
) -> None:
    """Measure retrieval, abstention and calibration by questions whose answers are known."""
    from brain_pipeline.brain import open_brain
    from brain_pipeline.evaluate import read_baseline, read_questions, render
    from brain_pipeline.trial import by_email, measure, throw_away_brain

    settings = _settings(environment)
    before = read_baseline(baseline) if baseline else None
    questions = [question for path in sets for question in read_questions(path)]
    with throw_away_brain(settings, mail) if mail else open_brain(settings) as brain:
        if mail:
            questions = list(by_email(brain, mail, questions))
        measured = measure(brain, questions, answers=answers)
    sys.stdout.write((json.dumps(measured.as_json()) if as_json else render(measured, before)) + "\n")


@app.command()
def calibrate(
    sets: Annotated[
        list[Path] | None, typer.Argument(help="JSONL files of questions; without, the mail itself.")
    ] = None,
    environment: Environment = None,
) -> None:
    """Fit the score to the collection, from its own mail or from labelled questions."""
    from brain_pipeline.brain import open_brain
    from brain_pipeline.evaluate import read_questions
    from brain_pipeline.trial import calibrate as calibrate_by

    with open_brain(_settings(environment)) as brain:
        if sets:
            found = calibrate_by(brain, [question for path in sets for question in read_questions(path)])
        else:
            found = brain.calibrate()
    out.print(
        f"calibrated for {found.model}: weights {[round(w, 2) for w in found.weights]}, bias {found.bias:.2f}, "
        f"unrelated cosine {found.cosine_mean:.2f} ± {found.cosine_spread:.2f}",
        markup=False,
    )


@app.command()
def doctor(environment: Environment = None) -> None:
    """Check everything that can be wrong, and say what to do about it."""
    from brain_pipeline.doctor import diagnose

    healthy = True
    for finding in diagnose(_settings(environment)):
        healthy &= finding.ok
        mark, style = ("ok ", "green") if finding.ok else ("BAD", "bold red")
        out.print(f"[{style}]{mark}[/] ", end="")
        out.print(finding.what + (f" {finding.remedy}" if finding.remedy else ""), markup=False)
    if not healthy:
        raise typer.Exit(1)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="Where to; it must not exist yet.")], environment: Environment = None
) -> None:
    """Copy the database into one file, checked."""
    from brain_pipeline.backup import back_up

    manifest = back_up(_settings(environment), file)
    out.print(f"backed up {len(manifest.files)} files, read back and compared, to {file}", markup=False)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="What `brain backup` wrote.")], environment: Environment = None
) -> None:
    """Put a backup in the database's place; what was there is kept beside it."""
    from brain_pipeline.backup import restore as put_back
    from brain_pipeline.brain import open_brain

    settings = _settings(environment)
    before = put_back(settings, file)
    if before is not None:
        out.print(f"what was there before is in {before}", markup=False)
    with open_brain(settings) as brain:
        held = brain.stats()
    out.print(f"restored {held.total_documents} emails in {held.total_chunks} chunks", markup=False)


@app.command()
def demo(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
) -> None:
    """Ingest the sample mailbox, ask it a question, and serve it."""
    from brain_pipeline.brain import open_brain
    from brain_pipeline.mail.mailboxes import iter_messages
    from brain_pipeline.sample import sample_mail

    settings = _settings(os.environ.get("BRAIN_ENV") or "embedded", host=host, port=port)
    with open_brain(settings) as brain:
        _show_report(brain.ingest(iter_messages([sample_mail()])))
        out.print(f"\n> {FIRST_QUESTION}", markup=False)
        _show(brain.query(FIRST_QUESTION))
        again = f"BRAIN_ENV={settings.environment} {sys.argv[0]} ask '{SECOND_QUESTION}'"
        out.print(f"\nTry another, in another terminal:\n  {again}\n", markup=False)
        _serve(brain)


if __name__ == "__main__":
    main()
