"""Failures as lines on stderr: what happened (OD code), then a hint on a line of its own."""

from __future__ import annotations

from odcctl.exits import Failure
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
