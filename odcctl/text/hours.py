"""Hours, as dev servers are reserved and extended by: 8, 0.5, never rounded to whole ones; and
times, as sbatch has them."""

from __future__ import annotations

import re

from odcctl.options import Arguments
from odcctl.text.prompts import ask_until

MOST = 24.0
LEAST = 0.0833
"""Five minutes, of a reservation; an extension may be shorter."""
CHOICES = "1, 2, 4, 8, 12, 24"
_TIME = re.compile(r"((?P<days>\d{1,4})-)?(?P<rest>\d{1,6}(:\d{1,2}){0,2})", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}(\.\d*)?|\.\d+", re.ASCII)


def read_hours(text: str, least: float) -> float:
    """Raises ValueError, with what is wrong."""
    what = "from 0.0833 (5 minutes)" if least else "above 0"
    if not _NUMBER.fullmatch(text):
        raise ValueError(f'a number of hours {what} to 24, as 8 or 0.5, not "{text}"')
    hours = float(text)
    if hours < least or hours > MOST or hours == 0:
        raise ValueError(f"a number of hours {what} to 24; {text} is not")
    return hours


def hours_of(arguments: Arguments, option: str, least: float) -> float | None:
    """The value of an option; None if it was not given."""
    text = arguments.value(option)
    if text is None:
        return None
    try:
        return read_hours(text, least)
    except ValueError as error:
        arguments.command.wrong(f"--{option} takes {error}")


def read_time(text: str) -> int:
    """Seconds: MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, D-HOURS[:MINUTES[:SECONDS]]. Raises
    ValueError, with what is wrong."""
    found = _TIME.fullmatch(text)
    seconds = 0
    if found is not None:
        numbers = [int(number) for number in found["rest"].split(":")]
        if found["days"] is not None:
            numbers = [int(found["days"]) * 24 + numbers[0], *numbers[1:], 0, 0][:3]
        elif len(numbers) < 3:
            numbers = [0, *numbers, 0][:3]
        hours, minutes, rest = numbers
        seconds = hours * 3600 + minutes * 60 + rest
    if not seconds:
        raise ValueError(f'a time above 0, as 90 (minutes), 8:00:00 or 1-12, not "{text}"')
    return seconds


def ask_hours(question: str, default: str, least: float) -> float:
    return ask_until(
        f"{question} ({CHOICES}, or any number up to 24)",
        default,
        lambda text: read_hours(text, least),
    )
