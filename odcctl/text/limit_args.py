"""Limits on a command line: --limit user.gpus=16, read and shown."""

from __future__ import annotations

from collections.abc import Mapping

from odcctl.options import Arguments, Option
from odcctl.text import render

LIMIT = Option(
    "limit", None, "PER.WHAT=N",
    "at most; PER: group, user, account, job; WHAT: jobs, submitted, gpus, gpu_minutes, cpus, "
    "nodes, wall (a time); N: none for no limit; may be repeated",
)  # fmt: skip
ON_OFF = {"on": True, "off": False}


def limits(arguments: Arguments) -> dict[str, dict[str, int | str | None]]:
    """--limit, as the API takes it."""
    told: dict[str, dict[str, int | str | None]] = {}
    for text in ",".join(arguments.given.get("limit", [])).split(","):
        if not text:
            continue
        name, equals, value = text.partition("=")
        per, dot, what = name.partition(".")
        if not (equals and dot and what and value):
            arguments.command.wrong(f'--limit takes PER.WHAT=N, not "{text}"')
        if value == "none":
            amount: int | str | None = None
        elif what == "wall":
            amount = value
        elif value.isascii() and value.isdecimal():
            amount = int(value)
        else:
            arguments.command.wrong(f'--limit {name} takes a whole number or none, not "{value}"')
        told.setdefault(per, {})[what] = amount
    return told


def text_of(limits: Mapping[str, Mapping[str, int]]) -> str:
    """user.gpus=16 job.wall=1-00:00:00"""
    return " ".join(
        f"{per}.wall={render.duration(value)}" if what == "wall_s" else f"{per}.{what}={value}"
        for per, whats in limits.items()
        for what, value in whats.items()
    )


def on_off(arguments: Arguments, option: str) -> bool:
    value = arguments.value(option)
    if value not in ON_OFF:
        arguments.command.wrong(f'--{option} is on or off, not "{value}"')
    return ON_OFF[value]


def names(arguments: Arguments, option: str) -> list[str] | None:
    """Names parted by commas; "" is none at all, "none" is null."""
    text = arguments.joined(option) or ""
    return None if text == "none" else [name for name in text.split(",") if name]


def text_or_none(arguments: Arguments, option: str) -> str | None:
    return arguments.value(option) or None
