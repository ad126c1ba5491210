"""From the model's words to the answer's text: one call, and what becomes of its reply."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import datetime

from llama_index.core.llms.llm import LLM

from brain_pipeline.ask.prompt import NO_ANSWER, build_messages
from brain_pipeline.errors import ModelBadResponse
from brain_pipeline.records import NOT_FOUND, Confidence, Source

HIGH, LOW = 0.7, 0.3  # the contract's thresholds of a source's score

_ATTRIBUTION_LINE = re.compile(r"^\W*(found in|sources?)\s*:.*$", re.IGNORECASE | re.MULTILINE)
_REFUSAL = re.compile(
    rf"{NO_ANSWER}|{re.escape(NOT_FOUND)}"
    r"|^(sorry,? |unfortunately,? |i'?m sorry,? (but )?)?(the|these|those|your|none of the) (provided |given )?"
    r"(sources?|emails?)( provided| given)? (do|does|did)(n'?t| not) (contain|mention|say|include|provide|specify)",
    re.IGNORECASE,
)


def confidence_of(score: float) -> Confidence:
    """How sure the best source's score makes the answer."""
    if score > HIGH:
        return "high"
    return "medium" if score >= LOW else "low"


async def ask_model(llm: LLM, question: str, sources: Sequence[Source], *, now: datetime) -> str | None:
    """The model's answer from the sources, or None when it says they do not hold one. One call.

    Raises:
        ModelError: the model failed; ``ModelBadResponse`` when it said nothing.
    """
    messages = build_messages(question, sources, now=now, boundary=secrets.token_hex(8))
    reply = await llm.achat(messages)
    return read_reply(reply.message.content or "")


def read_reply(reply: str) -> str | None:
    """The answer in a model's reply, or None when it declines.

    Lines that claim a provenance are dropped: only metadata says where an answer was found.

    Raises:
        ModelBadResponse: nothing is left of the reply.
    """
    text = _ATTRIBUTION_LINE.sub("", reply.replace("\r\n", "\n")).strip()
    if not text:
        raise ModelBadResponse("The language model gave an empty answer; ask again, or try another model.")
    return None if _REFUSAL.search(text) else text
