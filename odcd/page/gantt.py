"""The plan as a Gantt chart: the position of each bar, in percent of the time shown and in
pixels."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from odcd.api.http.context import Api
from odcd.page.files import macros
from odcd.page.fragments import Rendered
from odcd.page.hues import Hues
from odcd.page.queries import HOURS, PageOfPlan, Zoom, following

PAGE = 40
STEP_S: dict[Zoom, int] = {"6h": 60, "24h": 300, "7d": 1800}
"""The step of the window's start: between steps, only changed bars move."""
TICK_S: dict[Zoom, int] = {"6h": 3600, "24h": 2 * 3600, "7d": 24 * 3600}
PAST = 1 / 24
"""The share of the window before now, which shows what has just started."""
LEAST_HEIGHT, LANE = 18, 3.25
ROOM = 480
"""Few nodes share this height, in pixels; many have rows of the least height."""
MOST_HEIGHT = 96
LABEL_FROM = 5.0
"""In percent: narrower bars have no text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """x, wide: percent of the window; sure: percent of the bar until its likely end."""

    kind: str
    entry: dict[str, Any]
    hue: int
    x: float
    wide: float
    sure: float
    y: float
    high: float

    @property
    def labelled(self) -> bool:
        return self.wide >= LABEL_FROM and self.high >= 9

    @property
    def leftward(self) -> bool:
        """Whether a label beside the bar ends at it, because there is more room before it."""
        return self.x > 50


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    node: dict[str, Any]
    high: float
    bars: Sequence[Bar]


class Window:
    def __init__(self, now: datetime, zoom: Zoom) -> None:
        step = STEP_S[zoom]
        self.stepped = begun = datetime.fromtimestamp(now.timestamp() // step * step, UTC)
        whole = timedelta(hours=HOURS[zoom])
        self.begin = begun - whole * PAST
        self.end = begun + whole
        self.now = datetime.fromtimestamp(now.timestamp() // 60 * 60, UTC)
        self.zoom: Zoom = zoom

    def at(self, moment: datetime) -> float:
        """The position in percent, limited to the window."""
        share = (moment - self.begin) / (self.end - self.begin)
        return round(min(max(share, 0), 1) * 100, 2)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Each tick's position and time."""
        step = TICK_S[self.zoom]
        first = (self.begin.timestamp() // step + 1) * step
        for second in itertools.count(int(first), step):
            moment = datetime.fromtimestamp(second, UTC)
            if moment >= self.end:
                return
            yield self.at(moment), moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class PlanChart:
    def __init__(self, api: Api, hues: Hues) -> None:
        self._api = api
        self._hues = hues
        self._drawn = functools.lru_cache(maxsize=2_000)(self._draw)
        self._rows = macros("rows.html")

    async def page(self, query: PageOfPlan) -> Rendered:
        now = self._api.clock.now()
        window = Window(now, query.zoom)
        gantt: dict[str, Any] = json.loads(
            await self._api.store.plans.get_gantt(
                [query.gpu_type] if query.gpu_type else None,
                [query.node] if query.node else None,
                query.after, PAGE, (window.begin, window.end), None, now,
            )
        )  # fmt: skip
        least = least_height(len(gantt["nodes"]))
        rows = {
            node["name"]: self._drawn(
                json.dumps(node), window.stepped, query.zoom, least, self._hues.version
            )
            for node in gantt["nodes"]
        }
        span = (query.after + 1, query.after + len(rows), gantt["node_count"])
        path = "/page/plan"
        ends = following(path, query, after=gantt["next"]), following(path, query, after=0)
        return Rendered(
            parts={
                "gantt-axis": str(self._rows.gantt_axis(window)),
                "gantt-foot": str(self._rows.gantt_foot(span, *ends)),
            },
            rows={"gantt": rows},
        )

    def _draw(self, text: str, at: datetime, zoom: Zoom, least: int, _: int) -> str:
        """least: the row's height. The last argument: the version of the colours, for the cache."""
        row = lay_out(json.loads(text), Window(at, zoom), least, self._hues.of)
        return str(self._rows.gantt_node(row))


def least_height(nodes: int) -> int:
    """Of a row, in pixels: the fewer nodes, the higher."""
    return min(max(ROOM // max(nodes, 1), LEAST_HEIGHT), MOST_HEIGHT)


def lay_out(
    node: dict[str, Any],
    window: Window,
    least: int = LEAST_HEIGHT,
    hue_of: Callable[[str | None], int] = lambda _: 0,
) -> NodeRow:
    """Each GPU has a lane. Planned jobs have no GPUs yet: they are drawn in lanes that are free
    then."""
    lanes = max(node["gpus"], 1)
    high = max(least, lanes * LANE)
    lane = high / lanes
    taken: list[list[tuple[datetime, datetime]]] = [[] for _ in range(lanes)]
    bars: list[Bar] = []
    for entry in node["bars"]:
        begin = datetime.fromisoformat(entry["starts_at"])
        end = datetime.fromisoformat(entry["ends_at"]) if entry["ends_at"] else window.end
        # Without a prediction, only the past part of the bar is certain.
        likely = (
            datetime.fromisoformat(entry["likely_end_at"])
            if entry["likely_end_at"]
            else max(begin, window.stepped)
        )
        if end <= window.begin or begin >= window.end:
            continue
        x, right = window.at(begin), window.at(end)
        wide = max(right - x, 0.3)
        sure = 100 if right <= x else min(100, (window.at(likely) - x) / (right - x) * 100)
        if entry["kind"] == "booking":
            places = [(0, lanes)]
        else:
            chosen = [g for g in entry["gpu_indexes"] if g < lanes] or _free(
                taken, begin, end, min(entry["gpus"], lanes)
            )
            for one in chosen:
                taken[one].append((begin, end))
            places = list(_runs(chosen))
        hue = hue_of(entry["user"])
        if not places:  # a job without GPUs
            bars.append(Bar(kind=entry["kind"] + " thin", entry=entry, hue=hue, x=x, wide=wide,
                            sure=round(sure, 1), y=round(high - 3, 2), high=3))  # fmt: skip
        for first, count in places:
            bars.append(Bar(
                kind=entry["kind"], entry=entry, hue=hue, x=x, wide=round(wide, 2),
                sure=round(sure, 1), y=round(first * lane, 2), high=round(count * lane, 2),
            ))  # fmt: skip
    return NodeRow(node=node, high=round(high, 2), bars=bars)


def _free(
    taken: Sequence[Sequence[tuple[datetime, datetime]]], begin: datetime, end: datetime, count: int
) -> list[int]:
    """Lanes without other jobs then; if there are too few, those with the least overlap."""

    def clash(lane: int) -> float:
        return sum(
            max((min(end, until) - max(begin, since)).total_seconds(), 0)
            for since, until in taken[lane]
        )

    return sorted(sorted(range(len(taken)), key=lambda lane: (clash(lane), lane))[:count])


def _runs(lanes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Group adjacent lanes: the first lane and the number of lanes."""
    for _, run in itertools.groupby(enumerate(sorted(lanes)), lambda one: one[1] - one[0]):
        members = [lane for _, lane in run]
        yield members[0], len(members)
