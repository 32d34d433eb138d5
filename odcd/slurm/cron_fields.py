"""Parse the five time fields of a crontab line, and its short forms such as @daily."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from odcd.errors import BadRequest
from odcd.slurm.complaints import Complaints

LEAP_YEAR = 2000
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
SHORT_FORMS: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_ITEM = re.compile(r"(?:(?P<all>\*)|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\w+))?")
_NUMBER = re.compile(r"[0-9]{1,4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When an entry occurs. weekdays: 0 is Sunday. any_day: a date counts if its day of the month
    or its weekday is listed; else both must be. every_hour: the field of hours begins with *."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    any_day: bool
    every_hour: bool

    def as_json(self) -> dict[str, object]:
        """With the names of odc.cron_entry's columns."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    """Those of low, low + 1, …"""


FIELDS = (
    _Field(name="minute", low=0, high=59),
    _Field(name="hour", low=0, high=23),
    _Field(name="day of month", low=1, high=31),
    _Field(name="month", low=1, high=12, names=MONTHS),
    _Field(name="day of week", low=0, high=7, names=WEEKDAYS),
)


def parse_schedule(
    texts: list[tuple[int, str]], where: str, complaints: Complaints
) -> Schedule | None:
    """texts: each of the five fields, with its column. where: a prefix of every message. None: it
    has errors, which complaints collects."""
    parsed = [
        complaints.catch(_reader(field, text, f"{where}{field.name} (column {column}): "), ())
        for field, (column, text) in zip(FIELDS, texts, strict=True)
    ]
    if not all(parsed):
        return None
    minutes, hours, days, months, weekdays = parsed
    starred = [text.startswith("*") for _, text in texts]
    schedule = Schedule(
        minutes=minutes, hours=hours, days=days, months=months,
        weekdays=tuple(sorted({day % 7 for day in weekdays})),
        any_day=not (starred[2] or starred[4]), every_hour=starred[1],
    )  # fmt: skip
    return complaints.catch(lambda: _check_dates(schedule, where), None)


def _check_dates(schedule: Schedule, where: str) -> Schedule:
    if schedule.any_day:
        return schedule
    if all(min(schedule.days) > monthrange(LEAP_YEAR, month)[1] for month in schedule.months):
        raise BadRequest(
            f"{where}no month of the schedule has a day {min(schedule.days)}, so it would never run"
        )
    return schedule


def _reader(field: _Field, text: str, where: str) -> Callable[[], tuple[int, ...]]:
    return lambda: _read(field, text, where)


def _read(field: _Field, text: str, where: str) -> tuple[int, ...]:
    if len(text) > 1000:
        raise BadRequest(f"{where}{len(text)} characters are too many")
    return tuple(sorted({value for item in text.split(",") for value in _item(field, item, where)}))


def _item(field: _Field, text: str, where: str) -> range:
    found = _ITEM.fullmatch(text)
    if found is None:
        names = " or a name" if field.names else ""
        raise BadRequest(
            f'{where}"{text[:40]}" cannot be read',
            f"A field is * or a number from {field.low} to {field.high}{names}, a range such as "
            "2-5, a step such as */2 or 2-10/2, or a list of these, separated by commas.",
        )
    step = 1 if found["step"] is None else _step(field, found["step"], where)
    if found["all"]:
        return range(field.low, field.high + 1, step)
    first = _value(field, found["first"], where)
    if found["last"] is None:
        if found["step"] is not None:
            raise BadRequest(
                f'{where}"{text[:40]}" has a step, but is no range',
                f"Write {first}-{field.high}/{step}.",
            )
        return range(first, first + 1)
    last = _value(field, found["last"], where)
    if last == 0 and field.name == "day of week" and found["last"].lower() == WEEKDAYS[0]:
        last = 7  # sat-sun
    if last < first:
        raise BadRequest(
            f'{where}the range "{text[:40]}" ends before it begins',
            "Write two ranges, separated by a comma.",
        )
    return range(first, last + 1, step)


def _value(field: _Field, text: str, where: str) -> int:
    if text.lower() in field.names:
        return field.low + field.names.index(text.lower())
    if not text.isascii() or not text.isdecimal():
        known = f": choose among {', '.join(field.names)}" if field.names else ""
        raise BadRequest(f'{where}"{text[:40]}" is no number{" or name" if known else ""}{known}')
    if not _NUMBER.fullmatch(text) or not field.low <= int(text) <= field.high:
        raise BadRequest(f'{where}"{text[:40]}" is not from {field.low} to {field.high}')
    return int(text)


def _step(field: _Field, text: str, where: str) -> int:
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= field.high:
        raise BadRequest(f'{where}the step "{text[:40]}" is not from 1 to {field.high}')
    return int(text)
