"""The brain's endpoints, as a router that a host application can include next to its own routes."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo

import anyio
from fastapi import APIRouter, Depends, File, Query, Request, Response, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.datastructures import State

from api.schemas import (
    AnswerBody,
    DetailBody,
    EventsBody,
    ForgottenBody,
    IngestBody,
    StatsBody,
    UnavailableBody,
)
from brain_pipeline.ask.pipeline import LONGEST_QUESTION
from brain_pipeline.brain import Brain, open_brain
from brain_pipeline.errors import BrainError, BrainUnavailable, ConfigError, InvalidRequest, MailError
from brain_pipeline.mail.mailboxes import iter_messages
from brain_pipeline.settings import moment

log = logging.getLogger(__name__)

# The status of every error, by its nearest ancestor here.
STATUS: dict[type[BrainError], int] = {
    InvalidRequest: 422,
    MailError: 422,
    BrainUnavailable: 503,
    ConfigError: 500,
    BrainError: 500,
}
CLIENT_CLOSED_REQUEST = 499  # nginx's number; nobody is left to read it

Result = TypeVar("Result")

_OPENING = threading.Lock()  # the first requests come together


def status_of(error: BrainError) -> int:
    """The HTTP status of an error."""
    return next(STATUS[ancestor] for ancestor in type(error).__mro__ if ancestor in STATUS)


class BrainRoute(APIRoute):
    """A route that turns the pipeline's errors into responses itself, so that it needs no handler of its host's."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The endpoint's handler, with errors answered."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            started = time.perf_counter()
            try:
                return await handle(request)
            except RequestValidationError as error:
                return self.refused(_sentence(error), 422)
            except BrainUnavailable as error:
                log.warning("%s: %s", type(error).__name__, error, exc_info=log.isEnabledFor(logging.DEBUG))
                return self.unavailable(error, round((time.perf_counter() - started) * 1000))
            except BrainError as error:
                return self.refused(str(error), status_of(error))

        return answer

    def refused(self, detail: str, status: int) -> Response:
        """The response to a request that can't be used."""
        return JSONResponse({"detail": detail}, status)

    def unavailable(self, error: BrainUnavailable, took: int) -> Response:
        """The response when a model or the database can't be used now, ``took`` milliseconds after the request."""
        body = UnavailableBody.because(error, took)
        return JSONResponse(body.model_dump(mode="json"), status_of(error), {"Retry-After": str(error.retry_after)})


def _sentence(error: RequestValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, e['loc'][1:])) or 'body'}: {e['msg']}" for e in error.errors()) + "."


async def get_brain(request: Request) -> Brain:
    """The brain of the router, else ``app.state.family_brain``, opened from the environment's settings if need be."""
    for state in (request.state, request.app.state):
        if (known := getattr(state, "family_brain", None)) is not None:
            brain: Brain = known
            return brain
    return await asyncio.to_thread(_opened, request.app.state)


def _opened(state: State) -> Brain:
    with _OPENING:
        if not hasattr(state, "family_brain"):
            state.family_brain = open_brain()
        brain: Brain = state.family_brain
        return brain


@asynccontextmanager
async def _lifespan(app: Any) -> AsyncIterator[None]:
    yield
    if hasattr(app.state, "family_brain"):
        await asyncio.to_thread(app.state.family_brain.close)


router = APIRouter(route_class=BrainRoute, tags=["brain"], lifespan=_lifespan)
TheBrain = Annotated[Brain, Depends(get_brain)]

# The document says what is accepted; what is said to a caller who sends something else is the pipeline's word.
Question = Annotated[
    str,
    Query(
        description="the question, in plain words",
        json_schema_extra={"minLength": 1, "maxLength": LONGEST_QUESTION, "pattern": r"\S"},
    ),
]
TopK = Annotated[
    int | None, Query(description="sources wanted at most; the server caps it", json_schema_extra={"minimum": 1})
]
Wanted = Annotated[str, Query(description="`email`, `newsletter`, `calendar` or `all`; anything else means all")]


async def moment_of(
    now: Annotated[
        str | None,
        Query(
            description="when it is asked, in the household's zone when it names none; default now",
            json_schema_extra={"format": "date-time"},
        ),
    ] = None,
) -> datetime | None:
    """The moment that a request asks at."""
    try:
        return None if now is None else moment(now)
    except ValueError as error:
        raise InvalidRequest(f"now: {error}.") from error


OfMember = Annotated[
    str | None,
    Query(description="of the family, whose mail alone may answer; a name that nobody has means everybody's"),
]
Moment = Annotated[datetime | None, Depends(moment_of)]


@router.get(
    "/brain/query",
    response_model=AnswerBody,
    summary="Ask the household's mail",
    responses={422: {"model": DetailBody}, 503: {"model": UnavailableBody}},
)
async def query(
    request: Request,
    brain: TheBrain,
    q: Question,
    *,
    now: Moment,
    top_k: TopK = None,
    source: Wanted = "all",
    member: OfMember = None,
) -> Response:
    """Answers from the emails, the newsletters and the family's calendar, with where it was found."""
    answer = await unless_hung_up(request, brain.aquery(q, top_k=top_k, source=source, now=now, member=member))
    if answer is None:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    return Response(AnswerBody.of(answer).model_dump_json(), media_type="application/json")


@router.get(
    "/brain/events",
    response_model=EventsBody,
    summary="What is on",
    responses={422: {"model": DetailBody}, 503: {"model": UnavailableBody}},
)
def events(
    brain: TheBrain,
    now: Moment,
    when: Annotated[str, Query(description="words for a time, as `this weekend`", max_length=LONGEST_QUESTION)],
    zone: Annotated[str | None, Query(include_in_schema=False)] = None,  # for our own command line
) -> EventsBody:
    """The days that a phrase means, and what the calendars have on them; needs no model server."""
    try:
        where = ZoneInfo(zone) if zone else None
    except (LookupError, ValueError, OSError) as error:
        raise InvalidRequest(f"No time zone is called {zone!r}; names look like Europe/Berlin.") from error
    window, found = brain.whats_on(when, now=now, zone=where)
    return EventsBody.of(window, found)


@router.get(
    "/brain/stats",
    response_model=StatsBody,
    summary="What the brain holds",
    responses={503: {"model": UnavailableBody}},
)
def stats(brain: TheBrain) -> StatsBody:
    """Counts emails and chunks; needs no model server."""
    return StatsBody.of(brain.stats())


@router.post(
    "/brain/ingest",
    response_model=IngestBody,
    summary="Bring mail in",
    responses={**{status: {"model": DetailBody} for status in (400, 408, 413, 422)}, 503: {"model": UnavailableBody}},
)
def ingest(
    brain: TheBrain, files: Annotated[list[UploadFile], File(description=".eml, .mbox or .zip", min_length=1)]
) -> IngestBody:
    """Reads uploaded mail; what the brain holds already is left alone, and questions see the rest at once."""
    with TemporaryDirectory(prefix="family-brain-") as folder:
        for number, file in enumerate(files):
            _save(file, Path(folder) / f"{number:06}")
        report = brain.ingest(iter_messages([Path(folder)]))
        report.skipped = [(_uploaded_name(origin, folder), reason) for origin, reason in report.skipped]
    return IngestBody.of(report)


@router.delete(
    "/brain/emails",
    response_model=ForgottenBody,
    summary="Delete an email",
    responses={422: {"model": DetailBody}, 503: {"model": UnavailableBody}},
)
def forget(
    brain: TheBrain,
    id: Annotated[str, Query(description="its Message-ID, as `<...>`", min_length=1)],  # noqa: A002
) -> ForgottenBody:
    """Deletes all that is stored of an email; nothing when there is no such email."""
    return ForgottenBody(chunks=brain.forget(id))


def _save(file: UploadFile, folder: Path) -> None:
    """A copy on disk, where mailboxes of any size can be read; the name is kept only as a label and for its suffix."""
    folder.mkdir()
    name = re.sub(r"[^\w.@ +-]", "_", file.filename or "")[-120:].strip(". ")
    with (folder / (name or "upload.eml")).open("wb") as copy:
        shutil.copyfileobj(file.file, copy)


def _uploaded_name(origin: str, folder: str) -> str:
    return re.sub(rf"^{re.escape(folder)}/\d+/", "", origin)


async def unless_hung_up(request: Request, work: Coroutine[Any, Any, Result]) -> Result | None:
    """The result of ``work``, or None once the client has hung up; ``work`` is cancelled then."""
    with anyio.CancelScope() as scope:
        watching = asyncio.ensure_future(_cancel_on_hang_up(request, scope))
        try:
            return await work
        finally:
            watching.cancel()
    return None


async def _cancel_on_hang_up(request: Request, scope: anyio.CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
