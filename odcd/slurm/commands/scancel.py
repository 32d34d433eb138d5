"""scancel's arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass

from odcd.errors import BadRequest
from odcd.slurm.columns.values import STATES
from odcd.slurm.commands.getopt import Flag, parse
from odcd.slurm.commands.squeue import split
from odcd.slurm.lists import split_selectors
from odcd.slurm.signals import signal_number
from odcd.slurm.usage import Usage, fail

NAME = "scancel"
OPTIONS = (
    Flag("account", "account", "A", "required", help="jobs of this account"),
    Flag("batch", "batch", "b", help="signal only the batch script"),
    Flag("clusters", "clusters", "M", "required", ignored=True, help="this server is one cluster"),
    Flag("ctld", "ctld", ignored=True, help="has no effect"),
    Flag("cron", "cron", "c", help="also disable the entries of recurring jobs that started them"),
    Flag("full", "full", "f", help="signal the batch script and the steps"),
    Flag("help", "help", help="this text"),
    Flag("hurry", "hurry", "H", ignored=True, help="has no effect"),
    Flag("interactive", "interactive", "i", refused="odc does not ask for confirmation here"),
    Flag("me", "me", help="all jobs of the caller"),
    Flag("name", "name", "n", "required", help="jobs with this name"),
    Flag("name", "jobname", argument="required", help="the same"),
    Flag("nodelist", "nodelist", "w", "required", refused="name the jobs"),
    Flag("partition", "partition", "p", "required", help="jobs of this partition"),
    Flag("qos", "qos", "q", "required", help="jobs of this QOS"),
    Flag("quiet", "quiet", "Q", help="no messages about single jobs"),
    Flag("reservation", "reservation", "R", "required", refused="name the jobs"),
    Flag("sibling", "sibling", argument="required", refused="this server is one cluster"),
    Flag("signal", "signal", "s", "required", help="send this signal instead of ending the jobs"),
    Flag("state", "state", "t", "required", help="jobs in this state"),
    Flag("usage", "usage", help="a short text"),
    Flag("user", "user", "u", "required", help="jobs of this user"),
    Flag("verbose", "verbose", "v", help="name each job"),
    Flag("version", "version", "V", help="the version"),
    Flag("wckey", "wckey", argument="required", refused="odc has no workload keys"),
)
_ID = re.compile(r"[0-9]+(?:\+[0-9]+|_(?:[0-9]+|\*|\[[0-9,:%*-]+\]))?(?:\.(?:[0-9]+|batch))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scancel:
    """signal: None: end the jobs. cron: so that they do not recur. batch, full: which
    processes get it."""

    ids: list[str]
    filters: dict[str, list[str]]
    me: bool
    signal: int | None
    cron: bool
    batch: bool
    full: bool
    quiet: bool
    verbose: bool


def parse_scancel(argv: list[str]) -> Scancel:
    """Raises Usage."""
    found = parse(NAME, OPTIONS, argv)
    filters = {
        name: split(text)
        for name in ("account", "name", "partition", "qos", "user")
        if (text := found.last(name)) is not None
    }
    if (text := found.last("state")) is not None:
        filters["state"] = _states(text)
    ids = [one for word in found.operands for one in split_selectors(word)]
    for one in ids:
        if not _ID.fullmatch(one):
            raise fail(NAME, f"Invalid job id {one[:60]}")
    if not ids and not filters and not found.has("me"):
        raise fail(NAME, "No job identification provided")
    signal = found.last("signal")
    return Scancel(
        ids=ids,
        filters=filters,
        me=found.has("me"),
        signal=None if signal is None else _signal(signal),
        cron=found.has("cron"),
        batch=found.has("batch"),
        full=found.has("full"),
        quiet=found.has("quiet"),
        verbose=found.has("verbose"),
    )


def _states(text: str) -> list[str]:
    states: list[str] = []
    for word in split(text.upper()):
        state = STATES.get(word, word)
        if state not in ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING"):
            raise Usage(f"Invalid job state specified: {word}\n"
                        "Valid job states are PENDING, RUNNING, and SUSPENDED\n")  # fmt: skip
        states += ["RUNNING", "CONFIGURING"] if state == "RUNNING" else [state]
    return [state for state in states if state != "SUSPENDED"] or ["COMPLETING"]


def _signal(text: str) -> int:
    try:
        return signal_number(text)
    except BadRequest:
        raise Usage(f"Unknown job signal: {text[:60]}\n") from None
