"""squeue's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odcd.slurm.columns import squeue as columns
from odcd.slurm.columns.table import Format, letters, names
from odcd.slurm.columns.values import LIVE, NEVER_HERE, STATES
from odcd.slurm.commands.getopt import Flag, parse
from odcd.slurm.lists import split_selectors
from odcd.slurm.usage import fail

NAME = "squeue"
_NO_CLUSTERS = "this server is one cluster"
OPTIONS = (
    Flag("account", "account", "A", "required", help="jobs of these accounts"),
    Flag("all", "all", "a", ignored=True, help="odc hides no partition"),
    Flag("array", "array", "r", help="one line for each task of an array"),
    Flag("unique", "array-unique", ignored=True, help="odc shows tasks once"),
    Flag("clusters", "clusters", "M", "required", refused=_NO_CLUSTERS),
    Flag("federation", "federation", ignored=True, help="this server is one cluster"),
    Flag("long_names", "Format", "O", "required", help="columns by name"),
    Flag("format", "format", "o", "required", help="columns by letter"),
    Flag("noheader", "noheader", "h", help="no header"),
    Flag("help", "help", help="this text"),
    Flag("hide", "hide", ignored=True, help="odc hides no partition"),
    Flag("iterate", "iterate", "i", "required", refused="repeat the command with watch"),
    Flag("jobs", "jobs", "j", "optional", help="these jobs"),
    Flag("json", "json", argument="optional", help="all fields as JSON"),
    Flag("licenses", "licenses", "L", "required", refused="filter by --name or --partition"),
    Flag("local", "local", ignored=True, help="this server is one cluster"),
    Flag("long", "long", "l", help="more columns"),
    Flag("me", "me", help="jobs of the caller"),
    Flag("name", "name", "n", "required", help="jobs with these names"),
    Flag("noconvert", "noconvert", ignored=True, help="units are not converted"),
    Flag("nodelist", "nodelist", "w", "required", help="jobs on these nodes"),
    Flag("notme", "notme", refused="use --user"),
    Flag("only_state", "only-job-state", ignored=True, help="has no effect"),
    Flag("partition", "partition", "p", "required", help="jobs of these partitions"),
    Flag("priority", "priority", "P", ignored=True, help="a job has one line anyway"),
    Flag("qos", "qos", "q", "required", help="jobs of these QOS"),
    Flag("reservation", "reservation", "R", "required", help="jobs of these bookings"),
    Flag("sibling", "sibling", ignored=True, help="this server is one cluster"),
    Flag("sort", "sort", "S", "required", help="order: letters of -o, each after + or -"),
    Flag("start", "start", help="pending jobs by expected start"),
    Flag("states", "states", "t", "required", help="jobs in these states; all"),
    Flag("steps", "steps", "s", "optional", help="steps instead of jobs"),
    Flag("usage", "usage", help="a short text"),
    Flag("user", "user", "u", "required", help="jobs of these users"),
    Flag("verbose", "verbose", "v", ignored=True, help="has no effect"),
    Flag("version", "version", "V", help="the version"),
    Flag("yaml", "yaml", argument="optional", refused="use --json"),
)
VALID_STATES = (
    "PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL,PREEMPTED,BOOT_FAIL,"
    "DEADLINE,OUT_OF_MEMORY,COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,REQUEUED,REQUEUE_FED,"
    "REQUEUE_HOLD,REVOKED,SIGNALING,SPECIAL_EXIT,STAGE_OUT,STOPPED"
)
_START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %R"


@dataclass(frozen=True, slots=True, kw_only=True)
class Squeue:
    """filters: those that the store takes. states: None: live ones. ids: as given."""

    format: Format
    complaints: str
    filters: dict[str, list[str]]
    ids: list[str]
    states: frozenset[str] | None
    bookings: list[str]
    nodes: list[str]
    sort: str
    me: bool
    one_by_one: bool
    header: bool
    json: bool
    steps: bool


def parse_squeue(argv: list[str], variables: Mapping[str, str]) -> Squeue:
    """Raises Usage."""
    found = parse(NAME, OPTIONS, argv)
    # -j and -s take an optional argument; their list may also be the next word.
    listed = found.operands if found.has("jobs") or found.has("steps") else []
    if found.operands and not listed:
        raise fail(NAME, f"Unrecognized option: {found.operands[0]}")

    def value(key: str, variable: str = "") -> str | None:
        given = found.last(key)
        return given if given is not None else variables.get(variable) or None

    filters: dict[str, list[str]] = {}
    for key, variable in (
        ("account", "SQUEUE_ACCOUNT"), ("name", "SQUEUE_NAMES"),
        ("partition", "SQUEUE_PARTITION"), ("qos", "SQUEUE_QOS"), ("user", "SQUEUE_USERS"),
    ):  # fmt: skip
        text = value(key, variable)
        if text is not None:
            filters[key] = split(text)
    cells, complaints = _format(found.last("format"), found.last("long_names"), variables,
                                long=found.has("long"), start=found.has("start"))  # fmt: skip
    states = parse_states(value("states", "SQUEUE_STATES"))
    return Squeue(
        format=cells,
        complaints=complaints,
        filters=filters,
        ids=split_selectors(",".join([*found.every("jobs"), *listed])),
        states=frozenset({"PENDING"}) if found.has("start") else states,
        bookings=split(value("reservation") or ""),
        nodes=split(value("nodelist") or ""),
        sort=value("sort", "SQUEUE_SORT") or "",
        me=found.has("me"),
        one_by_one=found.has("array") or bool(variables.get("SQUEUE_ARRAY")),
        header=not found.has("noheader"),
        json=found.has("json"),
        steps=found.has("steps"),
    )


def _format(
    format_text: str | None, long_text: str | None, variables: Mapping[str, str], *, long: bool,
    start: bool,
) -> tuple[Format, str]:  # fmt: skip
    if format_text is not None:
        return letters(NAME, "job", format_text, columns.LETTERS, columns.ALL)
    if long_text is not None:
        return names(NAME, "job", long_text, columns.NAMES), ""
    if long or start:
        text = columns.LONG if long else _START
        return letters(NAME, "job", text, columns.LETTERS)
    if variables.get("SQUEUE_FORMAT"):
        return letters(NAME, "job", variables["SQUEUE_FORMAT"], columns.LETTERS)
    if variables.get("SQUEUE_FORMAT2"):
        return names(NAME, "job", variables["SQUEUE_FORMAT2"], columns.NAMES), ""
    return letters(NAME, "job", columns.DEFAULT, columns.LETTERS)


def split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def parse_states(text: str | None) -> frozenset[str] | None:
    """None: the states of live jobs. "all" is every state. Raises Usage."""
    if text is None:
        return None
    found: set[str] = set()
    for word in split(text.upper()):
        if word == "ALL":
            return frozenset(STATES.values())
        state = STATES.get(word, word)
        if state in STATES.values():
            found.add(state)
            if state == "RUNNING":
                found.add("CONFIGURING")
        elif word not in NEVER_HERE:
            valid = f"{NAME}: error: Valid job states include: {VALID_STATES}\n"
            raise fail(NAME, f"Invalid job state specified: {word}\n{valid}")
    return frozenset(found) if found else frozenset({"SUSPENDED"})


def is_live_only(states: frozenset[str] | None) -> bool:
    return states is None or states <= frozenset(LIVE)
