"""Limits on a command line: parse and print --limit user.gpus=16, and print QOS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.text import render
from odcctl.text.durations import for_daemon


def read_limits(texts: Sequence[str]) -> dict[str, dict[str, int | str | None]]:
    """The values of --limit, in the API's format. Raises ValueError."""
    limits: dict[str, dict[str, int | str | None]] = {}
    for text in ",".join(texts).split(","):
        if not text:
            continue
        name, equals, value = text.partition("=")
        per, dot, what = name.partition(".")
        if not (equals and dot and what and value):
            raise ValueError(f'--limit must be PER.WHAT=N, not "{text}"')
        if value == "none":
            amount: int | str | None = None
        elif what == "wall":
            amount = for_daemon(value)
        elif value.isascii() and value.isdecimal():
            amount = int(value)
        else:
            raise ValueError(f'--limit {name} takes a whole number or none, not "{value}"')
        limits.setdefault(per, {})[what] = amount
    return limits


def text_of(limits: Mapping[str, Mapping[str, int]]) -> str:
    """user.gpus=16 job.wall=1-00:00:00"""
    return " ".join(
        f"{per}.wall={render.duration(value)}" if what == "wall_s" else f"{per}.{what}={value}"
        for per, whats in limits.items()
        for what, value in whats.items()
    )


def qos_text(terms: Mapping[str, Any]) -> str:
    """The QOS of an account, or of a user in an account; the default has a star."""
    default, allowed = terms["default_qos"], terms["qos"]
    if allowed is None:
        return f"{default}*" if default else ""
    return ",".join(f"{name}*" if name == default else name for name in allowed)
