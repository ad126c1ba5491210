"""The HTTP side: ``create_app()`` for a service of its own, ``router`` to mount in another FastAPI application."""

from api.app import create_app
from api.router import router

__all__ = ["create_app", "router"]
