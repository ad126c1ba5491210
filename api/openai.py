"""The brain as a model of the OpenAI kind, for programs that know how to talk to one: Open WebUI, Home Assistant.

Not part of ``api.router``: a host application may have a ``/v1`` of its own.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.sse import format_sse_event
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive
from typing_extensions import override

from api.routes import CLIENT_CLOSED_REQUEST, BrainRoute, TheBrain, status_of, unless_hung_up
from brain_pipeline.ask.plain import without_markup
from brain_pipeline.errors import BrainError, BrainUnavailable, InvalidRequest
from brain_pipeline.records import UNAVAILABLE, Answer, Found, Piece

log = logging.getLogger(__name__)

MODEL = "family-brain"
LARGEST = 1_000_000  # bytes of a request, which holds a whole conversation


class ChatMessage(BaseModel):
    """One message of a conversation; parts of other types than ``text`` are ignored."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The message's words."""
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")
        return self.content or ""


class ChatRequest(BaseModel):
    """A conversation, whose last user message is the question. Other fields are ignored, and so is the model's name."""

    messages: list[ChatMessage]
    stream: bool | None = False

    @property
    def question(self) -> str:
        """The last user message.

        Raises:
            InvalidRequest: there is none.
        """
        for message in reversed(self.messages):
            if message.role == "user":
                return message.text
        raise InvalidRequest("The conversation asks nothing. Send a message whose role is user.")


class AnswerMessage(BaseModel):
    """The answer, with its sources as lines below it."""

    role: Literal["assistant"] = "assistant"
    content: str


class Choice(BaseModel):
    """The only answer there is."""

    index: int = 0
    message: AnswerMessage
    finish_reason: Literal["stop"] = "stop"


class Completion(BaseModel):
    """A finished answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int = Field(description="seconds since 1970")
    model: str = MODEL
    choices: list[Choice]


class Model(BaseModel):
    """The brain, as one model among others."""

    id: str = MODEL
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "household"


class ModelList(BaseModel):
    """All models there are: one."""

    object: Literal["list"] = "list"
    data: list[Model]


class Failure(BaseModel):
    """What went wrong, and what to send instead."""

    message: str
    type: Literal["invalid_request_error", "server_error"]
    param: str | None = None
    code: str | None = None


class FailureBody(BaseModel):
    """An error of the OpenAI kind."""

    error: Failure

    @classmethod
    def of(cls, message: str, status: int) -> FailureBody:
        """The body of a response with that status."""
        kind: Literal["invalid_request_error", "server_error"] = (
            "server_error" if status >= 500 else "invalid_request_error"  # noqa: PLR2004  (HTTP's server errors)
        )
        return cls(error=Failure(message=message, type=kind))


class OpenAIRoute(BrainRoute):
    """A route that answers errors as OpenAI's clients expect them, with our statuses."""

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(Request(request.scope, _bounded(request.receive)))
            except HTTPException as error:
                return self.refused(error.detail, error.status_code)

        return answer

    @override
    def refused(self, detail: str, status: int) -> Response:
        return JSONResponse(FailureBody.of(detail, status).model_dump(), status)

    @override
    def unavailable(self, error: BrainUnavailable, took: int) -> Response:
        response = self.refused(UNAVAILABLE, status_of(error))
        response.headers["Retry-After"] = str(error.retry_after)
        return response


def _bounded(receive: Receive) -> Receive:
    received = 0

    async def receive_bounded() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > LARGEST:
            raise HTTPException(413, f"A conversation may have {LARGEST:,} bytes; send less of what was said before.")
        return message

    return receive_bounded


router = APIRouter(route_class=OpenAIRoute, tags=["openai"])


@router.get("/v1/models", summary="The brain as a model")
def models() -> ModelList:
    """The one model there is."""
    return ModelList(data=[Model()])


@router.post(
    "/v1/chat/completions",
    response_model=Completion,
    summary="Ask the household's mail as one asks a chat model",
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
        **{status: {"model": FailureBody} for status in (400, 408, 413, 422, 503)},
    },
)
async def complete(request: Request, brain: TheBrain, asked: ChatRequest) -> Response | Completion:
    """Answers the last user message, with a "Found in:" line for each source; as it is written, where that is asked."""
    if asked.stream:
        events = brain.astream(asked.question)
        await anext(events)  # what is found; what fails until then has a status of its own
        return StreamingResponse(_chunks(events), media_type="text/event-stream")
    answer = await unless_hung_up(request, brain.aquery(asked.question))
    if answer is None:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    choice = Choice(message=AnswerMessage(content=_with_sources(answer)))
    return Completion(id=_new_id(), created=int(time.time()), choices=[choice])


def _new_id() -> str:
    return f"chatcmpl-{secrets.token_hex(12)}"


def _with_sources(answer: Answer) -> str:
    """The answer above its "Found in:" lines, none of it markup: clients render Markdown, and would load its images."""
    return without_markup("\n\n".join([answer.text, "\n".join(each.attribution for each in answer.sources)]).strip())


async def _chunks(events: AsyncGenerator[Found | Piece | Answer, None]) -> AsyncIterator[bytes]:
    head = {"id": _new_id(), "object": "chat.completion.chunk", "created": int(time.time()), "model": MODEL}

    def chunk(delta: dict[str, str], finished: str | None = None) -> bytes:
        return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finished}]})

    yield chunk({"role": "assistant", "content": ""})
    shown = ""
    said = ""
    try:
        async with aclosing(events):
            async for event in events:
                match event:
                    case Piece():
                        said += event.text
                        whole = without_markup(said)
                    case Answer():
                        whole = _continued(shown, _with_sources(event))
                    case Found():
                        continue
                yield chunk({"content": whole.removeprefix(shown)})
                shown = whole
    except BrainError as error:
        log.warning("%s: %s", type(error).__name__, error, exc_info=log.isEnabledFor(logging.DEBUG))
        status = status_of(error)
        message = UNAVAILABLE if isinstance(error, BrainUnavailable) else str(error)
        yield _event(FailureBody.of(message, status).model_dump())
        return
    yield chunk({}, "stop")
    yield format_sse_event(data_str="[DONE]")


def _continued(shown: str, whole: str) -> str:
    """``whole`` as it can be said after ``shown``, which can't be unsaid; the model may have changed its mind."""
    return whole if whole.startswith(shown) else f"{shown}\n\nCorrection: {whole}"


def _event(data: dict[str, Any]) -> bytes:
    return format_sse_event(data_str=json.dumps(data))
