"""What every command shares: the application they register with, its consoles, and the brain they ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup
from typing_extensions import override

if TYPE_CHECKING:
    from brain_pipeline.brain import Brain
    from brain_pipeline.remote import RemoteBrain
    from brain_pipeline.settings import Settings

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

Now = Annotated[
    str | None, typer.Option(help="The moment to ask at, as 2026-01-09T08:00, in the household's zone; default now.")
]


def load_settings(environment: str | None, **overrides: Any) -> Settings:
    """The settings of the environment; those of ``overrides`` that are not None win."""
    from brain_pipeline.settings import Settings

    given = {name: value for name, value in overrides.items() if value is not None}
    return Settings.load(**given, **({"environment": environment} if environment else {}))


def brain_of(settings: Settings) -> Brain | RemoteBrain:
    """The brain itself, or, while another process serves it, that process."""
    from brain_pipeline.index.ownership import Ownership

    owner = Ownership(settings.db_path).elsewhere() if settings.chroma_url is None else None
    if owner is not None:
        from brain_pipeline.remote import RemoteBrain

        return RemoteBrain(settings, owner.url)
    from brain_pipeline.brain import open_brain

    return open_brain(settings)
