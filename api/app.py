"""The brain as a service of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI

from api.page import add_page
from api.router import router
from api.security import Security, require_token
from brain_pipeline.brain import Brain
from brain_pipeline.errors import BrainError
from brain_pipeline.models.guard import require_household
from brain_pipeline.settings import Settings

log = logging.getLogger(__name__)

LONGEST_FAREWELL = 5.0  # seconds


def create_app(settings: Settings | None = None, brain: Brain | None = None) -> FastAPI:
    """A FastAPI application with the brain's endpoints and a health check.

    Args:
        settings: default those of the environment.
        brain: used instead of one made from ``settings``, which then say who may ask.

    Raises:
        ConfigError: the settings can't be used, name a server outside the household, or would let others ask without
            a token.
    """
    own = brain or Brain(settings or Settings.load())
    settings = settings or own.settings
    require_household(settings)
    require_token(settings)

    # The interactive documentation pages load scripts from a public server; /openapi.json remains.
    app = FastAPI(title="Family Brain", version=version("family-brain"), docs_url=None, redoc_url=None)
    app.state.family_brain = own
    app.add_middleware(Security, settings=settings)
    app.include_router(router)
    if own.settings.warm_up:
        app.include_router(APIRouter(lifespan=_warming(own)))  # after the other, since what starts last ends first
    add_page(app)

    @app.get("/healthz", tags=["health"], summary="Whether the service runs")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    return app


def _warming(brain: Brain) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """A lifespan that warms the brain up and, at its end, waits for that: it would open the database again."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=_warm_up, args=(brain, ended), name="warm-up", daemon=True)
        thread.start()
        yield
        ended.set()
        # A model that loads in this process must not be torn away; a server that loads its own may be left waiting.
        await asyncio.to_thread(thread.join, LONGEST_FAREWELL)

    return lifespan


def _warm_up(brain: Brain, ended: threading.Event) -> None:
    try:
        brain.warm_up()
    except BrainError as error:
        log.warning("not ready yet: %s", error)
    finally:
        if ended.is_set():  # whoever ended may not have waited for this
            brain.close()
