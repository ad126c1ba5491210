"""A brain inside another FastAPI application: its routes, over a brain of its own, with its own start and end."""

from __future__ import annotations

from fastapi import APIRouter, Depends, FastAPI, Request

from api.life import closing, warming
from api.openai import router as openai_router
from api.router import router
from brain_pipeline.brain import Brain, open_brain
from brain_pipeline.settings import Settings


def brain_router(settings: Settings | None = None, *, brain: Brain | None = None, openai: bool = False) -> APIRouter:
    """All of ``/brain/...`` over one brain, which warms up when the application starts and is closed when it ends.

    Several of them, each under a prefix of its own, serve several brains. Who may ask is the host's business;
    ``api.security.Security`` is what the service of its own has in front.

    Args:
        settings: where the mail is and which models answer; default those of the environment.
        brain: used instead of one made from ``settings``.
        openai: whether ``/v1/chat/completions`` and ``/v1/models`` are wanted too.

    Raises:
        ConfigError: the settings can't be used, or name a server outside the household.
    """
    own = brain or open_brain(settings)

    async def bind(request: Request) -> None:
        request.state.family_brain = own

    mounted = APIRouter(dependencies=[Depends(bind)], lifespan=closing(own))
    mounted.include_router(router)
    if openai:
        mounted.include_router(openai_router)
    if own.settings.warm_up:
        mounted.include_router(APIRouter(lifespan=warming(own)))  # after the other, since what starts last ends first
    return mounted


def mount_brain(
    app: FastAPI,
    settings: Settings | None = None,
    *,
    brain: Brain | None = None,
    prefix: str = "",
    openai: bool = False,
) -> None:
    """Adds the routes of ``brain_router`` to an application; its own routes and its lifespan stay as they are."""
    app.include_router(brain_router(settings, brain=brain, openai=openai), prefix=prefix)
