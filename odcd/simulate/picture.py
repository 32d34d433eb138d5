"""A replay as a picture, drawn and written as SVG by Rich: the share of GPUs in use, and the number
of waiting jobs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from odcd.errors import BadRequest
from odcd.simulate.cluster import Cluster
from odcd.simulate.outcomes import Outcome

COLUMNS, ROWS, LEFT = 120, 10, 8
LEVELS = " ▁▂▃▄▅▆▇█"
_FONT = re.compile(r"@font-face \{.*?\}", re.S)
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
    console = Console(record=True, width=LEFT + COLUMNS + 2, file=io.StringIO(), emoji=False)
    for line in charts(jobs, cluster):
        console.print(line, highlight=False, markup=False)
    # Without the font that a browser would load from another server.
    return _FONT.sub("", console.export_svg(title=title))


def charts(jobs: Sequence[Outcome], cluster: Cluster) -> list[Text]:
    """The lines of the picture."""
    end_s = max((job.end_s for job in jobs), default=1)
    used = _means(((job.start_s, job.end_s, job.gpus) for job in jobs), end_s)
    waiting = _means(((job.submit_s, job.start_s, 1) for job in jobs), end_s)
    unit_s, unit = next(((s, n) for s, n in TIMES if end_s >= 3 * s), TIMES[-1])
    return [
        Text(" " * LEFT + "GPUs in use, % of the machine", "bold"),
        *_bars([100 * gpus / cluster.gpus for gpus in used], 100.0, "blue"),
        Text(),
        Text(" " * LEFT + "jobs waiting", "bold"),
        *_bars(waiting, max([*waiting, 1.0]), "yellow"),
        Text(f"{'':{LEFT}}0{end_s / unit_s:>{COLUMNS - 1},.1f}"),
        Text(f"{unit} since the first submission".center(2 * LEFT + COLUMNS).rstrip()),
    ]


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


def _bars(values: Sequence[float], top: float, colour: str) -> list[Text]:
    """One bar a column, from the top row down; the scale stands at the left."""
    eighths = [round(min(value, top) / top * ROWS * 8) for value in values]
    lines: list[Text] = []
    for row in reversed(range(ROWS)):
        scale = {ROWS - 1: f"{top:,.0f}", 0: "0"}.get(row, "")
        bars = "".join(LEVELS[max(0, min(8, count - 8 * row))] for count in eighths)
        lines.append(Text.assemble(f"{scale:>{LEFT - 1}} ", (bars, colour)))
    return lines
