"""A substitute for NVIDIA's library, which needs a driver: the calls that odcd makes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pynvml


@dataclass
class Card:
    uuid: str
    name: str = "NVIDIA H100 80GB HBM3"
    percent: int = 0
    used_mib: int = 500
    milliwatts: int = 100_000
    energy_mj: int = 0
    processes: list[tuple[int, int | None]] = field(default_factory=list)
    """Process ids, and the MiB each uses."""
    lacks: frozenset[str] = frozenset()
    """Calls that this card does not support."""
    answers: threading.Event | None = None
    """If set, calls return; if None, they always return."""


class FakeLibrary:
    """Has pynvml's functions as attributes; every other name is pynvml's own."""

    def __init__(self, *cards: Card) -> None:
        self.cards = list(cards)
        self.down = False
        self.begun = 0
        self.hangs = threading.Event()
        self.hangs.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(pynvml, name)

    def nvmlInit(self) -> None:
        self.hangs.wait(30)
        if self.down:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
        self.begun += 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        self.hangs.wait(30)
        if self.down or not self.begun:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
        card = self.cards[index]
        if card.answers is not None:
            card.answers.wait(30)
        return card

    def nvmlDeviceGetUUID(self, card: Card) -> bytes:
        return card.uuid.encode()

    def nvmlDeviceGetName(self, card: Card) -> str:
        return card.name

    def nvmlDeviceGetUtilizationRates(self, card: Card) -> Any:
        _refuse(card, "utilization")
        return SimpleNamespace(gpu=card.percent, memory=1)

    def nvmlDeviceGetMemoryInfo(self, card: Card, version: int | None = None) -> Any:
        _refuse(card, "memory" if version is None else "memory_v2")
        return SimpleNamespace(used=card.used_mib * 1024 * 1024)

    def nvmlDeviceGetPowerUsage(self, card: Card) -> int:
        _refuse(card, "power")
        return card.milliwatts

    def nvmlDeviceGetTotalEnergyConsumption(self, card: Card) -> int:
        _refuse(card, "energy")
        return card.energy_mj

    def nvmlDeviceGetComputeRunningProcesses(self, card: Card) -> list[Any]:
        _refuse(card, "processes")
        return [
            SimpleNamespace(pid=pid, usedGpuMemory=None if mib is None else mib * 1024 * 1024)
            for pid, mib in card.processes
        ]


def _refuse(card: Card, what: str) -> None:
    if what in card.lacks:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
