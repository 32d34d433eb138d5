"""Text for people: tables, blocks of keys and values, times, sizes."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

UNLIMITED_S = 2_147_483_647
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that move a terminal's cursor or reorder text. Newlines and tabs are allowed."""
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Columns two spaces apart, the last one ragged. width: cut every line to it (a terminal)."""
    lines = [tuple(header), *rows] if header else list(rows)
    if not lines:
        return ""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    form = "  ".join([f"%-{w}s" for w in widths[:-1]] + ["%s"])
    texts = [(form % tuple(line)).rstrip() for line in lines]
    if width is not None:
        texts = [text if len(text) <= width else text[: width - 1] + "…" for text in texts]
    return "\n".join(texts) + "\n"


def terminal_width() -> int | None:
    """The terminal's width; None if standard output is not a terminal: nothing is cut."""
    if not sys.stdout.isatty():
        return None
    try:
        return int(os.environ.get("COLUMNS", "")) or None
    except ValueError:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None


def block(title: str, pairs: Iterable[tuple[str, str]]) -> str:
    """A title, then "key: value" lines, aligned. Pairs with an empty value are left out."""
    kept = [(key, value) for key, value in pairs if value]
    column = max((len(key) for key, _ in kept), default=0) + 2
    lines = [title] if title else []
    for key, value in kept:
        first, *more = value.split("\n")
        lines.append(f"  {key + ':':<{column}}{first}")
        lines += [" " * (column + 2) + line for line in more]
    return "\n".join(lines) + "\n"


def clean(text: str) -> str:
    """Text that users chose, without characters that could control a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "?" for c in text)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def duration(seconds: float | None) -> str:
    """As Slurm writes it: 0:02, 1:02:03, 1-02:03:04, UNLIMITED."""
    if seconds is None:
        return "-"
    if seconds >= UNLIMITED_S:
        return "UNLIMITED"
    minutes, second = divmod(max(int(seconds), 0), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}-{hour:02}:{minute:02}:{second:02}"
    if hours:
        return f"{hour}:{minute:02}:{second:02}"
    return f"{minute}:{second:02}"


def limit(seconds: int | None) -> str:
    """A time limit; None means no limit."""
    return "UNLIMITED" if seconds is None else duration(seconds)


def moment(text: str) -> datetime:
    """A time of the API (ISO 8601, Z) in the local zone; in UTC on the last days of the calendar,
    which may have no local time."""
    at = datetime.fromisoformat(text)
    try:
        return at.astimezone()
    except OverflowError:
        return at


def when(text: str | None) -> str:
    """A time in full: 2026-07-01 14:20:05; UTC is named when it is the local zone."""
    if not text:
        return ""
    local = moment(text)
    zone = "Z" if not local.utcoffset() else ""
    return f"{local:%Y-%m-%d %H:%M:%S}{zone}"


def replace_moments(text: str, show: Callable[[str], str]) -> str:
    """A text of the daemon with each of its times as show() returns it. Parts of the text may be
    chosen by a user, so a month 99 stays as it is."""

    def shown(found: re.Match[str]) -> str:
        try:
            return show(found[0])
        except ValueError:
            return found[0]

    return MOMENT.sub(shown, text)


def local_moments(text: str) -> str:
    """A text of the daemon with its times in the local zone, in full, as options accept them."""
    return replace_moments(text, lambda time: when(time).replace(" ", "T"))


def clock(text: str, now_s: float) -> str:
    """A time near now, short: 14:20 today, Jul 02 14:20 on another day."""
    local = moment(text)
    today = datetime.fromtimestamp(now_s, local.tzinfo).date()
    return f"{local:%H:%M}" if local.date() == today else f"{local:%b %d %H:%M}"


def seconds_between(start: str | None, end: str | float | None) -> float | None:
    """From start to end, which is a time of the API or seconds since the epoch."""
    if not start or end is None:
        return None
    stop = end if isinstance(end, float | int) else moment(end).timestamp()
    return stop - moment(start).timestamp()


def memory(mib: int | None) -> str:
    if mib is None:
        return "-"
    if mib and mib % 1024 == 0:
        return f"{mib // 1024} GiB"
    return f"{mib} MiB" if mib < 10_240 else f"{mib / 1024:.1f} GiB"


def put(text: str) -> None:
    """Write to standard output at once. Characters that control a terminal are escaped, since the
    server may belong to another user."""
    sys.stdout.write(harmless(text))


def put_json(value: Any) -> None:
    put(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def note(text: str) -> None:
    """Write a message to standard error, escaped as by put."""
    print(harmless(text), file=sys.stderr, flush=True)


def harmless(text: str) -> str:
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
