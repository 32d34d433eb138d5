"""Failures as lines on stderr: what happened (OD code), then a hint on a line of its own."""

from __future__ import annotations

import json
from typing import Any

from odcctl.exits import Failure, Refused
from odcctl.text.render import harmless, local_moments


def describe(failure: Failure, what: str | None = None) -> str:
    """The lines for stderr. what: the thing that did not happen, as in "job not submitted"."""
    return complaint(failure.message, getattr(failure, "code", None), failure.hint, what)


def complaint(
    message: str, code: str | None = None, hint: str | None = None, what: str | None = None
) -> str:
    lines = [f"odcctl: {what}: {message}" if what else f"odcctl: {message}"]
    if code:
        lines[0] += f" ({code})"
    lines += [f"  {line}" for line in (hint or "").splitlines()]
    return harmless(local_moments("\n".join(lines)))


def problem_of(failure: Failure) -> dict[str, Any]:
    """The problem object of a failure, as the API's refusals have it: for --json.

    status is null if no server answered with one.
    """
    if isinstance(failure, Refused):
        return dict(failure.problem)
    title = {"Failure": "Failed"}.get(type(failure).__name__, type(failure).__name__)
    return {
        "type": f"/docs#{title}", "title": title, "status": None, "detail": failure.message,
        "hint": failure.hint, "code": None,
    }  # fmt: skip


def problem_text(problem: dict[str, Any]) -> str:
    """One line of JSON."""
    return json.dumps(problem, ensure_ascii=False, separators=(",", ":"))
