"""sacct's arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from odcd.errors import BadRequest
from odcd.slurm.columns import sacct as columns
from odcd.slurm.columns.table import Format, sacct_names
from odcd.slurm.commands.getopt import Arguments, Flag, parse
from odcd.slurm.commands.squeue import parse_states, split
from odcd.slurm.lists import split_selectors
from odcd.slurm.times import parse_moment
from odcd.slurm.usage import Usage, fail

NAME = "sacct"
MAX_DELIMITER = 100
OPTIONS = (
    Flag("accounts", "accounts", "A", "required", help="jobs of these accounts"),
    Flag("allusers", "allusers", "a", help="jobs of all users"),
    Flag("array", "array", ignored=True, help="tasks are rows anyway"),
    Flag("associations", "associations", "x", "required", refused="use --accounts"),
    Flag("brief", "brief", "b", help="id, state and exit code"),
    Flag("clusters", "clusters", "M", "required", ignored=True, help="this server is one cluster"),
    Flag("allclusters", "allclusters", "L", ignored=True, help="this server is one cluster"),
    Flag("completion", "completion", "c", refused="odc has no completion file"),
    Flag("constraints", "constraints", "C", "required", refused="use odcctl history"),
    Flag("delimiter", "delimiter", argument="required", help="separator of --parsable"),
    Flag("duplicates", "duplicates", "D", ignored=True, help="a requeued job has one row"),
    Flag("endtime", "endtime", "E", "required", help="jobs that began before"),
    Flag("env", "env-vars", refused="odc does not show a job's environment"),
    Flag("federation", "federation", ignored=True, help="this server is one cluster"),
    Flag("file", "file", "f", "required", refused="odc has no completion file"),
    Flag("flags", "flags", "F", "required", refused="use odcctl history"),
    Flag("format", "format", "o", "required", help="columns"),
    Flag("gid", "gid", "g", "required", refused="use --user"),
    Flag("group", "group", argument="required", refused="use --user"),
    Flag("help", "help", "h", help="this text"),
    Flag("helpformat", "helpformat", "e", help="the names of all columns"),
    Flag("jobs", "jobs", "j", "required", help="these jobs"),
    Flag("json", "json", argument="optional", help="as JSON"),
    Flag("local", "local", ignored=True, help="this server is one cluster"),
    Flag("long", "long", "l", help="many columns"),
    Flag("name", "name", argument="required", help="jobs with these names"),
    Flag("ncpus", "ncpus", "i", "required", refused="use odcctl history"),
    Flag("nnodes", "nnodes", "I", "required", refused="use odcctl history"),
    Flag("noconvert", "noconvert", ignored=True, help="units are not converted"),
    Flag("nodelist", "nodelist", "N", "required", help="jobs that ran on these nodes"),
    Flag("noheader", "noheader", "n", help="no header"),
    Flag("parsable", "parsable", "p", help="separated by |, also at the end"),
    Flag("parsable2", "parsable2", "P", help="separated by |"),
    Flag("partition", "partition", "r", "required", help="jobs of these partitions"),
    Flag("qos", "qos", "q", "required", help="jobs of these QOS"),
    Flag("reason", "reason", "R", "required", refused="use odcctl history"),
    Flag("starttime", "starttime", "S", "required", help="jobs that ended since"),
    Flag("state", "state", "s", "required", help="jobs in these states"),
    Flag("timelimit-max", "timelimit-max", "K", "required", refused="use odcctl history"),
    Flag("timelimit-min", "timelimit-min", "k", "required", refused="use odcctl history"),
    Flag("truncate", "truncate", "T", help="times within the window"),
    Flag("uid", "uid", argument="required", help="jobs of this user id"),
    Flag("units", "units", argument="required", ignored=True, help="has no effect"),
    Flag("usage", "usage", help="a short text"),
    Flag("user", "user", "u", "required", help="jobs of these users"),
    Flag("use_local", "use-local-uid", ignored=True, help="has no effect"),
    Flag("verbose", "verbose", "v", ignored=True, help="has no effect"),
    Flag("version", "version", "V", help="the version"),
    Flag("whole", "whole-hetjob", argument="optional", ignored=True, help="has no effect"),
    Flag("wckeys", "wckeys", "W", "required", refused="odc has no workload keys"),
    Flag("allocations", "allocations", "X", help="no rows of steps"),
    Flag("yaml", "yaml", argument="optional", refused="use --json"),
)
_AGO = re.compile(r"now(?:-([0-9]{1,9})([a-z]*))", re.IGNORECASE)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_EPOCH = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})-([0-9:]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sacct:
    """own: only the caller's jobs. since, until: None: any time."""

    format: Format
    filters: dict[str, list[str]]
    ids: list[str]
    states: frozenset[str] | None
    since: datetime | None
    until: datetime | None
    nodes: list[str]
    own: bool
    header: bool
    steps: bool
    json: bool
    separator: str | None
    trailing: bool


def parse_sacct(argv: list[str], variables: Mapping[str, str], now: datetime) -> Sacct:
    """Raises Usage."""
    found = parse(NAME, OPTIONS, argv)
    if found.has("helpformat"):
        raise Usage(out=columns.help_format(), code=0)
    if found.operands:
        raise fail(NAME, f"Unknown arguments:\n{NAME}: error:  {' '.join(found.operands)[:200]}")
    filters: dict[str, list[str]] = {}
    for key, name in (
        ("accounts", "account"), ("name", "name"), ("partition", "partition"), ("qos", "qos"),
        ("user", "user"), ("uid", "user"),
    ):  # fmt: skip
        if texts := found.every(key):
            filters[name] = split(",".join(texts))
    ids = [one for text in found.every("jobs") for one in split_selectors(text)]
    since = _moment(found.last("starttime"), now)
    if since is None and not ids:
        since = datetime.combine(now.date(), time(), now.tzinfo)
    parsable = found.has("parsable") or found.has("parsable2")
    if len(found.last("delimiter") or "") > MAX_DELIMITER:
        raise fail(NAME, f"the delimiter has more than {MAX_DELIMITER} characters")
    return Sacct(
        format=_format(found, variables, parsable=parsable),
        filters=filters,
        ids=ids,
        states=parse_states(found.last("state")),
        since=since,
        until=_moment(found.last("endtime"), now),
        nodes=split(found.last("nodelist") or ""),
        own=not (found.has("allusers") or "user" in filters or ids),
        header=not found.has("noheader"),
        steps=not found.has("allocations"),
        json=found.has("json"),
        separator=(found.last("delimiter") or "|") if parsable else None,
        trailing=found.has("parsable"),
    )


def _format(found: Arguments, variables: Mapping[str, str], *, parsable: bool) -> Format:
    texts = found.every("format")
    if not texts:
        texts = [
            columns.BRIEF if found.has("brief")
            else columns.LONG if found.has("long")
            else variables.get("SACCT_FORMAT") or columns.DEFAULT
        ]  # fmt: skip
    return sacct_names(NAME, texts, columns.NAMES, parsable=parsable)


def _moment(text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    if ago := _AGO.fullmatch(text.strip()):
        unit = _UNITS.get((ago[2] or "s")[:1].lower())
        if unit is not None:
            try:
                return now - timedelta(seconds=int(ago[1]) * unit)
            except OverflowError:
                raise fail(NAME, f"Invalid time specification (pos=0): {text[:60]}") from None
    if (joined := _EPOCH.fullmatch(text.strip())) is not None:
        text = f"{joined[1]}T{joined[2]}"
    if re.fullmatch(r".*T[0-9]{2}", text):
        text = f"{text}:00"
    try:
        return parse_moment(text, now)
    except BadRequest:
        raise fail(NAME, f"Invalid time specification (pos=0): {text[:60]}") from None
