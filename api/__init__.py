"""The HTTP side: ``create_app()`` for a service of its own, the others to mount it in another FastAPI application.

``mount_brain(app, settings)`` and ``brain_router(settings)`` bring a brain of their own; ``router`` asks the one in
``app.state.family_brain``.
"""

from api.app import create_app
from api.mount import brain_router, mount_brain
from api.router import router

__all__ = ["brain_router", "create_app", "mount_brain", "router"]
