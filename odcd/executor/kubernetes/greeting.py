"""The greeting at a login to a dev server: its owner, and which folders are kept."""

from __future__ import annotations

from odcd.executor.kubernetes import naming
from odcd.records.dispatch import Dispatch

HOME = "/home/dev"
WORKSPACE = "/workspace"
PERSONAL = "/shared-personal"
CCACHE = "/ccache_shared"


def motd(dispatch: Dispatch) -> list[str]:
    """Users choose the job's name, so characters that could move a cursor are removed."""
    first = dispatch.members[0]
    gpus = sum(len(m.gpu_indexes) for m in dispatch.members)
    lines = [
        f"Reservation {dispatch.job_id} ({_shown(dispatch.name)}) of {dispatch.user}",
        f"  {gpus} {first.gpu_type} GPUs" if gpus else f"  {first.gpu_type}, no GPUs",
    ]
    if len(dispatch.members) > 1:
        lines += [
            "  members, the first is rank 0; connect: ssh NAME; for mpirun: /etc/odc/hostfile"
        ]
        lines += [f"    {naming.pod_name(*dispatch.key, m.rank)}" for m in dispatch.members]
    return [
        *lines,
        f"  end time: odcctl show {dispatch.job_id}; more hours: odcctl extend {dispatch.job_id}",
    ]


def storage(dispatch: Dispatch, rank: int, disk_mbps: int, *, ccache: bool) -> list[str]:
    """The storage lines for one member, rank 0 or another. disk_mbps: the disk's throughput in
    MiB/s."""
    disk = dispatch.disk if rank == 0 else None
    if disk is not None:
        new = ", which is new" if disk.first else ""
        lines = [
            f"  {HOME:16} KEPT: your disk {_shown(disk.name)}{new}; a snapshot of it is created "
            "at the end",
            f"  {'':16} (up to {disk_mbps} MiB/s, under 1 ms)",
        ]
    elif dispatch.disk is not None:
        lines = [f"  {HOME:16} LOST at the end: your disk is the home of rank 0 alone"]
    else:
        lines = [f"  {HOME:16} LOST at the end: this reservation has no disk; copy what you need"]
    lines.append(f"  {WORKSPACE:16} LOST at the end: scratch of this node")
    if dispatch.personal is not None:
        lines += [
            f"  {PERSONAL:16} KEPT: the same files in all of your reservations, over the network",
            f"  {'':16} (some 100 MB/s to read and 50 to write, 10 ms: not for many small files)",
        ]
    if ccache:
        lines.append(f"  {CCACHE:16} compiler cache of all users, in CCACHE_DIR")
    return [*lines, ""]


def _shown(text: str) -> str:
    return "".join(c for c in text if c.isprintable())
