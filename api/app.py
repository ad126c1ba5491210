"""The brain as a service of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

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

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warming = threading.Thread(target=_warm_up, args=(own,), name="warm-up", daemon=True)
        if own.settings.warm_up:
            warming.start()
        yield
        if warming.is_alive():
            # A model that loads in this process must not be torn away; a server that loads its own may be left waiting.
            await asyncio.to_thread(warming.join, LONGEST_FAREWELL)

    # The interactive documentation pages load scripts from a public server; /openapi.json remains.
    app = FastAPI(title="Family Brain", version="0.1.0", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.family_brain = own
    app.add_middleware(Security, settings=settings)
    app.include_router(router)
    add_page(app)

    @app.get("/healthz", tags=["health"], summary="Whether the service runs")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    return app


def _warm_up(brain: Brain) -> None:
    try:
        brain.warm_up()
    except BrainError as error:
        log.warning("not ready yet: %s", error)
