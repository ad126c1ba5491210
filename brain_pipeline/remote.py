"""A brain that another process on this machine serves: what the command line uses while the database is taken."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from brain_pipeline.errors import BrainError, BrainUnavailable, ConfigError, InvalidRequest
from brain_pipeline.family.people import Member
from brain_pipeline.family.when import Window
from brain_pipeline.models.guard import is_household
from brain_pipeline.records import Answer, Event, Found, Piece, RawMessage, Report, Skip, Source, Stats
from brain_pipeline.settings import Settings

MESSAGES_AT_ONCE = 50
BYTES_AT_ONCE = 8_000_000
LENIENCE = 5.0  # seconds that the service may take to say that a question's time is over


class RemoteBrain:
    """Asks the service at ``url``, with the same methods as ``Brain`` where the command line needs them.

    Every method raises ``BrainUnavailable`` when the service can't answer now, and ``InvalidRequest`` when it refuses.
    """

    def __init__(self, settings: Settings, url: str) -> None:
        if not is_household(httpx.URL(url).host):  # a file says where; mail and token go nowhere else
            raise ConfigError(
                f"The database {settings.db_path} is said to be served at {url}, which is outside the household. Stop "
                "that process, or delete brain.owner.json in that folder."
            )
        self.settings = settings
        token = settings.api_token
        headers = {"Authorization": f"Bearer {token.get_secret_value()}"} if token else {}
        self._client = httpx.Client(
            base_url=url, headers=headers, timeout=settings.request_timeout + LENIENCE, trust_env=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.close()

    def query(
        self,
        question: str,
        *,
        top_k: int | None = None,
        source: str = "all",
        now: datetime | None = None,
        member: str | None = None,
    ) -> Answer:
        """Asks a question; see ``Brain.aquery``. Its sources carry what the HTTP contract tells of them."""
        return _answer(self._send("GET", "/brain/query", params=self._asked(question, top_k, source, now, member)))

    async def astream(
        self,
        question: str,
        *,
        top_k: int | None = None,
        source: str = "all",
        now: datetime | None = None,
        member: str | None = None,
    ) -> AsyncGenerator[Found | Piece | Answer, None]:
        """``query`` as it goes; see ``Brain.astream``."""
        ours, asked = self._client, self._asked(question, top_k, source, now, member)
        with self._unreachable():
            async with (
                httpx.AsyncClient(
                    base_url=ours.base_url, headers=ours.headers, timeout=ours.timeout, trust_env=False
                ) as client,
                client.stream("GET", "/brain/query/stream", params=asked) as response,
            ):
                if not response.is_success:
                    raise self._refusal(response.status_code, json.loads(await response.aread()))
                name = rest = ""
                async for text in response.aiter_text():
                    *lines, rest = (rest + text).split("\n")
                    for line in lines:
                        field, _, value = line.partition(": ")
                        if field == "event":
                            name = value
                        elif field == "data":
                            yield self._event(name, json.loads(value))

    def _event(self, name: str, data: dict[str, Any]) -> Found | Piece | Answer:
        match name:
            case "sources":
                return Found(tuple(map(_source, data["sources"])), data["confidence"])
            case "text":
                return Piece(data["text"])
            case "answer":
                return _answer(data)
        raise self._refusal(data["status"], data)

    def ranked(self, question: str) -> tuple[Source, ...]:
        """The emails that a question would be answered from, with their passages; no answer is waited for."""
        asked = self._asked(question, None, "all", None)
        found: tuple[Source, ...] = ()
        with self._unreachable(), self._client.stream("GET", "/brain/query/stream", params=asked) as response:
            if not response.is_success:
                raise self._refusal(response.status_code, json.loads(response.read()))
            for name, data in _events(response.iter_lines()):
                event = self._event(name, data)
                found = event.sources if isinstance(event, Found) else ()
                break
        return tuple(map(self._with_passage, found))

    def _with_passage(self, source: Source) -> Source:
        body = self._send("GET", f"/brain/source/{quote(source.id)}")
        return replace(source, sender=body["sender"], passage=body["passage"])

    def whats_on(self, text: str, *, now: datetime | None = None) -> tuple[Window | None, list[Event]]:
        """The days that a text names and their events; see ``Brain.whats_on``."""
        where = {"zone": self.settings.timezone} if self.settings.timezone else {}
        body = self._send("GET", "/brain/events", params={"when": text} | where | self._moment(now))
        days = body["window"]
        window = Window(date.fromisoformat(days[0]), date.fromisoformat(days[1])) if days else None
        return window, list(map(_event, body["events"]))

    def _asked(
        self, question: str, top_k: int | None, source: str, now: datetime | None, member: str | None = None
    ) -> dict[str, Any]:
        asked = {"q": question, "source": source} | self._moment(now) | ({"member": member} if member else {})
        return asked | ({"top_k": top_k} if top_k is not None else {})

    def _moment(self, now: datetime | None) -> dict[str, Any]:
        """When it is asked: as the caller says, else as our settings do, else by the service's clock."""
        asked = now or self.settings.now
        return {"now": self.settings.local(asked).isoformat()} if asked else {}

    def stats(self) -> Stats:
        """What the brain holds."""
        body = self._send("GET", "/brain/stats")
        last = body["last_ingest"] and datetime.fromisoformat(body["last_ingest"])
        return Stats(body["total_documents"], body["total_chunks"], body["collection"], body["db_path"], last)

    def ingest(self, messages: Iterable[RawMessage | Skip], *, on_progress: Callable[[Report], None]) -> Report:
        """Hands messages over in batches; the service sees them, and answers from them, batch by batch."""
        report = Report()
        patience = httpx.Timeout(self._client.timeout.connect, read=None)  # a slow embedder takes what it takes
        for batch in _batches(messages, report):
            files = [("files", (f"{n}.eml", raw.content, "message/rfc822")) for n, raw in enumerate(batch)]
            done = self._send("POST", "/brain/ingest", files=files, timeout=patience)
            report.new += done["new"]
            report.updated += done["updated"]
            report.unchanged += done["unchanged"]
            names = {f"{n}.eml": raw.origin for n, raw in enumerate(batch)}
            report.skipped += [(names.get(one["origin"], one["origin"]), one["reason"]) for one in done["skipped"]]
            on_progress(report)
        return report

    def members(self) -> list[Member]:
        """The family's members; see ``Brain.members``."""
        return list(map(_member, self._send("GET", "/brain/members")["members"]))

    def learn_assignment(self, pattern: str, member: str) -> None:
        """Teaches whose mail it is; see ``Brain.learn_assignment``."""
        self._send("POST", "/brain/members", json={"pattern": pattern, "member": member})

    def forget_assignment(self, pattern: str, member: str | None = None) -> int:
        """Undoes what was learned; see ``Brain.forget_assignment``."""
        wanted = {"pattern": pattern} | ({"member": member} if member else {})
        forgotten: int = self._send("DELETE", "/brain/members", params=wanted)["rules"]
        return forgotten

    def forget(self, email: str) -> int:
        """Deletes an email; see ``Brain.forget``."""
        deleted: int = self._send("DELETE", "/brain/emails", params={"id": email})["chunks"]
        return deleted

    def _send(self, method: str, path: str, **request: Any) -> Any:
        with self._unreachable():
            response = self._client.request(method, path, **request)
            body = response.json()
        if response.is_success:
            return body
        raise self._refusal(response.status_code, body)

    @contextmanager
    def _unreachable(self) -> Iterator[None]:
        try:
            yield
        except (httpx.HTTPError, ValueError) as error:
            raise BrainUnavailable(
                f"The brain at {self._client.base_url} holds the database and does not answer. Stop that process, or "
                "try again."
            ) from error

    def _refusal(self, status: int, body: dict[str, Any]) -> BrainError:
        kind: type[BrainError] = BrainUnavailable if httpx.codes.is_server_error(status) else InvalidRequest
        return kind(f"The brain at {self._client.base_url} says: {body.get('detail', status)}")


def _answer(body: dict[str, Any]) -> Answer:
    return Answer(body["answer"], tuple(map(_source, body["sources"])), body["confidence"], body["query_time_ms"])


def _member(body: dict[str, Any]) -> Member:
    rules = tuple((rule["pattern"], rule["times"], rule["of"]) for rule in body["rules"])
    return Member(body["name"], tuple(body["nicknames"]), rules, body["emails"])


def _event(body: dict[str, Any]) -> Event:
    start, end = datetime.fromisoformat(body["start"]), datetime.fromisoformat(body["end"])
    return Event(body["id"], body["title"], start, end, body["all_day"], body["place"], body["notes"])


def _source(body: dict[str, Any]) -> Source:
    return Source(
        id=body.get("id", ""),
        email="",
        subject=body["subject"],
        day=body["date"] and date.fromisoformat(body["date"]),
        sender="",
        source_type=body["source_type"],
        score=body["score"],
        passage="",
    )


def _events(lines: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def _batches(messages: Iterable[RawMessage | Skip], report: Report) -> Iterator[list[RawMessage]]:
    batch: list[RawMessage] = []
    size = 0
    for message in messages:
        if isinstance(message, Skip):
            report.skipped.append((message.origin, message.reason))
            continue
        if batch and (len(batch) == MESSAGES_AT_ONCE or size + len(message.content) > BYTES_AT_ONCE):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += len(message.content)
    if batch:
        yield batch
