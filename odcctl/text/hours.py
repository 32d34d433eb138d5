"""Hours of reservations and extensions: 8, 0.5; never rounded to whole hours."""

from __future__ import annotations

import re

from odcctl.text.durations import seconds_of
from odcctl.text.prompts import prompt_until_valid

MAX_HOURS = 24.0
MIN_HOURS = 0.0833
"""Five minutes, for a reservation; an extension may be shorter."""
CHOICES = "1, 2, 4, 8, 12, 24"
_NUMBER = re.compile(r"\d{1,9}(\.\d*)?|\.\d+", re.ASCII)


def read_hours(text: str, least: float) -> float:
    """Hours as a number, or a duration that is not a bare number. Raises ValueError."""
    what = "from 0.0833 (5 minutes)" if least else "above 0"
    seconds = None if _NUMBER.fullmatch(text) else seconds_of(text)
    if seconds is None and not _NUMBER.fullmatch(text):
        raise ValueError(f'a number of hours {what} to 24, for example 8 or 0.5, not "{text}"')
    hours = float(text) if seconds is None else seconds / 3600
    if hours < least or hours > MAX_HOURS or hours == 0:
        raise ValueError(f"a number of hours {what} to 24, not {text}")
    return hours


def read_time(text: str) -> int:
    """The seconds of a duration. Raises ValueError, which describes the error."""
    seconds = seconds_of(text)
    if not seconds:
        raise ValueError(f'a time above 0, for example 90 (minutes), 8:00:00 or 1-12, not "{text}"')
    return seconds


def prompt_hours(question: str, default: str, least: float) -> float:
    return prompt_until_valid(
        f"{question} ({CHOICES}, or any number up to 24)",
        default,
        lambda text: read_hours(text, least),
    )
