"""Reads this machine's GPUs by NVML. Usage is read with pynvml only here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import pynvml

MIB = 1024 * 1024


class NvmlDown(Exception):
    """NVML does not answer: there is no driver, or it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """index: NVML's index."""

    index: int
    uuid: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """mem_mib None: NVML does not report it."""

    pid: int
    mem_mib: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The current state of one GPU. ratio: its usage from 0 to 1. None: not reported."""

    ratio: float | None
    mem_used_mib: int | None
    power_w: float | None
    energy_mj: int | None
    processes: Sequence[Process] = ()


class Nvml(Protocol):
    """Every call may block as long as the driver does."""

    def devices(self) -> list[Device]:
        """Return GPUs by ascending index; [] if there is no driver."""
        ...

    def read(self, index: int) -> Reading:
        """Raises NvmlDown."""
        ...


class PyNvml:
    def __init__(self) -> None:
        self._begun = False

    def devices(self) -> list[Device]:
        try:
            self._begin()
            handles = [
                pynvml.nvmlDeviceGetHandleByIndex(index)
                for index in range(pynvml.nvmlDeviceGetCount())
            ]
            return [
                Device(
                    index=index,
                    uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
                    model=_text(pynvml.nvmlDeviceGetName(handle)),
                )
                for index, handle in enumerate(handles)
            ]
        except pynvml.NVMLError:
            self._begun = False
            return []

    def read(self, index: int) -> Reading:
        try:
            self._begin()
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        except pynvml.NVMLError as error:
            self._begun = False
            raise NvmlDown(f"GPU {index}: {error}") from error
        percent = _read_int(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        milliwatts = _read_int(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
        return Reading(
            ratio=None if percent is None else min(100, percent) / 100,
            mem_used_mib=_memory(handle),
            power_w=None if milliwatts is None else milliwatts / 1000,
            energy_mj=_read_int(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)),
            processes=_processes(handle),
        )

    def _begin(self) -> None:
        if not self._begun:
            pynvml.nvmlInit()
            self._begun = True


def _read_int(ask: Any) -> int | None:
    try:
        return int(ask())
    except pynvml.NVMLError:
        return None


def _memory(handle: Any) -> int | None:
    """Used memory, without the driver's reserved memory if NVML reports it separately."""
    for version in (pynvml.nvmlMemory_v2, None):
        with suppress(pynvml.NVMLError):
            return int(pynvml.nvmlDeviceGetMemoryInfo(handle, version).used) // MIB
    return None


def _processes(handle: Any) -> tuple[Process, ...]:
    try:
        found = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except pynvml.NVMLError:
        return ()
    return tuple(
        Process(
            pid=int(one.pid),
            mem_mib=None if one.usedGpuMemory is None else int(one.usedGpuMemory) // MIB,
        )
        for one in found
    )


def _text(raw: str | bytes) -> str:
    return raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
