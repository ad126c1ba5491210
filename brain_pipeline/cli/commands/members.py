"""The family's members: whose mail is whose."""

from __future__ import annotations

from typing import Annotated

import typer

from brain_pipeline.cli.app import Environment, app, brain_of, err, load_settings, out

members = typer.Typer(no_args_is_help=True, help="Teach whose mail is whose, and see what was learned.")
app.add_typer(members, name="members")

Pattern = Annotated[
    str,
    typer.Argument(help="sender:, domain:, list:, subject: (a word), name: or email:, as sender:coach@gulls.example."),
]


@members.command("list")
def show(environment: Environment = None) -> None:
    """The members, their rules, and how many emails concern them."""
    with brain_of(load_settings(environment)) as brain:
        known = brain.members()
    for member in known:
        also = f" ({', '.join(member.nicknames)})" if member.nicknames else ""
        out.print(f"{member.name}{also}: {member.emails} email{'' if member.emails == 1 else 's'}", markup=False)
        for pattern, times, of in member.rules:
            out.print(f"  {pattern}  {times} of {of}", markup=False)
    if not known:
        err.print("There are no members yet. Name them in BRAIN_MEMBERS, or `brain members learn PATTERN MEMBER`.")


@members.command()
def learn(
    pattern: Pattern,
    member: Annotated[str, typer.Argument(help="Whose mail it is.")],
    environment: Environment = None,
) -> None:
    """Say that mail of a pattern is somebody's; it applies to all mail at once."""
    with brain_of(load_settings(environment)) as brain:
        brain.learn_assignment(pattern, member)
    out.print(f"learned: mail of {pattern} is {member}'s", markup=False)


@members.command()
def forget(
    pattern: Pattern,
    member: Annotated[str | None, typer.Argument(help="Whose; default everybody's.")] = None,
    environment: Environment = None,
) -> None:
    """Undo what was learned of a pattern."""
    with brain_of(load_settings(environment)) as brain:
        gone = brain.forget_assignment(pattern, member)
    if not gone:
        err.print(f"Nothing was learned of {pattern}; `brain members list` shows what was.", markup=False)
        raise typer.Exit(1)
    out.print(f"forgotten: {pattern}, {gone} rule{'' if gone == 1 else 's'}", markup=False)
