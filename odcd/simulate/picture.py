"""A replay as an SVG picture: the share of GPUs in use, and the number of waiting jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from odcd.errors import BadRequest
from odcd.simulate.cluster import Cluster
from odcd.simulate.outcomes import Outcome

WIDTH, PANEL, LEFT, RIGHT, TOP, GAP, BOTTOM = 1000, 200, 70, 20, 44, 44, 46
COLUMNS = WIDTH - LEFT - RIGHT
USED, WAITING, INK, GRID = "#2b6cb0", "#c05621", "#1a202c", "#e2e8f0"
STEPS = (1, 2, 5)
TIMES = ((86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))


def check_picture(path: Path) -> None:
    """Raises BadRequest for unsupported formats."""
    if path.suffix.lower() == ".png":
        raise BadRequest(
            f"{path}: pictures are written as SVG, not PNG",
            "End the name in .svg; every browser shows it, and converters make a PNG of it.",
        )
    if path.suffix.lower() != ".svg":
        raise BadRequest(f"{path} is not the name of a picture", "End it in .svg.")


def picture(title: str, jobs: Sequence[Outcome], cluster: Cluster) -> str:
    """The SVG. Each column is the mean over its time."""
    end_s = max((job.end_s for job in jobs), default=1)
    used = _means(((job.start_s, job.end_s, job.gpus) for job in jobs), end_s)
    waiting = _means(((job.submit_s, job.start_s, 1) for job in jobs), end_s)
    height = TOP + 2 * PANEL + GAP + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="12" fill="{INK}">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="15">{escape(title)}</text>',
        *_panel(
            TOP, "GPUs held, % of the machine", [100 * n / cluster.gpus for n in used], 100.0, USED
        ),
        *_panel(TOP + PANEL + GAP, "jobs waiting", waiting, max([*waiting, 1.0]), WAITING),
        *_time_axis(TOP + 2 * PANEL + GAP, end_s),
        "</svg>",
    ]
    return "\n".join([*parts, ""])


def _means(spans: Iterable[tuple[int, int, int]], end_s: int) -> list[float]:
    """The mean amount in each column: spans are (from, to, amount)."""
    column_s = end_s / COLUMNS
    # A span covers whole columns, counted by its ends, and a part of a column at either end.
    rises = [0.0] * (COLUMNS + 2)
    parts = [0.0] * (COLUMNS + 2)
    for begin, end, amount in spans:
        first, last = begin / column_s, end / column_s
        for at, sign in ((first, 1), (last, -1)):
            column = min(int(at), COLUMNS)
            parts[column] += sign * amount * (column + 1 - at)
            rises[column + 1] += sign * amount
    level = 0.0
    means: list[float] = []
    for column in range(COLUMNS):
        level += rises[column]
        means.append(max(0.0, level + parts[column]))
    return means


def _panel(top: int, label: str, values: Sequence[float], most: float, colour: str) -> list[str]:
    step = _step(most, 4)
    scale = max(most, step)
    bottom = top + PANEL
    lines = [f'<text x="{LEFT}" y="{top - 8}">{label}</text>']
    at = 0.0
    while at <= scale * 1.0001:
        y = bottom - PANEL * at / scale
        lines.append(
            f'<path d="M{LEFT} {y:.1f}h{COLUMNS}" stroke="{GRID}"/>'
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{at:,.0f}</text>'
        )
        at += step
    heights = [f"{bottom - PANEL * min(value, scale) / scale:.1f}" for value in values]
    # A level line is drawn by its two ends.
    points = " ".join(
        f"{LEFT + x + 0.5:.1f},{y}"
        for x, y in enumerate(heights)
        if heights[max(0, x - 1) : x + 2] != [y] * 3
    )
    lines.append(
        f'<polygon points="{LEFT},{bottom} {points} {LEFT + COLUMNS},{bottom}" fill="{colour}" '
        f'fill-opacity="0.25"/><polyline points="{points}" fill="none" stroke="{colour}"/>'
    )
    return lines


def _time_axis(y: int, end_s: int) -> list[str]:
    unit_s, name = next(((s, n) for s, n in TIMES if end_s >= 3 * s), TIMES[-1])
    step = _step(end_s / unit_s, 10)
    lines: list[str] = []
    at = 0.0
    while at <= end_s / unit_s:
        x = LEFT + COLUMNS * at * unit_s / end_s
        lines.append(
            f'<path d="M{x:.1f} {y}v5" stroke="{INK}"/>'
            f'<text x="{x:.1f}" y="{y + 18}" text-anchor="middle">{at:,.0f}</text>'
        )
        at += step
    lines.append(
        f'<text x="{LEFT + COLUMNS / 2}" y="{y + 36}" text-anchor="middle">'
        f"{name} since the first submission</text>"
    )
    return lines


def _step(span: float, about: int) -> float:
    """1, 2 or 5 times a power of ten, at least 1, that divides the span into about this many
    steps."""
    size = 1.0
    while True:
        for step in STEPS:
            if span / (step * size) <= about + 1:
                return step * size
        size *= 10
