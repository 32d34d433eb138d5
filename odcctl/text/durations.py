"""Durations, as every command accepts them: Slurm's forms, and numbers with a unit.

30 is 30 minutes, 1:30 a minute and a half, 1:30:00 an hour and a half, 1-0 a day; 90s, 45m, 4h, 2d
and 1w have a unit, and can be combined: 1h30m.
"""

from __future__ import annotations

import re

FORMS = "30 (minutes), 4h, 1:30:00 or 1-0"
_SLURM = re.compile(r"((?P<days>\d{1,4})-)?(?P<rest>\d{1,6}(:\d{1,2}){0,2})", re.ASCII)
_SPAN = re.compile(r"(\d{1,6}[smhdw])+", re.ASCII)
_PART = re.compile(r"(\d+)([smhdw])", re.ASCII)
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds_of(text: str) -> int | None:
    """The seconds of a duration; None if the text is not a duration."""
    if _SPAN.fullmatch(text):
        return sum(int(number) * _UNIT_S[unit] for number, unit in _PART.findall(text))
    found = _SLURM.fullmatch(text)
    if found is None:
        return None
    numbers = [int(number) for number in found["rest"].split(":")]
    if found["days"] is not None:
        numbers = [int(found["days"]) * 24 + numbers[0], *numbers[1:], 0, 0][:3]
    elif len(numbers) < 3:
        numbers = [0, *numbers, 0][:3]
    hours, minutes, seconds = numbers
    return hours * 3600 + minutes * 60 + seconds


def for_daemon(text: str) -> str:
    """The duration in Slurm's form, which the daemon reads. Other text is not changed: the daemon
    also reads words such as UNLIMITED, and reports errors."""
    if text[:1] in ("+", "-"):
        return text[0] + for_daemon(text[1:])
    if not _SPAN.fullmatch(text):
        return text
    minutes, seconds = divmod(seconds_of(text) or 0, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
