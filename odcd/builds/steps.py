"""Extracts the current step, and the reason of a failure, from the log of a build."""

from __future__ import annotations

import re

MAX_LOG_CHARS = 64 * 1024
MAX_STEP_CHARS = 120
ERROR_LINES = 20
MAX_ERROR_CHARS = 2000
_STEP = re.compile(r"^#\d+ \[(?:(?P<stage>[^\]]+) )? *(?P<at>\d+)/(?P<of>\d+)\] (?P<what>.+)$")
_LATE = re.compile(r"^#\d+ (exporting to image|exporting layers|pushing .+)$")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[\]()].?")


def clean(log: str) -> str:
    """Make the log safe for a terminal and the database, and keep only its end."""
    plain = _ESCAPES.sub("", log)[-MAX_LOG_CHARS:]
    return "".join(c for c in plain if c.isprintable() or c in "\n\t")


def step_of(log: str) -> str | None:
    """The current step, such as "step 3/5: RUN make"; None if the log has none."""
    for line in reversed(log.splitlines()):
        if found := _STEP.match(line):
            stage = f" of {found['stage']}" if found["stage"] else ""
            step = f"step {found['at']}/{found['of']}{stage}: {found['what']}"
        elif _LATE.match(line):
            step = "pushing it to its registry"
        else:
            continue
        return step if len(step) <= MAX_STEP_CHARS else f"{step[: MAX_STEP_CHARS - 1]}…"
    return None


def error_of(log: str) -> str:
    """The last lines of the log."""
    lines = [line.rstrip() for line in clean(log).splitlines() if line.strip()]
    return "\n".join(lines[-ERROR_LINES:])[-MAX_ERROR_CHARS:].strip()
