"""Who may ask: checks in front of the application, for a service of its own and for a host application."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
from urllib.parse import urlsplit

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brain_pipeline.errors import ConfigError
from brain_pipeline.models.guard import is_household
from brain_pipeline.settings import Settings

OPEN_PATHS = ("/", "/healthz")  # the page itself holds nothing of the household, and must load to ask for the token
OPEN_FOLDER = "/static/"
SLOWEST_BODY = 30.0  # seconds between two pieces of a request's body

# What a response says when it does not say otherwise itself.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def require_token(settings: Settings) -> None:
    """Makes sure that only this machine can ask without a token.

    Raises:
        ConfigError: the service is to listen on another address than loopback, and no token is set.
    """
    if settings.api_token is None and not _is_loopback(settings.host):
        raise ConfigError(
            f"Listening on {settings.host} lets others on the network ask. Set BRAIN_API_TOKEN to a secret that they "
            "must send as `Authorization: Bearer`, or listen on 127.0.0.1."
        )


class Security:
    """ASGI middleware that refuses requests that are not the household's; everything else passes unchanged.

    - A ``Host`` that is neither an address of the household nor a known name is refused (400), so that a foreign page
      can't reach the service under a name of its own (DNS rebinding).
    - A foreign ``Origin`` is refused (403), and so is what a foreign page loads without one.
    - With ``settings.api_token``, everything but the page's own files and ``/healthz`` needs it (401). Without, only
      connections to a loopback address are answered (403).
    - A body beyond ``settings.upload_limit`` is refused (413), one that stops coming too (408).

    Responses get ``HEADERS``, where they don't set them themselves. A host application adds it with
    ``app.add_middleware(Security, settings=settings)``.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._limit = settings.upload_limit
        self._token = settings.api_token.get_secret_value().encode() if settings.api_token else None
        own = socket.gethostname().lower()
        self._names = {"localhost", own, f"{own}.local", settings.host.lower(), *map(str.lower, settings.allowed_hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request that is refused, and passes every other on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope, Headers(scope=scope))
        except HTTPException as refusal:
            response = JSONResponse({"detail": refusal.detail}, refusal.status_code, refusal.headers)
            await response(scope, receive, send_with_headers)
        else:
            await self._app(scope, self._limited(receive), send_with_headers)

    def _check(self, scope: Scope, headers: Headers) -> None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            raise HTTPException(400, "This service has another name; BRAIN_ALLOWED_HOSTS lists the names it goes by.")
        if _is_foreign(headers, host):
            raise HTTPException(403, "Only this service's own pages may ask it from a browser.")
        self._check_caller(scope, headers)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._limit:
            raise self._too_large()

    def _is_ours(self, host: str) -> bool:
        name = _hostname(host)
        return name in self._names or is_household(name)

    def _check_caller(self, scope: Scope, headers: Headers) -> None:
        if self._token is None:
            listening = (scope.get("server") or ("",))[0]
            if _is_address(listening) and not _is_loopback(listening):
                raise HTTPException(403, "Without BRAIN_API_TOKEN this service answers its own machine only.")
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path in OPEN_PATHS or path.startswith(OPEN_FOLDER):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token):
            raise HTTPException(401, "Send the token as `Authorization: Bearer TOKEN`.", {"WWW-Authenticate": "Bearer"})

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"A request may send {self._limit:,} bytes at most; send less at once.")

    def _limited(self, receive: Receive) -> Receive:
        received = 0
        complete = False

        async def receive_limited() -> Message:
            nonlocal received, complete
            try:
                async with asyncio.timeout(None if complete else SLOWEST_BODY):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, "The request stopped in the middle; send it again.") from error
            complete = not message.get("more_body", False)
            received += len(message.get("body", b""))
            if received > self._limit:
                raise self._too_large()
            return message

        return receive_limited


def _hostname(host: str) -> str:
    try:
        parts = urlsplit(f"//{host}")
    except ValueError:
        return ""
    return (parts.hostname or "").rstrip(".") if parts.netloc == host and "@" not in host else ""


def _is_foreign(headers: Headers, host: str) -> bool:
    if (origin := headers.get("origin")) is not None:
        return origin.partition("://")[2].lower() != host.lower()
    return headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    """Whether every address of ``host`` is this machine's own; unknown names are not."""
    try:
        found = socket.getaddrinfo(host or "0.0.0.0", None)  # noqa: S104  (an empty name listens everywhere)
    except (OSError, UnicodeError):
        return False
    return all(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]).is_loopback for entry in found)
