"""The brain as a service of its own."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter, FastAPI

from api import openai
from api.life import warming
from api.page import add_page
from api.router import router
from api.security import Security, require_token
from brain_pipeline.brain import Brain
from brain_pipeline.models.guard import require_household
from brain_pipeline.settings import Settings


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
    app.include_router(openai.router)
    if own.settings.warm_up:
        app.include_router(APIRouter(lifespan=warming(own)))  # after the other, since what starts last ends first
    add_page(app)

    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", tags=["health"], summary="Whether the service runs")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    return app
