"""Durations and times in sbatch's forms: `1-12:30:00`, `now+1hour`, `tomorrow 16:00`.

A time is read in the zone of `now`, so the caller passes now in the submitter's zone.
"""

from __future__ import annotations

import functools
import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from odcd.errors import BadRequest
from odcd.records.fields import UNLIMITED_S

SPAN_FORMS = "M, M:S, H:M:S, D-H, D-H:M, D-H:M:S, or like 90s, 45m, 48h, 2d and 1w"
DURATION_FORMS = "M, M:S, H:M:S, D-H, D-H:M, D-H:M:S or UNLIMITED"
MOMENT_FORMS = (
    "now, now+COUNT[seconds|minutes|hours|days|weeks], [today|tomorrow] HH:MM[:SS][AM|PM], "
    "midnight, noon, fika, teatime, YYYY-MM-DD[THH:MM[:SS]], MM/DD[/YY] or MMDDYY"
)

_DURATION = re.compile(
    r"""(?: (?P<d>[0-9]{1,10})-(?P<dh>[0-9]{1,10})
            (?: :(?P<dm>[0-9]{1,10}) (?: :(?P<ds>[0-9]{1,10}))? )?
      | (?P<h>[0-9]{1,10}):(?P<hm>[0-9]{1,10}):(?P<hs>[0-9]{1,10})
      | (?P<m>[0-9]{1,10}) (?: :(?P<s>[0-9]{1,10}) )? )""",
    re.VERBOSE,
)
_SHORT = re.compile(r"([0-9]{1,10})([smhdw])")
_ENDLESS = frozenset({"unlimited", "infinite", "infinity"})
_NOW = re.compile(r"now(?:\s*\+\s*(?P<count>[0-9]{1,9})\s*(?P<unit>[a-z]*))?")
_CLOCK = re.compile(
    r"(?P<h>[0-9]{1,2}):(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2}))?\s*(?P<half>am|pm)?"
    r"|(?P<only>[0-9]{1,2})\s*(?P<only_half>am|pm)"
)
_DAY = re.compile(
    r"(?P<y>[0-9]{4})-(?P<mo>[0-9]{1,2})-(?P<d>[0-9]{1,2})"
    r"|(?P<us_mo>[0-9]{1,2})/(?P<us_d>[0-9]{1,2})(?:/(?P<us_y>[0-9]{2}|[0-9]{4}))?"
    r"|(?P<c_mo>[0-9]{2})(?P<c_d>[0-9]{2})(?P<c_y>[0-9]{2})"
)
_ZONE = re.compile(r"(?=.{1,64}$)[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+){0,3}")
_HOURS = {"midnight": 0, "elevenses": 11, "noon": 12, "fika": 15, "teatime": 16}
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_UNIT_NAMES = {
    name: _UNITS[name[:1]]
    for name in (
        *("", "s", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes"),
        *("m", "h", "hour", "hours", "d", "day", "days", "w", "week", "weeks"),
    )
}


def parse_duration(text: str) -> int:
    """The seconds of a job's time limit; UNLIMITED_S for no limit, which sbatch also writes 0 or
    -1."""
    if text.strip().lower() in _ENDLESS or text.strip() == "-1":
        return UNLIMITED_S
    seconds = _seconds(text)
    if seconds is None:
        raise BadRequest(
            f'"{text}" is not a time limit',
            f"Accepted: {DURATION_FORMS}; a bare number is minutes.",
        )
    if seconds >= UNLIMITED_S:
        raise BadRequest(
            f'time limit "{text}" is too long',
            f"At most {format_duration(UNLIMITED_S - 1)}; UNLIMITED means no limit.",
        )
    return seconds or UNLIMITED_S


def parse_span(text: str, what: str, *, zero: bool = False, endless: bool = False) -> int:
    """The seconds of a time other than a job's limit. Here 0 means no time, and -1 is refused, so
    that a typo does not switch off a setting.

    what: the name of the setting, for the error. zero: 0 is allowed. endless: UNLIMITED is allowed
    and returns UNLIMITED_S.
    """
    if endless and text.strip().lower() in _ENDLESS:
        return UNLIMITED_S
    short = _SHORT.fullmatch(text.strip().lower())
    seconds = int(short[1]) * _UNITS[short[2]] if short else _seconds(text)
    if seconds is None or seconds >= UNLIMITED_S or not (seconds or zero):
        least = "0 seconds" if zero else "1 second"
        raise BadRequest(
            f'{what} cannot be "{text}"',
            f"Give a time of at least {least}{', or UNLIMITED' * endless}. "
            f"Times are {SPAN_FORMS}; a bare number is minutes.",
        )
    return seconds


def _seconds(text: str) -> int | None:
    """None: the text is not a duration."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return None
    part = {name: int(value) for name, value in found.groupdict().items() if value is not None}
    return (
        part.get("d", 0) * 86400
        + (part.get("dh", 0) + part.get("h", 0)) * 3600
        + (part.get("dm", 0) + part.get("hm", 0) + part.get("m", 0)) * 60
        + (part.get("ds", 0) + part.get("hs", 0) + part.get("s", 0))
    )


def format_duration(seconds: int) -> str:
    """The duration in Slurm's format: 5:00, 1:00:00, 1-00:00:00, UNLIMITED."""
    if seconds >= UNLIMITED_S:
        return "UNLIMITED"
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{left:02}"
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def parse_moment(text: str, now: datetime) -> datetime:
    """The time of --begin or --deadline, in UTC.

    A time of day that has passed means tomorrow, a month and day that have passed mean next year. A
    full date may be in the past.
    """
    words = " ".join(text.split())
    try:
        moment = _parse_moment(words, now)
        if moment is not None:
            # Fails on the first and the last day of the range, depending on the offset.
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise BadRequest(f'"{text[:200]}" is not a date or time', f"Accepted: {MOMENT_FORMS}.")


def _parse_moment(words: str, now: datetime) -> datetime | None:
    lower = words.lower()
    if relative := _NOW.fullmatch(lower):
        unit = _UNIT_NAMES.get(relative["unit"] or "")
        count = int(relative["count"] or 0)
        # Computed in UTC: an hour from now is one hour, also across a clock change.
        return None if unit is None else now.astimezone(UTC) + timedelta(seconds=count * unit)
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[t ].*(z|[+-][0-9]{2}:?[0-9]{2})", lower):
        return datetime.fromisoformat(words)

    if found := re.fullmatch(r"([0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9/]+)t(.+)", lower):
        day_text, clock_text = found[1], found[2]
    else:
        day_text, clock_text = _split_day(lower)
    day, has_year = _parse_day(day_text, now) if day_text else (None, True)
    at = _parse_clock(clock_text) if clock_text else time()
    if at is None or (day_text and day is None) or not (day_text or clock_text):
        return None
    zone = now.tzinfo
    if day is None:
        moment = datetime.combine(now.date(), at, zone)
        if moment < now:
            moment = datetime.combine(now.date() + timedelta(days=1), at, zone)
        return moment
    if not has_year and day < now.date():
        day = day.replace(year=day.year + 1)
    return now if day_text == "today" and not clock_text else datetime.combine(day, at, zone)


def _split_day(lower: str) -> tuple[str, str]:
    """The words of the day and of the time, which may be in either order."""
    words = lower.split(" ")
    for at in (0, len(words) - 1):
        if words[at] in ("today", "tomorrow") or _DAY.fullmatch(words[at]):
            return words[at], " ".join(words[:at] + words[at + 1 :])
    return "", lower


def _parse_day(text: str, now: datetime) -> tuple[date | None, bool]:
    """The date, and whether the text has its year."""
    if text in ("today", "tomorrow"):
        return now.date() + timedelta(days=text == "tomorrow"), True
    found = _DAY.fullmatch(text)
    if found is None:
        return None, True
    if found["y"]:
        return date(int(found["y"]), int(found["mo"]), int(found["d"])), True
    if found["c_y"]:
        return date(2000 + int(found["c_y"]), int(found["c_mo"]), int(found["c_d"])), True
    year = int(found["us_y"] or now.year)
    year += 2000 if year < 100 else 0
    return date(year, int(found["us_mo"]), int(found["us_d"])), found["us_y"] is not None


def _parse_clock(text: str) -> time | None:
    if text in _HOURS:
        return time(_HOURS[text])
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    hour = int(found["h"] or found["only"])
    if half := found["half"] or found["only_half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    return time(hour, int(found["m"] or 0), int(found["s"] or 0))


def zone_of(name: str | None) -> tzinfo:
    """The zone of a submitter's TZ, or else of this machine."""
    # Python imports a package for each part of an unknown name.
    if name and _ZONE.fullmatch(name := name.removeprefix(":")):
        try:
            return ZoneInfo(name)
        except (ValueError, TypeError, OSError, ZoneInfoNotFoundError):
            pass  # TypeError: with tzdata installed, for a part that is a module
    return _machine_zone()


@functools.cache
def _machine_zone() -> tzinfo:
    try:
        with Path("/etc/localtime").open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        return UTC
