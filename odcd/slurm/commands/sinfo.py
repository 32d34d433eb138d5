"""sinfo's arguments, rows and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from odcd.slurm.columns.table import Column, Format, letters, names
from odcd.slurm.commands.getopt import Flag, parse
from odcd.slurm.commands.squeue import split
from odcd.slurm.hostlists import compress_hosts
from odcd.slurm.times import format_duration
from odcd.slurm.usage import fail

NAME = "sinfo"
DEFAULT = "%#P %.5a %.10l %.6D %.6t %N"
DEFAULT_LONG = "%#P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
BY_NODE = "%#N %.6D %#P %6t"
BY_NODE_LONG = "%#N %.6D %#P %.11T %.4c %.8z %.6m %.8d %.6w %.8f %20E"
SUMMARY = "%#P %.5a %.10l %.16F %N"
REASONS = "%20E %9u %19H %N"
OPTIONS = (
    Flag("all", "all", "a", ignored=True, help="odc hides no partition"),
    Flag("clusters", "clusters", "M", "required", refused="this server is one cluster"),
    Flag("dead", "dead", "d", help="only nodes that are down"),
    Flag("exact", "exact", "e", ignored=True, help="nodes that differ have lines of their own"),
    Flag("federation", "federation", ignored=True, help="this server is one cluster"),
    Flag("long_names", "Format", "O", "required", help="columns by name"),
    Flag("format", "format", "o", "required", help="columns by letter"),
    Flag("help", "help", help="this text"),
    Flag("hide", "hide", ignored=True, help="odc hides no partition"),
    Flag("iterate", "iterate", "i", "required", refused="repeat the command with watch"),
    Flag("json", "json", argument="optional", refused="use odcctl nodes --json"),
    Flag("reasons", "list-reasons", "R", help="why nodes are down or drained"),
    Flag("local", "local", ignored=True, help="this server is one cluster"),
    Flag("long", "long", "l", help="more columns"),
    Flag("nodes", "nodes", "n", "required", help="only these nodes"),
    Flag("noconvert", "noconvert", ignored=True, help="units are not converted"),
    Flag("by_node", "Node", "N", help="one line for each node"),
    Flag("noheader", "noheader", "h", help="no header"),
    Flag("partition", "partition", "p", "required", help="only these partitions"),
    Flag("reservation", "reservation", "T", refused="use scontrol show reservation"),
    Flag("responding", "responding", "r", help="only nodes that are not down"),
    Flag("sort", "sort", "S", "required", refused="the lines have one order"),
    Flag("states", "states", "t", "required", help="only nodes in these states"),
    Flag("summarize", "summarize", "s", help="one line for each partition"),
    Flag("usage", "usage", help="a short text"),
    Flag("verbose", "verbose", "v", ignored=True, help="has no effect"),
    Flag("version", "version", "V", help="the version"),
    Flag("yaml", "yaml", argument="optional", refused="use odcctl nodes --json"),
)
STATES = {
    "IDLE": "idle", "MIXED": "mixed", "ALLOCATED": "allocated", "DRAIN": "drained",
    "DRAINING": "draining", "DOWN": "down",
}  # fmt: skip
SHORT = {
    "IDLE": "idle", "MIXED": "mix", "ALLOCATED": "alloc", "DRAIN": "drain", "DRAINING": "drng",
    "DOWN": "down",
}  # fmt: skip
_WORDS = {
    "idle": {"IDLE"}, "mix": {"MIXED"}, "mixed": {"MIXED"}, "alloc": {"ALLOCATED", "MIXED"},
    "allocated": {"ALLOCATED", "MIXED"}, "drain": {"DRAIN", "DRAINING"},
    "drained": {"DRAIN"}, "draining": {"DRAINING"}, "drng": {"DRAINING"}, "down": {"DOWN"},
    "all": set(STATES), "unk": set[str](), "fail": set[str](), "maint": set[str](),
    "resv": set[str](), "comp": set[str](), "planned": set[str](),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Nodes of one partition that a line shows together."""

    partition: Mapping[str, Any]
    nodes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def _range(row: Row, key: str) -> str:
    values = sorted({node[key] for node in row.nodes})
    return "0" if not values else str(values[0]) + ("+" if len(values) > 1 else "")


def gres(node: Mapping[str, Any]) -> str:
    return f"gpu:{node['gpu_type']}:{node['gpus']}" if node["gpus"] else "(null)"


def _first(row: Row, key: str) -> str:
    return str(row.nodes[0][key] or "") if row.nodes else ""


def _states(row: Row, words: Mapping[str, str]) -> str:
    return words[row.nodes[0]["state"]] if row.nodes else "n/a"


def _counts(row: Row) -> tuple[int, int, int, int]:
    """Nodes: allocated, idle, other, total."""
    idle = sum(node["state"] == "IDLE" for node in row.nodes)
    used = sum(node["state"] in ("MIXED", "ALLOCATED") for node in row.nodes)
    return used, idle, len(row.nodes) - idle - used, len(row.nodes)


def _cpu_counts(row: Row) -> str:
    up = [node for node in row.nodes if node["state"] in ("IDLE", "MIXED", "ALLOCATED")]
    total, used = sum(n["cpus"] for n in row.nodes), sum(n["cpus_used"] for n in up)
    return (
        f"{used}/{sum(n['cpus'] for n in up) - used}/{total - sum(n['cpus'] for n in up)}/{total}"
    )


def _features(row: Row) -> str:
    return (",".join(row.nodes[0]["features"]) if row.nodes else "") or "(null)"


def _gres_used(row: Row) -> str:
    node = row.nodes[0] if row.nodes else {"gpus": 0}
    return f"gpu:{node['gpu_type']}:{node['gpus_used']}" if node["gpus"] else "gpu:0"


def _free_memory(row: Row) -> str:
    return str(min((n["mem_mib"] - n["mem_used_mib"] for n in row.nodes), default=0))


def _reason(row: Row) -> str:
    return _first(row, "reason") or "none"


def _limit(seconds: int | None) -> str:
    return "infinite" if seconds is None else format_duration(seconds)


def _name(row: Row) -> str:
    return row.partition["name"] + ("*" if row.partition["is_default"] else "")


_PARTITION = Column("PARTITION", _name)
_NODES = Column("NODELIST", lambda r: compress_hosts(n["name"] for n in r.nodes))
_COUNT = Column("NODES", lambda r: str(len(r.nodes)))
_LIMIT = Column("TIMELIMIT", lambda r: _limit(r.partition["max_time_limit_s"]))
_AVAIL = Column("AVAIL", lambda r: r.partition["state"].lower())
_CPUS = Column("CPUS", lambda r: _range(r, "cpus"))
_MEMORY = Column("MEMORY", lambda r: _range(r, "mem_mib"))
_GRES = Column("GRES", lambda r: gres(r.nodes[0]) if r.nodes else "(null)")
_STATE = Column("STATE", lambda r: _states(r, STATES))
_CODE = Column("STATE", lambda r: _states(r, SHORT))
_FEATURES = Column("AVAIL_FEATURES", lambda r: _features(r))
_REASON = Column("REASON", _reason)
_USER = Column("USER", lambda r: _first(r, "reason_by") or "Unknown")
_TIME = Column("TIMESTAMP", lambda r: _first(r, "state_at") or "Unknown")
_TIER = Column("PRIO_TIER", lambda r: str(r.partition["tier"]))
_SUMMARY = Column("NODES(A/I/O/T)", lambda r: "/".join(map(str, _counts(r))))
_AI = Column("NODES(A/I)", lambda r: "/".join(map(str, _counts(r)[:2])))
_CPU_STATES = Column("CPUS(A/I/O/T)", _cpu_counts)
LETTERS: dict[str, Column] = {
    "P": _PARTITION, "R": Column("PARTITION", lambda r: r.partition["name"]), "N": _NODES,
    "n": Column("HOSTNAMES", _NODES.value), "D": _COUNT, "l": _LIMIT, "a": _AVAIL, "c": _CPUS,
    "m": _MEMORY, "G": _GRES, "T": _STATE, "t": _CODE, "f": _FEATURES,
    "b": Column("ACTIVE_FEATURES", _FEATURES.value), "E": _REASON, "u": _USER, "H": _TIME,
    "p": _TIER, "F": _SUMMARY, "A": _AI, "C": _CPU_STATES,
    "L": Column("DEFAULTTIME", lambda r: _limit(r.partition["default_time_limit_s"])),
    "s": Column("JOB_SIZE", lambda r: f"1-{r.partition['max_nodes'] or 'infinite'}"),
    "r": Column("ROOT", lambda _r: "no"), "h": Column("OVERSUBS", lambda _r: "NO"),
    "g": Column("GROUPS", lambda _r: "all"),
    "z": Column("S:C:T", lambda r: f"1:{_range(r, 'cpus')}:1"),
    "d": Column("TMP_DISK", lambda _r: "0"), "w": Column("WEIGHT", lambda _r: "1"),
    "e": Column("FREE_MEM", _free_memory), "O": Column("CPU_LOAD", lambda _: "N/A"),
    "X": Column("SOCKETS", lambda _: "1"), "Y": Column("CORES", _CPUS.value),
    "Z": Column("THREADS", lambda _: "1"), "B": Column("MAX_CPUS_PER_NODE", lambda _: "UNLIMITED"),
    "S": Column("ALLOCNODES", lambda _: "all"), "M": Column("PREEMPT_MODE", lambda _: "REQUEUE"),
    "o": Column("NODE_ADDR", _NODES.value), "v": Column("VERSION", lambda _: "24.11.4"),
    "I": Column("PRIO_JOB_FACTOR", lambda _: "1"), "i": Column("RESERVATION", lambda _: ""),
}  # fmt: skip
NAMES: dict[str, Column] = {
    "partition": _PARTITION, "partitionname": LETTERS["R"], "nodelist": _NODES,
    "nodehost": LETTERS["n"], "nodes": _COUNT, "time": _LIMIT, "available": _AVAIL, "cpus": _CPUS,
    "memory": _MEMORY, "gres": _GRES, "state": _STATE, "statelong": _STATE, "statecompact": _CODE,
    "features": _FEATURES, "features_act": LETTERS["b"], "reason": _REASON, "user": _USER,
    "userlong": _USER, "timestamp": _TIME, "prioritytier": _TIER, "nodeaiot": _SUMMARY,
    "nodeai": _AI, "cpusstate": _CPU_STATES, "defaulttime": LETTERS["L"], "size": LETTERS["s"],
    "freemem": LETTERS["e"], "allocmem": Column("ALLOCMEM", lambda r: _range(r, "mem_used_mib")),
    "gresused": Column("GRES_USED", _gres_used), "cpusload": LETTERS["O"],
    "sockets": LETTERS["X"], "cores": LETTERS["Y"], "threads": LETTERS["Z"],
    "socketcorethread": LETTERS["z"], "maxcpuspernode": LETTERS["B"], "disk": LETTERS["d"],
    "weight": LETTERS["w"], "oversubscribe": LETTERS["h"], "groups": LETTERS["g"],
    "root": LETTERS["r"], "allocnodes": LETTERS["S"], "preemptmode": LETTERS["M"],
    "nodeaddr": LETTERS["o"], "version": LETTERS["v"],
    "cluster": Column("CLUSTER", lambda _: "odc"),
    "priorityjobfactor": LETTERS["I"], "comment": Column("COMMENT", lambda _: "(null)"),
    "extra": Column("EXTRA", lambda _: "(null)"), "port": Column("PORT", lambda _: "0"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sinfo:
    format: Format
    complaints: str
    partitions: list[str]
    nodes: list[str]
    states: frozenset[str] | None
    by_node: bool
    summarize: bool
    reasons: bool
    header: bool


def parse_sinfo(argv: list[str], variables: Mapping[str, str]) -> Sinfo:
    """Raises Usage."""
    found = parse(NAME, OPTIONS, argv)
    if found.operands:
        raise fail(NAME, f"Unrecognized option: {found.operands[0]}")
    by_node, long = found.has("by_node"), found.has("long")
    text = found.last("format")
    named = found.last("long_names")
    states: set[str] | None = None
    if (wanted := found.last("states")) is not None:
        states = set[str]()
        for word in split(wanted.lower()):
            if word.rstrip("*") not in _WORDS:
                raise fail(NAME, f"Bad state string: {word}")
            states |= _WORDS[word.rstrip("*")]
    if found.has("dead"):
        states = {"DOWN"}
    if found.has("responding"):
        states = set(STATES) - {"DOWN"}
    complaints = ""
    if text is None and named is not None:
        cells = names(NAME, "node", named, NAMES)
    else:
        if text is None:
            text = (
                REASONS if found.has("reasons") else SUMMARY if found.has("summarize")
                else (BY_NODE_LONG if long else BY_NODE) if by_node
                else DEFAULT_LONG if long else variables.get("SINFO_FORMAT") or DEFAULT
            )  # fmt: skip
        cells, complaints = letters(NAME, "node", text, LETTERS)
    return Sinfo(
        format=cells,
        complaints=complaints,
        partitions=split(found.last("partition") or ""),
        nodes=split(found.last("nodes") or ""),
        states=frozenset(states) if states is not None else None,
        by_node=by_node,
        summarize=found.has("summarize"),
        reasons=found.has("reasons"),
        header=not found.has("noheader"),
    )


def group(rows: Iterable[Row], wanted: Sinfo) -> list[Row]:
    """Nodes of one partition that no column distinguishes share a line."""
    columns = dict.fromkeys(
        cell.column for cell in wanted.format
        if cell.column is not None and cell.column not in (_NODES, _COUNT, _SUMMARY, _AI,
                                                          _CPU_STATES, _CPUS, _MEMORY)
    )  # fmt: skip
    found: list[Row] = []
    for row in rows:
        merged: dict[tuple[str, ...], Row] = {}
        for node in row.nodes:
            one = Row(partition=row.partition, nodes=[node])
            key = (node["name"],) if wanted.by_node else () if wanted.summarize else tuple(
                column.value(one) for column in columns
            )  # fmt: skip
            merged.setdefault(key, Row(partition=row.partition)).nodes.append(node)
        found += merged.values() if row.nodes else [row]
    return found
