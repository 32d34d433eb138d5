"""An option of sbatch as data, and one that a user gave. See odcd.slurm.sbatch_options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Argument = Literal["none", "optional", "required"]
Convert = Callable[[str, datetime], object]
"""Converts the option's text, and now in the submitter's zone, to the value of its setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option. setting: the field of settings.Settings that it sets; None: odc refuses it,
    `help` says why.

    convert: without an argument (or if an optional argument is missing) the value is `bare`. group:
    options that override one another; a stronger source clears those of a weaker one. alone: within
    one source, no other option of the group is allowed with it.
    """

    long: str
    help: str
    short: str | None = None
    argument: Argument = "required"
    value: str = ""
    level: str = "P0"
    setting: str | None = None
    convert: Convert | None = None
    bare: object = True
    variables: tuple[str, ...] = ()
    group: str | None = None
    alone: bool = False
    command_line_only: bool = False

    @property
    def supported(self) -> bool:
        return self.setting is not None

    @property
    def flag(self) -> str:
        return f"--{self.long}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An option as the user gave it. text: None if it had no argument. where: for messages."""

    option: Option
    text: str | None
    where: str


def refused(
    long: str,
    reason: str,
    *,
    short: str | None = None,
    argument: Argument = "required",
    level: str = "P2",
    variables: tuple[str, ...] = (),
) -> Option:
    return Option(
        long=long, help=reason, short=short, argument=argument, level=level, variables=variables
    )
