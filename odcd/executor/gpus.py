"""Find the machine's GPUs through NVML."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import pynvml

KNOWN = frozenset({"b200", "h200", "h100", "a100", "a10g", "l4", "t4"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """GPUs of one type. indexes: NVML's, in ascending order; a job's GPU n is indexes[n]."""

    gpu_type: str
    indexes: tuple[int, ...]


def find_gpus() -> Gpus | None:
    """None: no driver, or no GPU. A node has one type, so only the GPUs of the most frequent type
    are offered. Blocks for as long as the driver takes."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        types: list[str] = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            name = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(index))
            types.append(type_of(name if isinstance(name, str) else name.decode()))
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
    return choose(types)


def choose(types: list[str]) -> Gpus | None:
    """types: the type of each GPU, by index."""
    if not types:
        return None
    counts = Counter(types)
    gpu_type = min(counts, key=lambda name: (-counts[name], name))
    indexes = tuple(index for index, name in enumerate(types) if name == gpu_type)
    return Gpus(gpu_type=gpu_type, indexes=indexes)


def type_of(product: str) -> str:
    """odc's name for a product name of NVML: NVIDIA H100 80GB HBM3 is h100."""
    words = re.findall(r"[a-z0-9]+", product.lower())
    for word in words:
        if word in KNOWN:
            return word
    return "-".join(word for word in words if word != "nvidia") or "gpu"
