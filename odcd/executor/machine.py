"""Nodes of the local executor: this machine, and nodes declared for accounting."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from odcd.errors import BadRequest
from odcd.executor.gpus import Gpus
from odcd.records.node import DeclaredNode, GpuTypeSize, NodeReport

MIB = 1024 * 1024
RESERVE_SHARE = 20
"""One part in this many of the memory is reserved for the system and odcd."""
MAX_RESERVE_MIB = 8192
MIB_PER_CPU = 4096
"""Memory per CPU of a declared node whose GPU type is unknown."""


def this_machine(gpus: Gpus | None, *, root: Path = Path("/")) -> NodeReport:
    """root: the folder that contains /proc and /sys."""
    arm = platform.machine().lower() in ("aarch64", "arm64")
    return NodeReport(
        name=this_machine_name(),
        gpu_type=gpus.gpu_type if gpus else ("cpu-arm" if arm else "cpu-x86"),
        gpus=len(gpus.indexes) if gpus else 0,
        cpus=_cpus(root),
        mem_mib=_memory_mib(root),
        tmp_mib=_tmp_mib(),
    )


def this_machine_name() -> str:
    return socket.gethostname().partition(".")[0].lower() or "localhost"


def declared(node: DeclaredNode, sizes: Mapping[str, GpuTypeSize]) -> NodeReport:
    """Missing CPUs and memory are taken from the type, in proportion to the GPUs.

    Raises BadRequest for an unknown type without CPUs.
    """
    size = sizes.get(node.gpu_type)
    cpus = node.cpus
    if size is None:
        if cpus is None:
            raise BadRequest(
                f'the type "{node.gpu_type}" of --node {node.name} is unknown, so its CPUs '
                "cannot be derived",
                f"Give them: --node {node.name}={node.gpu_type}:{node.gpus}x16.",
            )
        mem_mib = cpus * MIB_PER_CPU
    elif size.gpus and node.gpus:
        cpus = cpus or max(1, size.cpus * node.gpus // size.gpus)
        mem_mib = size.mem_mib * node.gpus // size.gpus
    else:
        cpus = cpus or size.cpus
        mem_mib = size.mem_mib * cpus // size.cpus
    return NodeReport(
        name=node.name,
        gpu_type=node.gpu_type,
        gpus=node.gpus,
        cpus=cpus,
        mem_mib=max(1, mem_mib),
        zone=node.zone,
        efa_domain=node.efa_domain,
        topology=node.topology,
        declared=True,
    )


def declared_nodes(
    nodes: Iterable[DeclaredNode], sizes: Mapping[str, GpuTypeSize]
) -> list[NodeReport]:
    return [declared(node, sizes) for node in nodes]


def _tmp_mib() -> int:
    """The size of the file system of /tmp."""
    try:
        return shutil.disk_usage(tempfile.gettempdir()).total // MIB
    except OSError:
        return 0


def _cpus(root: Path) -> int:
    """The CPUs this process may use, or fewer if a container's quota is lower."""
    cpus = len(os.sched_getaffinity(0))
    quota = _read(root / "sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        cpus = min(cpus, max(1, int(quota[0]) // int(quota[1])))
    return cpus


def _memory_mib(root: Path) -> int:
    total = 0
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            total = int(line.split()[1]) * 1024
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        text = _read(root / "sys/fs/cgroup" / limit).strip()
        if text.isdigit():
            total = min(total, int(text))
    total_mib = total // MIB
    return max(1, total_mib - min(total_mib // RESERVE_SHARE, MAX_RESERVE_MIB))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
