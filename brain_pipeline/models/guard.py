"""Which addresses are the household's, and HTTP transports that reach no other.

A name is looked up for every request, and the connection goes to the very addresses that were looked at. So a name that
gets another address later (a PC that was asleep, DNS rebinding) leads out of the household at no time.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import httpx
from typing_extensions import override

from brain_pipeline.errors import ConfigError, ModelUnreachable
from brain_pipeline.settings import Settings

_NETWORKS = tuple(
    map(
        ip_network,
        (
            *("127.0.0.0/8", "::1/128", "0.0.0.0/32", "::/128"),  # this machine
            *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),  # private (RFC 1918, RFC 4193)
            *("169.254.0.0/16", "fe80::/10"),  # link-local
            *("100.64.0.0/10", "fd7a:115c:a1e0::/48"),  # Tailscale
        ),
    )
)
_TAILNET = ".ts.net"
_PATIENCE = 2.0  # seconds a look-up may take at start-up
# A name server that hangs must not use up the threads that everything else runs on.
_LOOK_UPS = ThreadPoolExecutor(4, "look-up")


def is_household(address: str) -> bool:
    """Whether an IP address belongs to this machine, a private network or the household's VPN."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    known: IPv4Address | IPv6Address = inner or ip
    return any(known in network for network in _NETWORKS)


@dataclass(frozen=True)
class Guard:
    """Says where a connection may go.

    ``allowed`` are hosts outside the household that the owner allows by name.
    """

    allowed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, hosts: Iterable[str]) -> Guard:
        """A guard that lets ``hosts`` pass, whatever their case."""
        return cls(frozenset(map(_plain, hosts)))

    def require(self, url: str) -> None:
        """Makes sure that ``url`` is the household's, as far as can be known now.

        A name that nobody knows now passes, because a PC may sleep and a VPN may be down; so does a Tailscale name.
        Both are looked at again when a connection is made.

        Raises:
            ConfigError: its host has an address outside the household.
        """
        host = _host(url)
        if not host or host in self.allowed or host.endswith(_TAILNET):
            return
        try:
            found = _addresses(_look_up(host, 0).result(_PATIENCE))
        except (TimeoutError, OSError, UnicodeError):
            return
        if foreign := next((address for address in found if not is_household(address)), None):
            raise ConfigError(_refusal(host, foreign))

    def addresses(self, host: str, port: int, timeout: float | None) -> list[str]:
        """Where to connect for ``host``; ``timeout`` is in seconds.

        Raises:
            ModelUnreachable: one of its addresses is outside the household.
            httpx.ConnectError: nobody knows the name.
            httpx.ConnectTimeout: nobody said in time.
        """
        looking = _look_up(host, port)
        try:
            return self._checked(host, looking.result(timeout))
        except TimeoutError as error:
            looking.cancel()
            raise httpx.ConnectTimeout(f"no address of {host} in time") from error
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(f"no address of {host}: {error}") from error

    async def aaddresses(self, host: str, port: int, timeout: float | None) -> list[str]:  # noqa: ASYNC109
        """As ``addresses``, without holding up the event loop."""
        looking = _look_up(host, port)
        try:
            if looking.done():  # an address is known without waiting
                return self._checked(host, looking.result())
            return self._checked(host, await asyncio.wait_for(asyncio.wrap_future(looking), timeout))
        except TimeoutError as error:
            raise httpx.ConnectTimeout(f"no address of {host} in time") from error
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(f"no address of {host}: {error}") from error

    def _checked(self, host: str, found: list[Any]) -> list[str]:
        addresses = _addresses(found)
        foreign = next((address for address in addresses if not is_household(address)), None)
        if foreign and _plain(host) not in self.allowed:
            raise ModelUnreachable(_refusal(host, foreign))
        return addresses


def require_household(settings: Settings) -> None:
    """Makes sure that every server that ``settings`` name is the household's; see ``Guard.require``.

    Raises:
        ConfigError: one is not.
    """
    guard = Guard.of(settings.allow_public_hosts)
    for url in _urls(settings):
        guard.require(url)


def _urls(settings: Settings) -> Iterator[str]:
    if settings.embed_provider == "ollama":
        yield settings.ollama_base_url
    if settings.llm_provider == "ollama":
        yield settings.llm_url
    if settings.llm_fallback_url is not None:
        yield settings.llm_fallback_url
    if settings.chroma_url is not None:
        yield settings.chroma_url


def _look_up(host: str, port: int) -> Future[list[Any]]:
    if _is_address(host):
        known: Future[list[Any]] = Future()
        known.set_result([(None, None, None, "", (host, port))])
        return known
    return _LOOK_UPS.submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)


def _is_address(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _host(url: str) -> str:
    try:
        return _plain(urlsplit(url if "://" in url else f"http://{url}").hostname or "")
    except ValueError:  # not an address at all, which building its client reports
        return ""


def _plain(host: str) -> str:
    return host.strip().strip("[]").rstrip(".").lower()


def _addresses(found: list[Any]) -> list[str]:
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _refusal(host: str, address: str) -> str:
    where = host if host == address else f"{host} has the address {address}, which"
    return (
        f"{where} is outside the household, and nothing is sent there. Name a server of your own, or allow this one "
        f"with BRAIN_ALLOW_PUBLIC_HOSTS={host}."
    )


def _pinned(request: httpx.Request, addresses: list[str]) -> Iterator[httpx.Request]:
    """The request to each address in turn; the time to connect is shared among them."""
    if addresses == [request.url.host]:
        yield request
        return
    timeouts = dict(request.extensions.get("timeout", {}))
    if timeouts.get("connect") is not None:
        timeouts["connect"] /= len(addresses)
    extensions = {**request.extensions, "timeout": timeouts, "sni_hostname": request.url.host}
    for address in addresses:
        url = request.url.copy_with(host=address)
        yield httpx.Request(request.method, url, headers=request.headers, stream=request.stream, extensions=extensions)


def _place(request: httpx.Request) -> tuple[str, int, float | None]:
    port = request.url.port or (443 if request.url.scheme == "https" else 80)
    return request.url.host, port, request.extensions.get("timeout", {}).get("connect")


class GuardedTransport(httpx.HTTPTransport):
    """Connects where ``guard`` allows; takes what httpx's own transport takes."""

    def __init__(self, guard: Guard, **options: Any) -> None:
        super().__init__(**options)
        self._guard = guard

    @override
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        *others, last = _pinned(request, self._guard.addresses(*_place(request)))
        for pinned in others:
            try:
                return super().handle_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return super().handle_request(last)


class AsyncGuardedTransport(httpx.AsyncHTTPTransport):
    """``GuardedTransport`` for asynchronous clients."""

    def __init__(self, guard: Guard, **options: Any) -> None:
        super().__init__(**options)
        self._guard = guard

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        *others, last = _pinned(request, await self._guard.aaddresses(*_place(request)))
        for pinned in others:
            try:
                return await super().handle_async_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await super().handle_async_request(last)
