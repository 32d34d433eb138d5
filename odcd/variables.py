"""Settings read from environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from odcd.errors import BadRequest


def read_seconds(
    environment: Mapping[str, str], name: str, default: timedelta, max_s: int = 86_400
) -> timedelta:
    """Raises BadRequest, naming the variable, also when its value is empty."""
    text = environment.get(name)
    if text is None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= max_s:
        raise BadRequest(f'{name}="{text}" is not a number of seconds', f"Give 1 to {max_s}.")
    return timedelta(seconds=seconds)


def read_words(environment: Mapping[str, str], name: str) -> list[str]:
    """Return the words of a variable, separated by commas or whitespace."""
    return re.findall(r"[^,\s]+", environment.get(name, ""))
