"""Takes the reasoning out of a reasoning model's answer."""

from __future__ import annotations

import re

from llama_index.core.base.llms.types import ChatMessage, ChatResponse

from brain_pipeline.errors import ModelBadResponse

_BLOCK = re.compile(r"<think>.*?</think>\s*", re.DOTALL)
_BEGUN_TAG = re.compile(r"</?t?h?i?n?k?\Z")


def strip_thinking(text: str, *, finished: bool = True) -> str:
    """``text`` without its ``<think>`` blocks and the white space before what remains.

    A block that the model never ended is the whole answer, so nothing remains. Some chat templates write the opening
    tag themselves; then everything before the closing tag is reasoning. Of an answer that is not ``finished``, what may
    yet turn out to be reasoning is left out too.
    """
    said = _BLOCK.sub("", text).rpartition("</think>")[2].lstrip()
    before, tag, _ = said.partition("<think>")
    if tag and (not before or not finished):
        return before
    return said if finished else _BEGUN_TAG.sub("", said)


class SpokenAnswer:
    """An answer as it comes in, without the reasoning."""

    def __init__(self) -> None:
        self.text = ""
        self.finished = False

    def so_far(self, response: ChatResponse, *, finished: bool) -> ChatResponse:
        """``response`` with the text that may be shown; ``delta`` is what is new in it."""
        text = strip_thinking(response.message.content or "", finished=finished)
        delta, self.text, self.finished = text.removeprefix(self.text), text, finished
        return ChatResponse(
            message=ChatMessage(role=response.message.role, content=text), delta=delta, raw=response.raw
        )

    def whole(self, response: ChatResponse) -> ChatResponse:
        """``response`` with the text that may be shown, when nothing more comes.

        Raises:
            ModelBadResponse: nothing remains.
        """
        spoken = self.so_far(response, finished=True)
        self.check()
        return spoken

    def check(self) -> None:
        """Make sure that it is an answer, when nothing more comes.

        Raises:
            ModelBadResponse: it is empty, or it was not finished.
        """
        if not self.finished:
            raise ModelBadResponse("The model stopped in the middle of its answer. Try again, and see its log.")
        if not self.text.strip():
            raise ModelBadResponse("The model gave an empty answer. Try again, or use another model.")
