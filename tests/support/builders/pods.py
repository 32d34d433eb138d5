"""Pods of jobs, built by odcd's own function for each GPU type: admission must accept them."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.pods import PodSettings, pod_of
from tests.support.builders.dispatches import a_dispatch_of, a_member

Json = dict[str, Any]
MIGRATION = Path(__file__).parents[3] / "sql" / "migrations" / "0001_queue.sql"
ROW = re.compile(
    r"^\s*\('(?P<name>[\w-]+)',\s*'[^']*',\s*(?P<gpus>\d+),\s*\S+,\s*(?P<cpus>\d+),"
    r"\s*(?P<mem_mib>\d+),\s*(?P<efa>\d+),\s*'(?P<instance>[\w.-]+)'\)",
    re.M,
)
HUGEPAGES_MIB = 5128 * 2
"""The reservation of EFA's installer on a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuType:
    name: str
    gpus: int
    cpus: int
    mem_mib: int
    efa: int


def gpu_types() -> list[GpuType]:
    """The types of a new database, read from its migration."""
    text = MIGRATION.read_text("utf-8")
    table = text[text.index("insert into gpu_type") :].partition(";")[0]
    return [
        GpuType(
            name=row["name"],
            gpus=int(row["gpus"]),
            cpus=int(row["cpus"]),
            mem_mib=int(row["mem_mib"]),
            efa=int(row["efa"]),
        )
        for row in ROW.finditer(table)
    ]


def a_pod(
    gpu_type: GpuType, gpus: int, *, job: int = 7, rank: int = 0, gang: int = 1,
    dev_server: bool = False, ask: dict[str, object] | None = None,
) -> Json:  # fmt: skip
    """One member of a job; a member of several is gated. dev_server: it is a dev server."""
    part = gpus / gpu_type.gpus if gpu_type.gpus else 0.5
    members = tuple(
        a_member(
            member,
            node=f"{gpu_type.name}-node-{member}",
            gpu_type=gpu_type.name,
            gpu_indexes=tuple(range(gpus)),
            cpus=int(gpu_type.cpus * part),
            mem_mib=int(gpu_type.mem_mib * part * 0.9),
            node_gpus=gpu_type.gpus,
            node_cpus=gpu_type.cpus,
            node_mem_mib=gpu_type.mem_mib,
            virtual=False,
        )
        for member in range(gang)
    )
    offer = NodeOffer(gpus=gpu_type.gpus, efa=gpu_type.efa, hugepages_mib=HUGEPAGES_MIB)
    dispatch, _ = a_dispatch_of(
        job_id=job, user="alice@example.com", uid=1000, gid=1000, members=members,
        kind="reservation" if dev_server else "batch", ask=ask,
    )  # fmt: skip
    return pod_of(
        dispatch,
        members[rank],
        {"LANG": "C.UTF-8", "NVIDIA_VISIBLE_DEVICES": "all"},
        {member.node: offer for member in members},
        PodSettings(
            image="registry.example.com/train:2026.11", dev_image="registry.example.com/dev:2026.11"
        ),
    )


def changed(pod: Json, path: str, value: object) -> Json:
    """A copy with one thing different, as in changed(pod, "spec/containers/0/image", "x").

    None takes it away; an index one past the end appends; ~1 is a slash within a key.
    """
    copied = copy.deepcopy(pod)
    parts = [part.replace("~1", "/") for part in path.split("/")]
    *way, last = [int(part) if part.isdigit() else part for part in parts]
    place: Any = copied
    for part in way:
        place = place[part] if isinstance(part, int) else place.setdefault(part, {})
    if value is None:
        del place[last]
    elif isinstance(place, list) and last == len(place):
        place.append(value)
    else:
        place[last] = value
    return copied


H100 = next(each for each in gpu_types() if each.name == "h100")
SMALL = a_pod(H100, 1)
WHOLE = a_pod(H100, 8)
DEV_SERVER = a_pod(H100, 1, dev_server=True)
NAMESPACES = {"gpu-batch": SMALL, "gpu-dev": WHOLE}
