"""Answers as they are written, as server-sent events, and the passages they are made from."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Header, HTTPException, Query, Response
from fastapi.responses import JSONResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent

from api.routes import BrainRoute, Moment, OfMember, Question, TheBrain, TopK, Wanted, status_of
from api.schemas import AnswerBody, DetailBody, FoundEvent, PassageBody, PieceEvent, UnavailableBody
from brain_pipeline.errors import BrainError, BrainUnavailable
from brain_pipeline.records import Answer, Found, Piece

log = logging.getLogger(__name__)

SENDING = 0.001  # seconds in which the sources leave, before making the model's request occupies the event loop
LAST = "last"  # the id of an event after which nothing comes


def once(last_event_id: Annotated[str | None, Header(include_in_schema=False)] = None) -> None:
    """Tells an ``EventSource`` that connects again after the last event to stop; the model would start anew."""
    if last_event_id == LAST:
        raise HTTPException(204)


# As a model it would be documented as a stream, which it is not.
_REFUSED = {
    "description": "What to send instead",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/DetailBody"}}},
}

router = APIRouter(route_class=BrainRoute, tags=["brain"])


@router.get(
    "/brain/query/stream",
    response_class=EventSourceResponse,
    summary="Ask the household's mail and read the answer as it is written",
    responses={422: _REFUSED},
    dependencies=[Depends(once)],
)
async def stream(
    brain: TheBrain,
    q: Question,
    *,
    now: Moment,
    top_k: TopK = None,
    source: Wanted = "all",
    member: OfMember = None,
) -> AsyncIterator[ServerSentEvent]:
    """First a `sources` event, then `text` events, at last one `answer` event equal to the body of `/brain/query`.

    A failure is an `error` event in place of what was still to come. Comments keep the connection alive meanwhile.
    """
    started = time.perf_counter()
    try:
        async with aclosing(brain.astream(q, top_k=top_k, source=source, now=now, member=member)) as events:
            async for event in events:
                yield _sent(event)
                if isinstance(event, Found):
                    await asyncio.sleep(SENDING)
    except BrainError as error:
        log.warning("%s: %s", type(error).__name__, error, exc_info=log.isEnabledFor(logging.DEBUG))
        yield _failed(error, round((time.perf_counter() - started) * 1000))


def _sent(event: Found | Piece | Answer) -> ServerSentEvent:
    match event:
        case Found():
            return ServerSentEvent(event="sources", data=FoundEvent.of(event))
        case Piece():
            return ServerSentEvent(event="text", data=PieceEvent(text=event.text))
        case Answer():
            return ServerSentEvent(event="answer", id=LAST, data=AnswerBody.of(event))


def _failed(error: BrainError, took: int) -> ServerSentEvent:
    status = status_of(error)
    if isinstance(error, BrainUnavailable):
        body = UnavailableBody.because(error, took).model_dump(mode="json")
        data = {"status": status, "retry_after": error.retry_after, **body}
    else:
        data = {"status": status, "detail": str(error)}
    return ServerSentEvent(event="error", id=LAST, data=data)


@router.get(
    "/brain/source/{id:path}",
    response_model=PassageBody,
    summary="One passage of the mail",
    responses={404: {"model": DetailBody}, 503: {"model": UnavailableBody}},
)
def source(
    brain: TheBrain,
    id: str,  # noqa: A002  (the name in the path)
    q: Annotated[str, Query(description="a question whose words are to be found in the passage")] = "",
) -> Response | PassageBody:
    """The text of a stored row and what is known of its email; needs no model server."""
    passage = brain.passage(id)
    if passage is None:
        return JSONResponse({"detail": "No passage has this id; the mail may have been brought in anew."}, 404)
    return PassageBody.of(passage, q)
