"""Stands in for nvidia-ml-py in a daemon of a test: cards as a file says, of ODC_TEST_CARDS.

A line a card: UUID, name, percent, MiB used. Only what odcd calls is there.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

NVML_ERROR_NOT_SUPPORTED = 3
nvmlMemory_v2 = 2


class NVMLError(Exception):
    pass


def _cards() -> list[list[str]]:
    return [line.split(",") for line in Path(os.environ["ODC_TEST_CARDS"]).read_text().splitlines()]


def nvmlInit() -> None:
    if not Path(os.environ.get("ODC_TEST_CARDS", "")).is_file():
        raise NVMLError("no driver")


def nvmlShutdown() -> None:
    pass


def nvmlDeviceGetCount() -> int:
    return len(_cards())


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    return index


def nvmlDeviceGetUUID(index: int) -> str:
    return _cards()[index][0]


def nvmlDeviceGetName(index: int) -> str:
    return _cards()[index][1]


def nvmlDeviceGetUtilizationRates(index: int) -> SimpleNamespace:
    return SimpleNamespace(gpu=int(_cards()[index][2]), memory=0)


def nvmlDeviceGetMemoryInfo(index: int, version: int | None = None) -> SimpleNamespace:
    return SimpleNamespace(used=int(_cards()[index][3]) * 1024 * 1024)


def nvmlDeviceGetPowerUsage(index: int) -> int:
    raise NVMLError("not supported")


def nvmlDeviceGetTotalEnergyConsumption(index: int) -> int:
    """400 W, since the machine booted."""
    return int(time.monotonic() * 400_000)


def nvmlDeviceGetComputeRunningProcesses(index: int) -> list[SimpleNamespace]:
    return []
