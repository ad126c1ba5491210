"""An HTML tree, drawn onto a page."""

from __future__ import annotations

from dataclasses import replace

from selectolax.lexbor import LexborNode

from brain_pipeline.mail.text.html.page import Element, Page
from brain_pipeline.mail.text.html.style import Look, StyleSheet, hides_element, look_of

_NOT_SHOWN = frozenset({
    "head", "title", "style", "script", "template", "svg", "math", "object", "applet", "iframe", "frame", "frameset",
    "noframes", "audio", "video", "canvas", "map", "xml", "select", "datalist", "input", "meta", "link", "base",
})  # fmt: skip
_Stack = list[tuple[LexborNode, Look] | Element]


def render(root: LexborNode, sheet: StyleSheet, *, list_links: bool) -> str:
    """The visible text under ``root``; blocks are lines, paragraphs have a blank line between them.

    With ``list_links`` the addresses of links stand in a list at the end instead of after their text.
    """
    page = Page(list_links=list_links)
    stack: _Stack = [(root, Look())]
    while stack:
        entry = stack.pop()
        if isinstance(entry, Element):
            page.leave(entry)
            continue
        node, look = entry
        if node.is_element_node:
            _draw_element(page, stack, node, look, sheet)
        elif node.is_text_node and not look.hides_text:
            page.text(node.text_content or "", preformatted=look.preformatted)
    return page.finish()


def _draw_element(page: Page, stack: _Stack, node: LexborNode, look: Look, sheet: StyleSheet) -> None:
    """Begin the element, and put its children and then its end on the stack."""
    tag = node.tag or ""
    if tag in _NOT_SHOWN:
        return
    attributes = node.attributes
    css = sheet.declarations(node, attributes)
    if hides_element(css, attributes):
        return
    inner = look_of(css, attributes, look)
    if tag in {"pre", "textarea"}:
        inner = replace(inner, preformatted=True)
    if tag == "img" and not look.hides_text:
        page.image(attributes, css)
    stack.append(page.enter(tag, attributes))
    child = node.last_child
    while child is not None:
        stack.append((child, inner))
        child = child.prev
