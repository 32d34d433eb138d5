"""Which nodes operators may declare while the daemon runs, and the sizes that they leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from odcd.errors import BadRequest, WrongState
from odcd.executor.machine import declared, this_machine_name
from odcd.records.node import DeclaredNode, GpuTypeSize, NodeReport


def _nowhere(_names: Iterable[str]) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaring:
    on_cluster: bool = False
    """Whether the nodes are those of a Kubernetes cluster."""
    fixed: frozenset[str] = frozenset()
    """The nodes of --node, which apply as long as the daemon runs."""
    other_hosts: Callable[[Iterable[str]], Sequence[str]] = _nowhere
    """Those of the names that belong to other machines. May take seconds."""

    def check(self, name: str) -> None:
        """Raises WrongState for a node that requests cannot create, change or delete."""
        if self.on_cluster:
            raise WrongState(
                f"node {name} cannot be declared: the Kubernetes cluster reports the nodes",
                "Add and remove nodes in the cluster; odc sees them within seconds.",
            )
        if name in self.fixed:
            raise WrongState(
                f"node {name} is declared by --node or ODC_NODES",
                "Change that setting, and start odcd again.",
            )

    def check_new(self, name: str) -> None:
        """check(), and the names of machines. Raises WrongState."""
        self.check(name)
        if name == this_machine_name():
            raise WrongState(
                f"node {name} is this machine",
                "odcd up without --node, or with --node self, makes it a node.",
            )
        if self.other_hosts([name]):
            raise WrongState(
                f"node {name} is another machine, but odcd runs every job on this one",
                "To use several machines, run odcd on Kubernetes: docs/operating/workstations.md.",
            )


def sized(node: DeclaredNode, mem_mib: int | None, sizes: Mapping[str, GpuTypeSize]) -> NodeReport:
    """The node with the CPUs and memory of its type, where they were left out.

    Raises BadRequest if the type is unknown and the CPUs are left out.
    """
    if node.cpus is None and node.gpu_type not in sizes:
        raise BadRequest(
            f'the type "{node.gpu_type}" is unknown, so the CPUs of node {node.name} cannot be '
            "derived",
            "Give them, as cpus or --cpus.",
        )
    found = declared(node, sizes)
    return found if mem_mib is None else replace(found, mem_mib=mem_mib)
