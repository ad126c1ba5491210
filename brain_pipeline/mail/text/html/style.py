"""Which elements of an HTML mail are drawn invisibly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

Colour = tuple[int, int, int]
Declarations = dict[str, str]

_NAMED: dict[str, Colour] = {
    "white": (255, 255, 255), "black": (0, 0, 0), "snow": (255, 250, 250), "ivory": (255, 255, 240),
    "whitesmoke": (245, 245, 245), "red": (255, 0, 0), "green": (0, 128, 0), "blue": (0, 0, 255),
    "yellow": (255, 255, 0), "gray": (128, 128, 128), "grey": (128, 128, 128), "silver": (192, 192, 192),
    "navy": (0, 0, 128), "maroon": (128, 0, 0), "orange": (255, 165, 0), "lightgrey": (211, 211, 211),
    "lightgray": (211, 211, 211), "gainsboro": (220, 220, 220), "ghostwhite": (248, 248, 255),
}  # fmt: skip
_RELEVANT = frozenset({
    "display", "visibility", "opacity", "font-size", "color", "background", "background-color", "background-image",
    "max-height", "height", "max-width", "width", "overflow", "mso-hide", "text-indent", "position", "left", "top",
    "clip",
})  # fmt: skip
_NUMBER = re.compile(r"-?\d*\.?\d+")
_HEX = re.compile(r"#([0-9a-f]{6}|[0-9a-f]{3})\b")
_RGB = re.compile(r"rgba?\(\s*(\d+)[,\s]+(\d+)[,\s]+(\d+)(?:[,/\s]+([\d.]+%?))?")
_FAR_AWAY = -500
_MAX_RULES = 400
_MAX_SELECTORS = 20
_MAX_DECLARATIONS = 200
# Colours closer than this in every channel are one colour to the eye.
_SAME_COLOUR = 8


@dataclass(frozen=True, slots=True)
class Look:
    """How text is drawn at one place: what it inherits. None is a colour that can't be known."""

    colour: Colour | None = (0, 0, 0)
    background: Colour | None = (255, 255, 255)
    invisible: bool = False
    tiny: bool = False
    preformatted: bool = False

    @property
    def hides_text(self) -> bool:
        """Whether text drawn like this can't be read."""
        return self.invisible or self.tiny or _same(self.colour, self.background)


def _same(one: Colour | None, other: Colour | None) -> bool:
    if one is None or other is None:
        return False
    return all(abs(a - b) <= _SAME_COLOUR for a, b in zip(one, other, strict=True))


def parse_declarations(style: str) -> Declarations:
    """The declarations of a ``style`` attribute that can hide something, in lower case."""
    found: Declarations = {}
    for declaration in style.lower().split(";", _MAX_DECLARATIONS)[:_MAX_DECLARATIONS]:
        name, _, value = declaration.partition(":")
        name = name.strip()
        if name in _RELEVANT and value:
            found[name] = value.replace("!important", "").strip()
    return found


class StyleSheet:
    """The rules of a document's ``<style>`` elements that apply without a condition, resolved to its nodes."""

    def __init__(self, parser: LexborHTMLParser) -> None:
        self._of_node: dict[int, Declarations] = {}
        rules = []
        for style in parser.css("style"):
            for selectors, body in islice(_rules(style.text() or ""), _MAX_RULES):
                if declarations := parse_declarations(body):
                    names = selectors.split(",", _MAX_SELECTORS)[:_MAX_SELECTORS]
                    rules += [(_specificity(name), name, declarations) for name in names]
        for _, selector, declarations in sorted(rules, key=lambda rule: rule[0]):
            for node in _matching(parser, selector.strip()):
                self._of_node.setdefault(node.mem_id, {}).update(declarations)

    def declarations(self, node: LexborNode, attributes: dict[str, str | None]) -> Declarations:
        """What applies to ``node``; its own attributes win."""
        found = self._of_node.get(node.mem_id)
        own = attributes.get("style")
        if own:
            return {**found, **parse_declarations(own)} if found else parse_declarations(own)
        return found or {}


def _rules(css: str) -> Iterator[tuple[str, str]]:
    """Selectors and declarations of the rules that stand in no block such as ``@media``."""
    first, *commented = css.replace("<!--", "").replace("-->", "").split("/*")
    css = first + "".join(part.partition("*/")[2] for part in commented)
    depth = 0
    for chunk in css.split("}"):
        *preludes, body = chunk.split("{")
        if not preludes:
            depth = max(depth - 1, 0)
            continue
        depth += len(preludes) - 1
        selectors = preludes[-1].rpartition(";")[2]
        if not depth and "@" not in selectors:
            yield selectors, body


def _specificity(selector: str) -> tuple[int, int]:
    return selector.count("#"), selector.count(".") + selector.count("[")


def _matching(parser: LexborHTMLParser, selector: str) -> list[LexborNode]:
    if not selector or ":" in selector or "*" in selector:
        return []
    try:
        return parser.css(selector)
    except SelectolaxError:
        return []


def hides_element(css: Declarations, attributes: dict[str, str | None]) -> bool:
    """Whether an element and all within it is not drawn, whatever its children say."""
    if "hidden" in attributes or css.get("mso-hide") == "all" or css.get("display") == "none":
        return True
    if not css:
        return False
    if _is_zero(css.get("opacity")):
        return True
    sizes = (css.get(name) for name in ("max-height", "height", "max-width", "width"))
    if css.get("overflow") == "hidden" and any(_is_zero(size) for size in sizes):
        return True
    if css.get("position") in {"absolute", "fixed"} and "rect(0" in css.get("clip", ""):
        return True
    return any(_is_far_away(css.get(name)) for name in ("left", "top", "text-indent"))


def _is_zero(value: str | None) -> bool:
    number = _NUMBER.match(value) if value else None
    return number is not None and float(number[0]) == 0


def _is_far_away(value: str | None) -> bool:
    number = _NUMBER.match(value) if value else None
    return number is not None and float(number[0]) <= _FAR_AWAY


def look_of(css: Declarations, attributes: dict[str, str | None], inherited: Look) -> Look:
    """How text within an element is drawn."""
    if not css and not ("bgcolor" in attributes or "color" in attributes or "background" in attributes):
        return inherited
    changes: dict[str, object] = {}
    if (value := css.get("visibility")) is not None:
        changes["invisible"] = value in {"hidden", "collapse"}
    if (value := css.get("font-size")) is not None:
        changes["tiny"] = _is_tiny(value)
    colour = css.get("color") or attributes.get("color")
    if colour and colour != "inherit":
        changes["colour"] = _colour(colour)
        if "invisible" not in changes and _is_transparent(colour):
            changes["invisible"] = True
    background = css.get("background-color") or css.get("background") or attributes.get("bgcolor")
    if background and not _is_transparent(background) and background not in {"none", "inherit", "initial"}:
        changes["background"] = _colour(background)
    if attributes.get("background") or "url(" in css.get("background", "") + css.get("background-image", ""):
        changes["background"] = None
    return replace(inherited, **changes) if changes else inherited  # type: ignore[arg-type]


def _is_tiny(size: str) -> bool:
    number = _NUMBER.match(size)
    if number is None:
        return False
    value = float(number[0])
    return value == 0 or (value <= 1 and size.endswith(("px", "pt")))


def _is_transparent(value: str) -> bool:
    if value == "transparent":
        return True
    rgba = _RGB.match(value)
    return bool(rgba and rgba[4] and _is_zero(rgba[4]))


def _colour(value: str) -> Colour | None:
    value = value.strip().lower()
    if (found := _HEX.search(value)) or (found := _HEX.match("#" + value)):
        digits = found[1] if len(found[1]) > 3 else "".join(digit * 2 for digit in found[1])  # noqa: PLR2004
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)
    if rgb := _RGB.search(value):
        return int(rgb[1]), int(rgb[2]), int(rgb[3])
    return next((_NAMED[word] for word in value.split() if word in _NAMED), None)
