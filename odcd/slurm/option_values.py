"""The settings that result from the options of a submit, and the rules for combining three
sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from odcd.errors import BadRequest, NotImplementedYet, OdcError
from odcd.slurm.complaints import Complaints
from odcd.slurm.environment import EXPORT_ALL, Export
from odcd.slurm.gangs import NodeRange, Switches
from odcd.slurm.gres import GpuRequest
from odcd.slurm.option import Given
from odcd.slurm.sbatch_options import OPTIONS
from odcd.slurm.signals import EndSignal

_FAILED = object()
MAX_CHARS = 128 * 1024
"""The limit for all values of one source: the longest single argument that Linux allows."""


@dataclass(slots=True, kw_only=True)
class Settings:
    """None or empty: not given. The names are those of Option.setting."""

    job_name: str | None = None
    partitions: list[str] = field(default_factory=list[str])
    account: str | None = None
    qos: str | None = None
    nice: int | None = None
    comment: str | None = None
    hold: bool = False
    begin_at: datetime | None = None
    deadline_at: datetime | None = None
    time_limit_s: int | None = None
    nodes: NodeRange | None = None
    switches: Switches | None = None
    ntasks: int | None = None
    ntasks_per_node: int | None = None
    cpus_per_task: int | None = None
    cpus_per_gpu: int | None = None
    gres: GpuRequest | None = None
    gpus: GpuRequest | None = None
    gpus_per_node: GpuRequest | None = None
    gpus_per_task: GpuRequest | None = None
    mem_per_node_mib: int | None = None
    mem_per_cpu_mib: int | None = None
    mem_per_gpu_mib: int | None = None
    tmp_mib: int | None = None
    exclusive: bool = False
    constraint: str | None = None
    node_list: list[str] = field(default_factory=list[str])
    exclude_nodes: list[str] = field(default_factory=list[str])
    booking: str | None = None
    licences: dict[str, int] = field(default_factory=dict[str, int])
    array: str | None = None
    dependency: str | None = None
    signal: EndSignal | None = None
    requeue: bool | None = None
    chdir: str | None = None
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    open_mode: str | None = None
    export: Export = EXPORT_ALL
    wrap: str | None = None
    wait: bool = False
    parsable: bool = False
    test_only: bool = False
    preview_preemption: bool = False
    quiet: bool = False
    json: bool = False
    verbose: bool = False
    pty: bool = False
    image: str | None = None
    launch: str | None = None
    accepted: None = None
    """For options whose only accepted value asks for what odc does anyway."""
    given_as: dict[str, str] = field(default_factory=dict[str, str])
    """For each setting, the option that set it, as the user wrote it."""

    def apply(
        self, source: Iterable[Given], now: datetime, complaints: Complaints | None = None
    ) -> None:
        """Apply the options of one source; call with the weakest source first. complaints: collects
        their errors; None: they are raised, all at once."""
        source = list(source)
        # The texts of other options are not parsed.
        chars = sum(len(one.text or "") for one in source if one.option.convert is not None)
        if chars > MAX_CHARS:
            raise BadRequest(
                f"{source[-1].where}the values of the options have {chars} characters together",
                f"At most {MAX_CHARS} are accepted.",
            )
        every = complaints or Complaints()
        given = [
            (one, value)
            for one in source
            if (value := every.catch(partial(convert, one, now), _FAILED)) is not _FAILED
        ]
        groups: dict[str, list[Given]] = {}
        for one, _ in given:
            if one.option.group is not None:
                groups.setdefault(one.option.group, []).append(one)
        for group, members in groups.items():
            every.catch(partial(_check_alone, members), None)
            for option in OPTIONS:
                if option.group == group and option.setting is not None:
                    setattr(self, option.setting, None)
                    self.given_as.pop(option.setting, None)
        for one, value in given:
            if one.option.setting is not None:
                setattr(self, one.option.setting, value)
                self.given_as[one.option.setting] = _written(one)
        if complaints is None:
            every.check()


def convert(given: Given, now: datetime) -> object:
    """The value of an option, or the error for an option that odc does not support."""
    option = given.option
    if not option.supported:
        raise NotImplementedYet(f"{given.where}{_written(given)} is refused: {option.help}")
    if given.text is None:
        return option.bare
    if "\0" in given.text:
        raise BadRequest(f"{given.where}{option.flag} contains a NUL byte in its value")
    if option.convert is None:
        return given.text
    try:
        return option.convert(given.text, now)
    except OdcError as error:
        raise type(error)(f"{given.where}{option.flag}: {error.message}", error.hint) from None


def _written(given: Given) -> str:
    flag = given.option.flag
    return flag if given.text is None else f"{flag}={_cut(given.text)}"


def _check_alone(members: list[Given]) -> None:
    names = {one.option.long: one for one in members if one.option.alone}
    if len(names) > 1:
        flags = " and ".join(f"--{name}" for name in sorted(names))
        where = next(iter(names.values())).where
        raise BadRequest(f"{where}{flags} cannot be used together", "Use only one of them.")


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
