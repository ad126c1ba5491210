"""HTML mail to text, as a person would read it.

The parser is selectolax's lexbor: HTML5's own rules for broken markup, in a few milliseconds a message.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

from brain_pipeline.mail.text.cleaning import clean, one_line
from brain_pipeline.mail.text.html.render import render
from brain_pipeline.mail.text.html.style import StyleSheet

_HTML_START = re.compile(
    r"\s*(?:<!--(?:(?!-->).){0,2000}+-->\s*|<\?xml[^>]{0,200}>\s*)*+<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_TITLE = re.compile(r"<title[^>]{0,200}>(.{0,1000}?)</title", re.IGNORECASE | re.DOTALL)
_TITLE_TAG = re.compile(r"<title\b[^>]{0,200}>", re.IGNORECASE)
# Lexbor's time grows with the square of the depth; no honest mail leaves this many elements open.
_MAX_OPEN = 20_000
# A page of more links is a newsletter's, whose sentences addresses would tear apart.
_FEW_LINKS = 12
_VOID = ("<br", "<img", "<hr", "<td", "<tr", "<th", "<li", "<p", "<!", "<input", "<meta", "<link", "<col", "<area")


def looks_like_html(text: str) -> bool:
    """Whether ``text`` is an HTML document, whatever its label says."""
    return bool(_HTML_START.match(text))


def html_title(html: str) -> str:
    """The document's title in one line; empty when it has none."""
    found = _TITLE.search(html)
    return one_line(html_to_text(found[1])) if found else ""


def html_to_text(html: str) -> str:
    """The visible text of ``html``.

    Headings become ``# ...``, list items ``- ...``, rows of short cells ``a | b``, replies ``> ...``; a link that says
    more than its text is kept at the end of its line, ``text (https://...)``, or of the text where there are many. Text
    that is hidden in any of the ways mail hides it is left out, and so are tracking pixels and tracking links.
    """
    parser = LexborHTMLParser(_repaired(html.replace("\0", "").encode("utf-8", "replace").decode("utf-8")))
    root = parser.root
    if root is None:
        return ""
    return clean(render(root, StyleSheet(parser), list_links=len(parser.css("a[href]")) > _FEW_LINKS))


def _repaired(html: str) -> str:
    """``html`` without what would swallow all that follows it: an unclosed title or comment, or endless depth."""
    lower = html.lower()
    if lower.count("<title") > lower.count("</title"):
        html = _TITLE_TAG.sub("", html)
    comment = html.rfind("<!--")
    if comment >= 0 and html.find("-->", comment) < 0:
        html = html[:comment] + html[comment + 4 :]
    if html.count("<") > _MAX_OPEN:
        opened = html.count("<") - 2 * html.count("</") - sum(lower.count(tag) for tag in _VOID)
        if opened > _MAX_OPEN:
            return "<".join(html.split("<", _MAX_OPEN)[:_MAX_OPEN])
    return html
