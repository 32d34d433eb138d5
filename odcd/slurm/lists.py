"""Lists of numbers and names in brackets: array tasks `0-9:2,20%4` and selections `7_[1-4,9]`.

Ranges stay ranges. A step makes a separate range of each task: `0-99999999:10001` has ten thousand.
So the limit is on ranges, not on characters, and they are counted before they are created.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from odcd.errors import BadRequest, TooLarge
from odcd.records.job import MAX_ARRAY_RANGES, MAX_ARRAY_TASKS, MAX_REQUEST_RANGES, Selector

Range = tuple[int, int]
"""First and last number, both included."""

MAX_TASK_ID = 2_147_483_646
MAX_JOB_ID = 9_223_372_036_854_775_807
ARRAY_FORMS = "task ids and ranges, such as 0-15, 1,3,5-7, 0-100:10 or 0-99%4"

_PART = re.compile(r"(?P<first>[0-9]+)(?:-(?P<last>[0-9]+)(?::(?P<step>[0-9]+))?)?")
_COMPONENT = re.compile(r"([0-9]{1,18})\+[0-9]{1,9}")
_SELECTOR = re.compile(
    r"(?P<job>[0-9]+)(?:_(?:(?P<all>\*|\[\*\])|(?P<task>[0-9]+)|\[(?P<tasks>[^\[\]]*)\]))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySpec:
    """The tasks of an array. ranges: ascending and not adjacent. step: the step between evenly
    spaced tasks, else 1. throttle: how many may run at once."""

    ranges: tuple[Range, ...]
    min: int
    max: int
    count: int
    step: int
    throttle: int | None

    @property
    def multirange(self) -> str:
        return multirange(self.ranges)


class RangeBudget:
    """How many more ranges all lists of one request may have."""

    def __init__(self, limit: int = MAX_REQUEST_RANGES) -> None:
        self._limit = limit
        self._left = limit

    def take(self, count: int) -> None:
        """Raises TooLarge."""
        if count > self._left:
            raise TooLarge(
                f"the request names more than {self._limit} separate tasks or ranges of tasks",
                "Send several requests, or write consecutive tasks as one range.",
            )
        self._left -= count


def parse_array(text: str, budget: RangeBudget | None = None) -> ArraySpec:
    """budget: the budget of the request with the array. Raises BadRequest, TooLarge."""
    body, percent, limit = text.strip().partition("%")
    throttle = None
    if percent:
        if not re.fullmatch("[0-9]{1,7}", limit) or not 1 <= int(limit) <= MAX_ARRAY_TASKS:
            raise BadRequest(
                f'array "{_cut(text)}": "%{_cut(limit)}" is not a number of tasks to run at once',
                f"Give 1 to {MAX_ARRAY_TASKS} after %.",
            )
        throttle = int(limit)
    if body.startswith("[") and body.endswith("]"):
        body = body[1:-1]
    hint = f"Accepted: {ARRAY_FORMS}."
    ranges = _parse_ranges(body, f'array "{_cut(text)}"', hint, budget)
    count = sum(last - first + 1 for first, last in ranges)
    if count > MAX_ARRAY_TASKS:
        raise TooLarge(
            f'array "{_cut(text)}" has {count} tasks, more than {MAX_ARRAY_TASKS}',
            "Submit it as several arrays.",
        )
    return ArraySpec(
        ranges=ranges,
        min=ranges[0][0],
        max=ranges[-1][1],
        count=count,
        step=_even_step(ranges),
        throttle=throttle,
    )


def format_tasks(ranges: Sequence[Range], throttle: int | None = None) -> str:
    """The pending tasks in Slurm's format: 0-9,12%4."""
    body = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
    return body if throttle is None else f"{body}%{throttle}"


def multirange(ranges: Iterable[Range]) -> str:
    """PostgreSQL's int4multirange text: {[0,10),[12,13)}."""
    return "{" + ",".join(f"[{first},{last + 1})" for first, last in ranges) + "}"


def parse_selector(text: str, budget: RangeBudget | None = None) -> Selector:
    """Parse 7, 7_3 or 7_[1-4,9]; 7_* is the same as 7. budget: the budget of a request with several
    selectors.

    Raises BadRequest, TooLarge.
    """
    found = _SELECTOR.fullmatch(text.strip())
    hint = "Accepted: a job 7, an array's task 7_3, or tasks 7_[1-4,9]."
    component = _COMPONENT.fullmatch(text.strip())
    if component is not None:
        hint = f"It is a component of a heterogeneous job: name job {component[1]}."
    if found is None:
        raise BadRequest(f'"{_cut(text)}" does not name a job', hint)
    job_id = parse_job_id(found["job"])
    if found["task"] is None and found["tasks"] is None:
        return Selector(job_id=job_id)
    ranges = _parse_ranges(found["task"] or found["tasks"], f'"{_cut(text)}"', hint, budget)
    return Selector(job_id=job_id, tasks=multirange(ranges))


def split_selectors(text: str) -> list[str]:
    """Split `7,8_[1,2],9` into selectors; commas in brackets do not separate."""
    return [part for part in split_outside_brackets(text) if part.strip()]


def split_outside_brackets(text: str) -> list[str]:
    parts: list[str] = []
    start, inside = 0, False
    for found in re.finditer(r"[\[\],]", text):
        if found[0] != ",":
            inside = found[0] == "["
        elif not inside:
            parts.append(text[start : found.start()])
            start = found.end()
    parts.append(text[start:])
    return parts


def is_number(text: str, digits: int = 9) -> bool:
    """Whether int() reads it, and it has at most so many digits. str.isdigit alone accepts digits
    that int() rejects, and int() rejects numbers that are too long."""
    return text.isascii() and text.isdigit() and len(text) <= digits


def parse_job_id(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 19 and 1 <= int(text) <= MAX_JOB_ID:
        return int(text)
    raise BadRequest(f'"{_cut(text)}" is not a job id', f"Job ids are 1 to {MAX_JOB_ID}.")


def parse_task_id(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= MAX_TASK_ID:
        return int(text)
    raise BadRequest(f'"{_cut(text)}" is not a task id', f"Task ids are 0 to {MAX_TASK_ID}.")


def _parse_ranges(text: str, what: str, hint: str, budget: RangeBudget | None) -> tuple[Range, ...]:
    """Merged, ascending ranges. Stops at MAX_ARRAY_RANGES, and at the end of the budget, before it
    creates more."""
    found: list[Range] = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        named = what if what.endswith(f' "{_cut(part)}"') else f'"{_cut(part)}" in {what}'
        if match is None:
            raise BadRequest(f"{named} is not a task or a range of tasks", hint)
        first = parse_task_id(match["first"])
        last = first if match["last"] is None else parse_task_id(match["last"])
        step = 1 if match["step"] is None else parse_task_id(match["step"])
        if last < first or step < 1:
            reason = "ends before it begins" if last < first else "has step 0"
            raise BadRequest(f"{named} {reason}", hint)
        stepped = range(first, last + 1, step)
        pieces = 1 if step == 1 else len(stepped)
        if len(found) + pieces > MAX_ARRAY_RANGES:
            raise TooLarge(
                f"{what} has more than {MAX_ARRAY_RANGES} separate tasks or ranges",
                "Write consecutive tasks as one range, or submit several arrays.",
            )
        if budget is not None:
            budget.take(pieces)
        found.extend([(first, last)] if step == 1 else ((task, task) for task in stepped))
    return _merge(found)


def _merge(ranges: Iterable[Range]) -> tuple[Range, ...]:
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def _even_step(ranges: tuple[Range, ...]) -> int:
    if len(ranges) == 1 or any(first != last for first, last in ranges):
        return 1
    steps = {after[0] - before[0] for before, after in pairwise(ranges)}
    return steps.pop() if len(steps) == 1 else 1


def _cut(text: str) -> str:
    """The text, cut to fit into a message."""
    return text if len(text) <= 60 else text[:57] + "..."
