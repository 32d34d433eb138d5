"""Times in the past, as users write them: 2h, 7d, today, yesterday, 2026-07-01T12:00."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

_AGO = re.compile(r"(\d{1,6})([smhdw])")
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def moment_of(text: str) -> str | None:
    """A time that a user wrote, in the API's format; None if it is not a time."""
    now = datetime.now().astimezone()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if text in ("today", "yesterday"):
        return (midnight - timedelta(days=text == "yesterday")).isoformat()
    try:
        if ago := _AGO.fullmatch(text):
            return (now - timedelta(seconds=int(ago[1]) * _UNIT_S[ago[2]])).isoformat()
        return datetime.fromisoformat(text).astimezone().isoformat()
    except (ValueError, OverflowError):
        return None
