"""Declared nodes whose names are those of other machines, where the local executor runs nothing."""

from __future__ import annotations

import errno
import queue
import secrets
import socket
import threading
from collections.abc import Callable, Iterable, Sequence

from odcd.errors import NeverFits
from odcd.records.job import Identity, JobSpec

TIMEOUT_S = 5.0
"""For all names together: a name server that does not answer must not stop the start."""
THREADS = 8
MOST = 256
"""Names that are looked up."""
SHOWN = 8

Resolve = Callable[[str], frozenset[str]]


def resolve(name: str) -> frozenset[str]:
    """The addresses of a host; none: the name is unknown."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return frozenset()
    return frozenset(str(address[4][0]) for address in found)


def is_here(address: str) -> bool:
    """Whether it is an address of this machine: only those can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True


def find_other_hosts(
    names: Iterable[str],
    *,
    resolve: Resolve = resolve,
    is_here: Callable[[str], bool] = is_here,
    timeout_s: float = TIMEOUT_S,
) -> tuple[str, ...]:
    """The names that belong to other machines, in their order. A name that no host has is only for
    accounting."""
    asked = list(names)[:MOST]
    if not asked:
        return ()
    # A domain in which every name has an address says nothing.
    anything = f"odc-{secrets.token_hex(8)}"
    known = _look_up([anything, *asked], resolve, timeout_s)
    wildcard = known.get(anything, frozenset())
    return tuple(
        name
        for name in asked
        if (found := known.get(name)) and found != wildcard and not any(map(is_here, found))
    )


def _look_up(names: Sequence[str], resolve: Resolve, timeout_s: float) -> dict[str, frozenset[str]]:
    """Those that were answered in time. The threads are daemons: one that waits stops nothing."""
    left: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        left.put(name)
    answers: queue.SimpleQueue[tuple[str, frozenset[str]]] = queue.SimpleQueue()

    def work() -> None:
        while True:
            try:
                name = left.get_nowait()
            except queue.Empty:
                return
            answers.put((name, resolve(name)))

    for _ in range(min(THREADS, len(names))):
        threading.Thread(target=work, daemon=True).start()
    known: dict[str, frozenset[str]] = {}
    while len(known) < len(names):
        try:
            name, found = answers.get(timeout=timeout_s)
        except queue.Empty:
            break
        known[name] = found
    return known


def named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown


def warning(names: Sequence[str]) -> str:
    """For the operator who starts the daemon."""
    are = "is another machine" if len(names) == 1 else "are other machines"
    return (
        f"{named(names)} {are}, but odcd runs every job on this one: --node declares nodes for "
        "accounting only. Jobs of several nodes are rejected. To use several machines, run odcd on "
        "Kubernetes: docs/operating/workstations.md"
    )


def check_gang(other_hosts: Sequence[str], _who: Identity, spec: JobSpec) -> None:
    """Raises NeverFits for a job of several nodes, if declared nodes are other machines."""
    nodes = _nodes_of(spec)
    if other_hosts and nodes > 1:
        are = "is another machine" if len(other_hosts) == 1 else "are other machines"
        raise NeverFits(
            f"this daemon cannot run a job on {nodes} nodes: {named(other_hosts)} {are}, "
            "and it starts processes on its own machine only",
            "Request one node. For several machines, an operator runs odcd on Kubernetes.",
        )


def _nodes_of(spec: JobSpec) -> int:
    """The most nodes that it may get, as submit_jobs derives them from its totals."""
    counts = [1, spec.node_count or 1, spec.node_count_max or 1, len(spec.node_list)]
    if spec.node_count is None:
        for total, each in (
            (spec.gpus, spec.gpus_per_node), (spec.ntasks, spec.ntasks_per_node),
        ):  # fmt: skip
            if total and each:
                counts.append(-(-total // each))
    return max(counts)
