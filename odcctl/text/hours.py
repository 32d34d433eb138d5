"""Hours, as dev servers are reserved and extended by: 8, 0.5, never rounded to whole ones."""

from __future__ import annotations

import re

from odcctl.text.durations import seconds_of
from odcctl.text.prompts import ask_until

MOST = 24.0
LEAST = 0.0833
"""Five minutes, of a reservation; an extension may be shorter."""
CHOICES = "1, 2, 4, 8, 12, 24"
_NUMBER = re.compile(r"\d{1,9}(\.\d*)?|\.\d+", re.ASCII)


def read_hours(text: str, least: float) -> float:
    """Hours as a number, or a duration that is not a bare number. Raises ValueError."""
    what = "from 0.0833 (5 minutes)" if least else "above 0"
    seconds = None if _NUMBER.fullmatch(text) else seconds_of(text)
    if seconds is None and not _NUMBER.fullmatch(text):
        raise ValueError(f'a number of hours {what} to 24, for example 8 or 0.5, not "{text}"')
    hours = float(text) if seconds is None else seconds / 3600
    if hours < least or hours > MOST or hours == 0:
        raise ValueError(f"a number of hours {what} to 24; {text} is not")
    return hours


def read_time(text: str) -> int:
    """The seconds of a duration. Raises ValueError, with what is wrong."""
    seconds = seconds_of(text)
    if not seconds:
        raise ValueError(f'a time above 0, for example 90 (minutes), 8:00:00 or 1-12, not "{text}"')
    return seconds


def ask_hours(question: str, default: str, least: float) -> float:
    return ask_until(
        f"{question} ({CHOICES}, or any number up to 24)",
        default,
        lambda text: read_hours(text, least),
    )
