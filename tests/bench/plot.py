"""Cost against size, as an SVG that shows on light and on dark pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

GROWTH = Path(__file__).with_name("results") / "growth.svg"
WIDTH, HEIGHT, PANEL = 760, 320, 270  # pixels; the two panels are as wide
LEFT, TOP, BETWEEN = 60, 40, 380
COLOURS = {"brain": "#d1495b", "floor": "#00798c", "stock": "#8a6fb0"}
NAMES = {"brain": "Family Brain", "floor": "the floor", "stock": "stock LlamaIndex"}
_STYLE = "text{font:12px sans-serif;fill:#777}.title{font-weight:bold}path{fill:none;stroke-width:2}"


def growth_svg(points: Sequence[Mapping[str, Any]]) -> str:
    """``points`` as the growth row keeps them: chunks, and by contender milliseconds and memory."""
    panels = [
        _panel(LEFT, "one question, ms (median)", points, "ms"),
        _panel(LEFT + BETWEEN, "memory of the process, MB", points, "memory_mb"),
    ]
    legend = "".join(
        f'<text x="{LEFT + 150 * number}" y="{HEIGHT - 8}" style="fill:{COLOURS[name]}">● {NAMES[name]}</text>'
        for number, name in enumerate(COLOURS)
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    title = "<title>Time of a question and memory against the number of chunks</title>"
    return f"{head}{title}<style>{_STYLE}</style>{''.join(panels)}{legend}</svg>\n"


def _panel(left: int, title: str, points: Sequence[Mapping[str, Any]], what: str) -> str:
    bottom, width = TOP + 200, PANEL
    widest = max(point["chunks"] for point in points)
    highest = max(value for point in points for value in point[what].values()) * 1.1

    def place(chunks: float, value: float) -> str:
        return f"{left + width * chunks / widest:.1f} {bottom - 200 * value / highest:.1f}"

    drawn = [f'<text class="title" x="{left}" y="{TOP - 16}">{title}</text>']
    for part in range(5):
        value = highest * part / 4
        y = bottom - 200 * part / 4
        drawn.append(f'<path d="M{left} {y}h{width}" stroke="#7773"/>')
        drawn.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{value:,.0f}</text>')
    for point in points:
        x = left + width * point["chunks"] / widest
        drawn.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{_short(point["chunks"])}</text>')
    for name, colour in COLOURS.items():
        line = "L".join(place(point["chunks"], point[what][name]) for point in points)
        drawn.append(f'<path d="M{line}" stroke="{colour}"/>')
    return "".join(drawn)


def _short(chunks: int) -> str:
    return f"{chunks // 1000}k" if chunks >= 1000 else str(chunks)
