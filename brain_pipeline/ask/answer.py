"""From the model's words to the answer's text: one call, and what becomes of its reply as it comes in."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime

import regex  # unlike re, it tells whether what came so far may be the beginning of a match
from llama_index.core.llms.llm import LLM

from brain_pipeline.ask.plain import PlainText
from brain_pipeline.ask.prompt import NO_ANSWER, build_messages
from brain_pipeline.errors import ModelBadResponse
from brain_pipeline.records import NOT_FOUND, Confidence, Source

HIGH, LOW = 0.7, 0.3  # the contract's thresholds of a source's score
WORTH = 0.6  # of the best source's score, below which another source is noise
LONGEST_REPLY = 20_000  # characters

_WITHOUT_SOURCES = PlainText(())
_REFUSAL = regex.compile(
    rf"{NO_ANSWER}|{regex.escape(NOT_FOUND)}"
    r"|^(sorry,? |unfortunately,? |i'?m sorry,? (but )?)?(the|these|those|your|none of the) (provided |given )?"
    r"(sources?|emails?)( provided| given)? (do|does|did)(n'?t| not) (contain|mention|say|include|provide|specify)",
    regex.IGNORECASE,
)


def confidence_of(score: float) -> Confidence:
    """How sure the best source's score makes the answer."""
    if score > HIGH:
        return "high"
    return "medium" if score >= LOW else "low"


async def ask_model(
    llm: LLM, question: str, sources: Sequence[Source], *, now: datetime, watched: bool = True
) -> AsyncGenerator[str | None, None]:
    """The answer so far, again and again, as the model writes it, or, not ``watched``, the whole of it. One call.

    The last item is the whole answer, or None when the model says that the sources do not hold one. Closing the
    generator ends the call.

    Raises:
        ModelError: the model failed; ``ModelBadResponse`` when it said nothing, or would not stop.
    """
    boundary = secrets.token_hex(8)
    messages = build_messages(question, sources, now=now, boundary=boundary)
    plain = PlainText(sources, boundary)
    if not watched:
        yield read_reply(_of_length((await llm.achat(messages)).message.content or ""), plain)
        return
    reply = ""
    replies = await llm.astream_chat(messages)
    async with aclosing(replies):
        async for response in replies:
            reply = _of_length(response.message.content or "")
            yield settled(reply, plain)
    yield read_reply(reply, plain)


def _of_length(reply: str) -> str:
    if len(reply) > LONGEST_REPLY:
        raise ModelBadResponse("The language model does not come to an end; ask again, or try another model.")
    return reply


def read_reply(reply: str, plain: PlainText = _WITHOUT_SOURCES) -> str | None:
    """The answer in a model's reply as plain text, or None when it declines.

    Raises:
        ModelBadResponse: nothing is left of the reply.
    """
    text = plain.whole(reply)
    if not text:
        raise ModelBadResponse("The language model gave an empty answer; ask again, or try another model.")
    return None if _REFUSAL.search(text) else text


def settled(reply: str, plain: PlainText = _WITHOUT_SOURCES) -> str:
    """The beginning of an unfinished reply that can be shown already.

    What may yet turn out to be a refusal, a link or a claim of provenance is held back, so that ``read_reply`` of the
    finished reply begins with it, unless the model takes back a whole answer in a later sentence.
    """
    return plain.begun(reply, _REFUSAL)
