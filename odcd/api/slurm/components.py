"""The rows of heterogeneous jobs: one for each component, as Slurm's commands show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as changed

from msgspec.structs import replace

from odcd.slurm.columns.values import JobRow

_COMPONENT = re.compile(r"([0-9]{1,18})\+([0-9]{1,9})(\..*)?")
FIELDS = frozenset({"components", "node_names"})


def job_of(text: str) -> str:
    """The job's part of an id such as 123+1."""
    found = _COMPONENT.fullmatch(text.strip())
    return text if found is None else found[1] + (found[3] or "")


def is_component(text: str) -> bool:
    return _COMPONENT.fullmatch(text.strip()) is not None


def shown_by(named: Sequence[str]) -> Callable[[JobRow], bool]:
    """Whether a row of a job or of a component is shown. named: the ids that the user gave; 123
    names all components of a job, 123+1 one of them."""
    some: set[tuple[int, int]] = set()
    whole: set[str] = set()
    for text in named:
        found = _COMPONENT.fullmatch(text.strip())
        if found is None:
            whole.add(text.partition(".")[0])
        else:
            some.add((int(found[1]), int(found[2])))

    def is_shown(row: JobRow) -> bool:
        return (
            row.het_leader is None or not some or str(row.het_leader) in whole
            or (row.het_leader, row.het_offset) in some
        )  # fmt: skip

    return is_shown


def components_of(row: JobRow) -> Iterator[JobRow]:
    """The row itself if the job is not heterogeneous."""
    if not row.components:
        yield row
        return
    first = 0
    for offset, one in enumerate(row.components):
        asked = row.asked
        if asked is not None and offset < len(asked.components):
            own = asked.components[offset]
            asked = changed(asked, ntasks=own.get("ntasks"), cpus_per_task=own.get("cpus_per_task"))
        yield replace(
            row, id=row.id + offset, het_leader=row.id, het_offset=offset,
            het_size=len(row.components), components=None, name=one.name or row.name,
            node_count=one.node_count, gpus_per_node=one.gpus_per_node,
            gpus=one.node_count * one.gpus_per_node, gpu_type=one.gpu_type,
            cpus_per_node=one.cpus_per_node, mem_per_node_mib=one.mem_per_node_mib, asked=asked,
            node_names=row.node_names[first : first + one.node_count],
            licences=row.licences if offset == 0 else None,
        )  # fmt: skip
        first += one.node_count
