"""Everything that a host application mounts."""

from __future__ import annotations

from fastapi import APIRouter

from api import members, routes, stream

router = APIRouter()
router.include_router(routes.router)
router.include_router(stream.router)
router.include_router(members.router)
