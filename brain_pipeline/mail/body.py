"""From parts to what a person reads: which text, which attachments, and what could not be read."""

from __future__ import annotations

import re

from brain_pipeline.mail.attachments import is_binary
from brain_pipeline.mail.leaf import Content, read_leaf, read_plain_text
from brain_pipeline.mail.mime import Part, parse
from brain_pipeline.mail.text import one_line
from brain_pipeline.records import Attachment

_URL = re.compile(r"https?://\S+|\S{60,}")
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\S*\w\S*")
_SHORT = 120
# A plain alternative with less than this share of the words of the HTML, and a few, is a stub.
_STUB = 0.7
_FEW = 5
_ABOUT_HTML = re.compile(r"\bhtml\b|\b(?:e-?mail|mail) (?:client|reader|program|software)\b|\bbrowser\b", re.IGNORECASE)
# The share of a plain alternative's words that its HTML may lack and still say the same.
_LOST = 0.05
_MAX_ENCODED_DEPTH = 20
_MAX_HEADED_DEPTH = 100
_PROMOTED = ("text/plain", "text/html", "text/calendar", "application/ics")


def read_body(root: Part) -> Content:
    """What a person reads of the message ``root``; an attached text becomes the text when there is no other."""
    order: list[tuple[Part, int]] = []
    stack = [(root, 0, 0)]
    while stack:
        part, depth, decoded = stack.pop()
        order.append((part, depth))
        if part.is_message and not part.children and decoded < _MAX_ENCODED_DEPTH:
            part.children.append(parse(part.content()))
            decoded += 1
        stack.extend((child, depth + 1, decoded) for child in reversed(part.children))
    done: dict[int, Content] = {}
    for part, depth in reversed(order):
        done[id(part)] = _combine(part, depth, [done.pop(id(child)) for child in part.children])
    return _with_promoted_text(done[id(root)])


def _with_promoted_text(content: Content) -> Content:
    if content.text:
        return content
    for position, attachment in enumerate(content.attachments):
        if attachment.text and attachment.media_type in _PROMOTED:
            content.text = attachment.text
            content.attachments[position] = Attachment(attachment.name, attachment.media_type)
            break
    return content


def _combine(part: Part, depth: int, children: list[Content]) -> Content:
    if part.is_message:
        return _forwarded(part, children, headed=depth < _MAX_HEADED_DEPTH)
    if not part.is_multipart:
        return read_leaf(part)
    if part.media_type == "multipart/alternative":
        content = _best(children)
    elif part.media_type == "multipart/report":
        content = _report(part, children)
    else:
        content = _joined(children)
    if part.media_type == "multipart/encrypted":
        content.notes.append("the message is encrypted")
    if not content.text and not content.attachments:
        around = part.outside()
        if not is_binary(around):
            around_it = read_plain_text(around, part)
            content.text, content.is_html = around_it.text, around_it.is_html
            content.gather([around_it])
    return content


def _joined(children: list[Content]) -> Content:
    """Texts one below the other; the same text twice, as HTML and plain, is there once."""
    if len(children) == 1:
        return children[0]
    texts: dict[str, str] = {}
    for child in children:
        if child.text:
            texts.setdefault(" ".join(child.text.split()), child.text)
    content = Content("\n\n".join(texts.values()), is_html=any(child.is_html for child in children))
    content.returned = "\n\n".join(child.returned for child in children if child.returned)
    content.gather(children)
    return content


def _best(children: list[Content]) -> Content:
    """HTML where it says all that the plain text does, else plain; a plain text that is a mere stub joins the HTML."""
    html = _joined([child for child in children if child.text and child.is_html])
    plain = _joined([child for child in children if child.text and not child.is_html])
    if not plain.text or _says_all(html.text, plain.text):
        chosen = html
    elif len(plain.text.split()) + _FEW < _STUB * len(html.text.split()):
        chosen = html if _ABOUT_HTML.search(plain.text) else _joined([plain, html])
    else:
        chosen = plain
    content = Content(chosen.text, chosen.is_html, chosen.returned)
    content.gather(children)
    return content


def _says_all(html: str, plain: str) -> bool:
    """Whether ``html`` has the words of ``plain``; of a short one also its punctuation."""
    pattern = _TOKEN if len(plain) < _SHORT else _WORD
    wanted = pattern.findall(_URL.sub("", plain))
    return len(set(wanted).difference(pattern.findall(_URL.sub("", html)))) <= _LOST * len(wanted)


def _report(part: Part, children: list[Content]) -> Content:
    """A delivery report: the message that it returns is history."""
    returned = [child for child, its_part in zip(children, part.children, strict=True) if its_part.is_message]
    content = _joined([child for child in children if child not in returned])
    content.returned = "\n\n".join(child.text for child in returned if child.text)
    content.gather(returned)
    return content


def _forwarded(part: Part, children: list[Content], *, headed: bool) -> Content:
    """A message within a message, under a heading that says whose it is."""
    content = _joined(children)
    headers = part.children[0].headers if part.children and headed else None
    if headers:
        charset = part.children[0].charset
        fields = [f"{name.title()}: {one_line(headers.text(name, charset))}" for name in ("from", "date", "subject")]
        heading = [field_ for field_ in fields if not field_.endswith(": ")]
        content.text = "\n".join(["---------- Forwarded message ----------", *heading, "", content.text]).strip()
    if part.media_type == "message/partial":
        content.notes.append(f"only part 1 of {part.params.get('total', 'several')} of a split message")
    return content
