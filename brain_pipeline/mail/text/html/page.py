"""The page that an HTML mail is written onto: lines, lists, quotes and tables as text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice

from brain_pipeline.mail.text.html.links import is_shown, readable_url

Attributes = dict[str, str | None]

_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_PARAGRAPHS = frozenset({"p", "ul", "ol", "dl", "pre", "blockquote", "table", "hr", "figure", "fieldset", *_HEADINGS})
_BLOCKS = _PARAGRAPHS | {
    "address", "article", "aside", "body", "caption", "center", "dd", "details", "dialog", "dir", "div", "dt",
    "figcaption", "footer", "form", "header", "html", "legend", "li", "main", "menu", "nav", "option", "section",
    "summary", "tbody", "td", "tfoot", "th", "thead", "tr",
}  # fmt: skip
_SPACE = re.compile("[ \t\r\n\f\u00a0]+")
# What an indented line keeps its spaces as until the end, when cleaning makes them spaces again.
_KEPT_SPACE = "\u00a0"
_NOT_TEXT = re.compile("\0[^\0]*\0|\1")
_LINK_MARK = re.compile("\0([^\0]*)\0")
_QUOTE_CLASS = re.compile(r"quote|cite|yahoo_quoted", re.IGNORECASE)
_FILE_NAME = re.compile(r"\S+\.(?:gif|jpe?g|png|bmp|svg|webp)\s*$|https?://", re.IGNORECASE)
_TINY_IMAGE = frozenset({"0", "1", "0px", "1px"})
_MAX_INDENT = 8
_MAX_CELL = 120
_MAX_ALT = 300
_MAX_LINKS = 60


@dataclass(slots=True)
class _Table:
    """A table while it is read: rows of cells, each a list of blocks."""

    rows: list[list[list[str]]] = field(default_factory=list)
    has_header: bool = False


@dataclass(slots=True)
class Element:
    """An element that is open: what must be undone when it ends."""

    tag: str
    href: str = ""
    written: int = 0
    label_start: int = 0
    quotes: bool = False


class Page:
    """The text so far. ``blocks`` belongs to the innermost table cell that is open."""

    def __init__(self, *, list_links: bool) -> None:
        self.blocks: list[str] = []
        self.links: dict[str, str] = {}
        self._list_links = list_links
        self._outer: list[list[str]] = []
        self._line: list[str] = []
        self._tables: list[_Table] = []
        self._lists: list[int | None] = []
        self._bullet = ""
        self._heading = ""
        self._quote_depth = 0
        self._written = 0

    def text(self, content: str, *, preformatted: bool) -> None:
        """Add a run of text to the line."""
        self._written += len(content.strip())
        if preformatted:
            content = content.expandtabs().replace(" ", _KEPT_SPACE).replace("\n", "\1")
        else:
            content = _SPACE.sub(" ", content)
        self._line.append(content)

    def image(self, attributes: Attributes, css: dict[str, str]) -> None:
        """What an image says in words, unless it is a tracking pixel."""
        alt = " ".join((attributes.get("alt") or "").split())
        sizes = {attributes.get("width"), attributes.get("height"), css.get("width"), css.get("height")}
        if alt and len(alt) <= _MAX_ALT and not sizes & _TINY_IMAGE and not _FILE_NAME.search(alt):
            self.text(f" {alt} ", preformatted=False)

    def enter(self, tag: str, attributes: Attributes) -> Element:
        """Begin an element."""
        element = Element(tag, written=self._written)
        if tag == "br":
            self._line.append("\1")
        elif tag == "a":
            element.href = attributes.get("href") or ""
            element.label_start = len(self._line)
        elif tag in _BLOCKS:
            self._enter_block(element, attributes)
        return element

    def _enter_block(self, element: Element, attributes: Attributes) -> None:
        self.flush()
        tag = element.tag
        if tag in _PARAGRAPHS and not self._bullet:
            self._gap()
        if tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
        elif tag == "blockquote":
            element.quotes = self._is_reply(attributes)
            self._quote_depth += element.quotes
        elif tag in {"ul", "menu", "dir"}:
            self._lists.append(None)
        elif tag == "ol":
            start = attributes.get("start") or "1"
            self._lists.append(int(start) if start.isdecimal() and len(start) < 6 else 1)  # noqa: PLR2004
        elif tag == "li":
            self._begin_item()
        elif tag == "table":
            self._tables.append(_Table())
        elif tag == "tr" and self._tables:
            self._tables[-1].rows.append([])
        elif tag in {"td", "th"} and self._tables:
            self._tables[-1].has_header |= tag == "th"
            self._outer.append(self.blocks)
            self.blocks = []

    def _is_reply(self, attributes: Attributes) -> bool:
        """Whether a ``blockquote`` quotes an older message rather than merely indenting."""
        if attributes.get("type") == "cite" or _QUOTE_CLASS.search(attributes.get("class") or ""):
            return True
        last = next((block for block in reversed(self.blocks) if block), "")
        return last.rstrip().endswith(":") and ("@" in last or any(character.isdigit() for character in last))

    def _begin_item(self) -> None:
        indent = "  " * min(len(self._lists) - 1, _MAX_INDENT)
        number = self._lists[-1] if self._lists else None
        if number is None:
            self._bullet = f"{indent}- "
        else:
            self._bullet = f"{indent}{number}. "
            self._lists[-1] = number + 1

    def leave(self, element: Element) -> None:
        """End an element."""
        tag = element.tag
        if tag == "a":
            self._leave_link(element)
        elif tag in _BLOCKS:
            self.flush()
            self._leave_block(element)

    def _leave_link(self, element: Element) -> None:
        url = readable_url(element.href) if self._written > element.written else ""
        if not url:
            return
        label = _SPACE.sub(" ", _NOT_TEXT.sub(" ", "".join(self._line[element.label_start :]))).strip()
        block = self.blocks[-1] if not label and self.blocks else ""
        if self._list_links and not is_shown(url, label or block):
            self.links.setdefault(url, label or block)
        elif label and not self._list_links:
            self._line.insert(self._end_of_line(), f"\0{url}\0")
        elif block and not self._list_links and not is_shown(url, block):
            self.blocks[-1] += f" ({url})"

    def _end_of_line(self) -> int:
        """Where the line's text ends, before line breaks that the link holds."""
        end = len(self._line)
        while not self._line[end - 1].strip(" \1"):
            end -= 1
        return end

    def _leave_block(self, element: Element) -> None:
        tag = element.tag
        if tag in _HEADINGS:
            self._heading = ""
        elif tag == "blockquote":
            self._quote_depth -= element.quotes
        elif tag in {"ul", "ol", "menu", "dir"} and self._lists:
            self._lists.pop()
        elif tag == "li":
            self._bullet = ""
        elif tag in {"td", "th"} and self._outer:
            cell, self.blocks = self.blocks, self._outer.pop()
            if not self._tables[-1].rows:
                self._tables[-1].rows.append([])
            self._tables[-1].rows[-1].append(cell)
        elif tag == "table" and self._tables:
            self._end_table(self._tables.pop())
        if tag in _PARAGRAPHS:
            self._gap()

    def _end_table(self, table: _Table) -> None:
        for row in table.rows:
            cells = [[block for block in cell if block] for cell in row]
            filled = [cell for cell in cells if cell]
            is_row = len(filled) > 1 or (table.has_header and len(cells) > 1)
            if is_row and all(len(cell) == 1 and len(cell[0]) <= _MAX_CELL for cell in filled):
                wanted = cells if table.has_header else filled
                self.blocks.append(" | ".join(cell[0] if cell else "" for cell in wanted))
                continue
            for cell in row:
                self.blocks.extend(cell)

    def finish(self) -> str:
        """The whole text, with the list of links if one is kept."""
        self.flush()
        text = "\n".join(self.blocks)
        links = [f"- {label}: {url}" for url, label in islice(self.links.items(), _MAX_LINKS)]
        return "\n".join([text, "", "Links:", *links]) if links else text

    def flush(self) -> None:
        """End the line."""
        if not self._line:
            return
        raw = "".join(self._line)
        self._line.clear()
        lines = [self._finish_line(line) for line in raw.split("\1")]
        while lines and not lines[-1].strip():
            lines.pop()
        while lines and not lines[0].strip():
            lines.pop(0)
        if not lines:
            return
        marks = "> " * min(self._quote_depth, _MAX_INDENT)
        first = f"{self._bullet}{self._heading}"
        self._bullet = " " * len(self._bullet)
        self.blocks.append(f"{marks}{first}{lines[0]}")
        self.blocks.extend(f"{marks}{line}" for line in lines[1:])

    @staticmethod
    def _finish_line(line: str) -> str:
        bare = re.sub(r" {2,}", " ", _LINK_MARK.sub("", line)).strip(" \r")
        urls = [url for url in dict.fromkeys(_LINK_MARK.findall(line)) if not is_shown(url, bare)]
        return bare + "".join(f" ({url})" for url in urls)

    def _gap(self) -> None:
        if self.blocks and self.blocks[-1]:
            self.blocks.append("")
