"""One model on one Ollama server: its clients, and what goes wrong there as errors of ours."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Collection, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import httpx
import ollama
import orjson

from brain_pipeline.errors import (
    ConfigError,
    ModelBadResponse,
    ModelError,
    ModelMissing,
    ModelOverloaded,
    ModelTimeout,
    ModelUnreachable,
)
from brain_pipeline.models.guard import AsyncGuardedTransport, Guard, GuardedTransport

_LONGEST_LINE = 10_000_000  # bytes of a streamed reply without an end of line, beyond which it is none of Ollama's
_TOO_BUSY = {httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE}


class AsyncClient(ollama.AsyncClient):
    """The client library's, and replies as they are sent: its own objects take longer to make than to receive."""

    async def reply(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON that the server answers with."""
        response = await self._client.post(path, content=orjson.dumps(body))
        return orjson.loads(response.content)

    async def replies(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Each line of JSON of a streamed answer, as it comes."""
        async with self._client.stream("POST", path, content=orjson.dumps(body)) as response:
            begun = b""
            async for piece in response.aiter_bytes():
                *lines, begun = (begun + piece).split(b"\n")
                for line in filter(None, lines):
                    yield _read(line)
                if len(begun) > _LONGEST_LINE:
                    raise ValueError("a line without an end")
            if begun:
                yield _read(begun)


def _read(line: bytes) -> Any:
    reply = orjson.loads(line)
    if error := reply.get("error"):
        raise ollama.ResponseError(error)
    return reply


class Endpoint:
    """A model on a server, reached directly: no proxy, no redirect and no key of the environment takes part.

    Args:
        url: the server, as ``http://127.0.0.1:11434``.
        model: Ollama's name of the model.
        connect_timeout: seconds until a server that does not accept the connection counts as unreachable.
        read_timeout: seconds of silence until a server that did accept it counts as too slow. A server that sends a
            little now and then is not silent: a deadline over all is the caller's, who cancels the call.
        public: hosts outside the household that may be connected to; see ``guard``.

    Raises:
        ConfigError: ``url`` is not an address.
    """

    def __init__(
        self, url: str, model: str, connect_timeout: float, read_timeout: float, public: Collection[str] = ()
    ) -> None:
        self.url = url
        self.model = model
        self.http_options: dict[str, Any] = {
            "timeout": httpx.Timeout(read_timeout, connect=connect_timeout, pool=connect_timeout),
            "follow_redirects": False,
            "trust_env": False,
            "auth": _without_key,
            "verify": _tls(),
        }
        self._guard = Guard.of(public)
        transport = GuardedTransport(self._guard, verify=_tls())
        try:
            self.client = ollama.Client(
                url, transport=transport, event_hooks={"response": [self._check]}, **self.http_options
            )
        except (ValueError, httpx.InvalidURL) as error:
            raise ConfigError(
                f"{url!r} is not the address of a model server, which looks like http://127.0.0.1:11434."
            ) from error
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[AsyncClient, AsyncGenerator[None]]] = {}

    @property
    def async_client(self) -> AsyncClient:
        """The client of the running event loop, to which its open connections belong."""
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            client = AsyncClient(
                self.url,
                transport=AsyncGuardedTransport(self._guard, verify=_tls()),
                event_hooks={"response": [self._acheck]},
                **self.http_options,
            )
            guard = self._close_with(loop, client)
            with suppress(StopIteration):  # runs to its first yield, which needs no waiting
                guard.asend(None).send(None)
            self._by_loop[loop] = client, guard
        return self._by_loop[loop][0]

    async def _close_with(self, loop: asyncio.AbstractEventLoop, client: AsyncClient) -> AsyncGenerator[None]:
        """Closes ``client`` when ``loop`` ends: ``asyncio.run`` finishes every generator that is still waiting."""
        try:
            yield
        finally:
            self._by_loop.pop(loop, None)
            await client.close()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Close the idle connections of synchronous calls."""
        self.client.close()  # type: ignore[no-untyped-call]

    async def aclose(self) -> None:
        """Close the idle connections of synchronous calls and of the running event loop."""
        if kept := self._by_loop.get(asyncio.get_running_loop()):
            await kept[1].aclose()
        self.close()

    @contextmanager
    def errors(self) -> Generator[None]:
        """Turns what the client library raises inside into errors of ours.

        Raises:
            ModelUnreachable: the connection was refused, timed out, had no address to go to, or would have left the
                household.
            ModelMissing: the server does not have the model.
            ModelOverloaded: the server, or our queue for a connection to it, is full.
            ModelTimeout: the server fell silent.
            ModelBadResponse: the answer was cut short, malformed, an error, or not Ollama's.
        """
        try:
            yield
        except (ConnectionError, httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
            raise ModelUnreachable(
                f"No model server answers at {self.url}. Check that Ollama runs there and that this machine reaches it."
            ) from error
        except httpx.PoolTimeout as error:
            raise ModelOverloaded(f"Too many requests wait for the model server at {self.url}. Try again.") from error
        except httpx.TimeoutException as error:
            raise ModelTimeout(
                f"The model server at {self.url} fell silent before it had answered. It may be loading {self.model!r}: "
                "try again, or raise the read timeout."
            ) from error
        except ollama.ResponseError as error:
            raise self._bad(f"broke off its answer: {_one_line(error.error)}") from error
        except httpx.RequestError as error:
            raise self._bad("broke off its answer") from error
        except (ValueError, TypeError, AttributeError, LookupError) as error:  # JSON of another shape
            raise self._bad("sent something that is not Ollama's answer", "Is it Ollama?") from error

    def missing(self) -> ModelMissing:
        """The error that says what to pull, and where."""
        return ModelMissing(
            f"The model server at {self.url} does not have {self.model!r}. Run `ollama pull {self.model}` there."
        )

    def _bad(self, what: str, advice: str = "See that server's log.") -> ModelBadResponse:
        return ModelBadResponse(f"The model server at {self.url} {what}. {advice}")

    def _check(self, response: httpx.Response) -> None:
        if not response.is_success:
            response.read()
            raise self._refusal(response)

    async def _acheck(self, response: httpx.Response) -> None:
        if not response.is_success:
            await response.aread()
            raise self._refusal(response)

    def _refusal(self, response: httpx.Response) -> ModelError:
        said = _error_line(response)
        if response.status_code == httpx.codes.NOT_FOUND and "model" in said:
            return self.missing()
        if response.status_code in _TOO_BUSY:
            busy = ModelOverloaded(f"The model server at {self.url} is busy. Try again.")
            if (seconds := response.headers.get("Retry-After", "")).isdecimal():
                busy.retry_after = int(seconds)
            return busy
        if response.is_redirect:
            return self._bad("sends us elsewhere, which is not followed", "Set the address of the server itself.")
        return self._bad(f"answered with status {response.status_code}{said and f': {said}'}")


def _without_key(request: httpx.Request) -> httpx.Request:
    """Undoes that the client library sends OLLAMA_API_KEY, which is meant for ollama.com, to every server."""
    request.headers.pop("Authorization", None)
    return request


@cache
def _tls() -> ssl.SSLContext:
    """One for all clients, because reading the certificates takes longer than answering from memory."""
    return httpx.create_ssl_context(trust_env=False)


def _error_line(response: httpx.Response) -> str:
    try:
        body = response.json()
    except ValueError:
        return ""
    return _one_line(body.get("error", "")) if isinstance(body, dict) else ""


def _one_line(text: object) -> str:
    return " ".join(str(text).split())[:200]
