"""Running the service: one process, one port."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import ExitStack

import uvicorn

from api.app import create_app
from brain_pipeline.brain import Brain
from brain_pipeline.errors import ConfigError, StoreError, StoreLocked

log = logging.getLogger(__name__)


def run(brain: Brain, *, announce: Callable[[str], None] = lambda _: None) -> None:
    """Serves until it is told to stop.

    Args:
        brain: what answers; its settings say where to listen.
        announce: called with the service's URL once it listens.

    Raises:
        ConfigError: the address can't be listened on, or the settings can't be used; see ``create_app``.
        StoreLocked: another process owns the database.
    """
    settings = brain.settings
    try:
        brain.catalog.store.collection()
    except StoreLocked:
        raise
    except StoreError as error:  # it may be mended while the service runs; until then it answers 503
        log.warning("%s", error)
    app = create_app(settings, brain)
    with _listen(settings.host, settings.port) as listening:
        host, port = listening.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        if settings.chroma_url is None:  # a Chroma server is for any number of services
            brain.catalog.store.ownership.announce(url)
        announce(url)
        config = uvicorn.Config(
            app,
            log_level=settings.log_level,
            access_log=False,  # it would write down every question
            server_header=False,
            ws="none",  # there are none; looking for a library that speaks them takes time and may warn
            timeout_keep_alive=75,  # longer than clients keep one idle: else it closes as they ask again
        )
        try:
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            brain.catalog.store.ownership.announce("")


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with ExitStack() as undo:
            listening = undo.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
            undo.pop_all()
    except OSError as error:
        raise ConfigError(
            f"Can't listen on {host} port {port}: {error.strerror}. Choose another with BRAIN_HOST and BRAIN_PORT, or "
            "`brain serve --host HOST --port PORT`."
        ) from error
    return listening
