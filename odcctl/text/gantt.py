"""The plan as a Gantt chart in a terminal: one line for each node, time to the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from odcctl.text.jobs import job_id
from odcctl.text.render import clean

MIN_WIDTH = 60
USUAL_WIDTH = 100
MAX_LABEL = 24
STEPS_H = (1, 2, 3, 4, 6, 12, 24, 48, 168)
TICK_GAP = 8


class Signs(NamedTuple):
    """running: a job until its expected end; rest: from there to its time limit."""

    running: str
    rest: str
    planned: str
    booked: str
    free: str
    down: str
    between: str


BLOCKS = Signs("█", "▓", "░", "╌", "·", "x", "▏")
ASCII = Signs("#", "=", "/", "-", ".", "x", "|")


class Scale:
    def __init__(self, begin: datetime, end: datetime, width: int, now: datetime) -> None:
        self.begin, self.end, self.width, self.now = begin, end, width, now

    def column(self, moment: datetime) -> int:
        share = (moment - self.begin) / (self.end - self.begin)
        return max(0, min(self.width, round(share * self.width)))


def draw(plan: Mapping[str, Any], width: int | None, *, blocks: bool) -> list[str]:
    """The lines of the chart. width: of the terminal; None: USUAL_WIDTH."""
    signs = BLOCKS if blocks else ASCII
    nodes: Sequence[Mapping[str, Any]] = plan["nodes"]
    label = min(max((len(clean(node["name"])) for node in nodes), default=4), MAX_LABEL)
    columns = max(MIN_WIDTH, width or USUAL_WIDTH) - label - 2
    scale = Scale(_local(plan["from"]), _local(plan["to"]), columns, _local(plan["at"]))
    lines = [" " * (label + 2) + _axis(scale)]
    for node in nodes:
        name = clean(node["name"])
        name = name if len(name) <= label else name[: label - 1] + "…"
        for number, line in enumerate(_lines(node, scale, signs)):
            lines.append(f"{name if number == 0 else '':<{label}}  {line}".rstrip())
    lines.append(
        f"{signs.running} running, expected until  {signs.rest} until its limit  {signs.planned} "
        "planned  "
        f"{signs.booked} booked  {signs.down} node not up"
    )
    return lines


def _local(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()


def _local_after(day: datetime, hours: int) -> datetime:
    """The time at which local clocks show this many hours after midnight of the day."""
    return (day.replace(tzinfo=None) + timedelta(hours=hours)).astimezone()


def _axis(scale: Scale) -> str:
    """Full hours or days in local time, as many as fit."""
    whole_h = (scale.end - scale.begin).total_seconds() / 3600
    step = next((s for s in STEPS_H if whole_h / s * TICK_GAP <= scale.width), STEPS_H[-1])
    line = [" "] * scale.width
    day = scale.begin.replace(hour=0, minute=0, second=0, microsecond=0)
    number = 0
    # A day with a change to or from summer time has 23 or 25 hours.
    while (moment := _local_after(day, step * number)) < scale.end:
        number += 1
        at = scale.column(moment)
        text = f"{moment:%b %d}" if step >= 24 or moment.hour == 0 else f"{moment:%H:%M}"
        if moment > scale.begin and at + len(text) <= scale.width:
            line[at : at + len(text)] = text
    return "".join(line).rstrip()


def _lines(node: Mapping[str, Any], scale: Scale, signs: Signs) -> list[str]:
    """The lines of a node: bars that overlap are drawn below each other."""
    found: list[tuple[list[str], int]] = []
    bars = [bar for bar in node["bars"] if bar["kind"] != "booking"]
    for bar in sorted(bars, key=lambda bar: str(bar["starts_at"])):
        begin, end, text = _bar(bar, scale, signs)
        if end <= begin:
            continue
        place = next((i for i, (_, until) in enumerate(found) if until <= begin), None)
        if place is None:
            found.append(([signs.free if not found else " "] * scale.width, 0))
            place = len(found) - 1
        found[place][0][begin:end] = text
        found[place] = (found[place][0], end)
    if not found:
        found.append(([signs.free if node["state"] == "UP" else signs.down] * scale.width, 0))
    for bar in node["bars"]:
        if bar["kind"] == "booking":
            _book(found[0][0], bar, scale, signs)
    return ["".join(line) for line, _ in found]


def _bar(bar: Mapping[str, Any], scale: Scale, signs: Signs) -> tuple[int, int, list[str]]:
    begin = scale.column(_local(bar["starts_at"]))
    last = _local(bar["ends_at"]) if bar["ends_at"] else scale.end
    end = max(scale.column(last), min(begin + 1, scale.width))
    wide = end - begin
    if bar["kind"] == "planned":
        text = [signs.planned] * wide
    else:
        # A job whose end cannot be estimated is drawn as certain up to now.
        expected_end = _local(bar["likely_end_at"]) if bar["likely_end_at"] else scale.now
        expected_columns = max(1, scale.column(expected_end) - begin)
        text = [signs.running if at < expected_columns else signs.rest for at in range(wide)]
    # The job's id if it fits, with a gap on both sides.
    name = f" {job_id({'id': bar['job_id'], **bar})} "
    if len(name) + 2 <= wide:
        text[1 : 1 + len(name)] = name
    elif wide > 1:
        text[-1] = signs.between if bar["kind"] == "running" and end < scale.width else text[-1]
    return begin, end, text


def _book(line: list[str], bar: Mapping[str, Any], scale: Scale, signs: Signs) -> None:
    """Draw a booking on the cells that show no job: a job there runs into the booking."""
    begin, end = scale.column(_local(bar["starts_at"])), scale.column(_local(bar["ends_at"]))
    for at in range(begin, end):
        if line[at] in (signs.free, signs.down):
            line[at] = signs.booked
    name = f" {clean(bar['name'])} "
    if end - begin >= len(name) + 2 and all(c == signs.booked for c in line[begin:end]):
        line[begin + 1 : begin + 1 + len(name)] = name
