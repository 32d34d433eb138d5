"""The output of dcgm-exporter and kube-state-metrics, as text. No GPU is needed for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

COUNTERS = {
    "DCGM_FI_DEV_SM_CLOCK": ("gauge", "SM clock frequency (in MHz)."),
    "DCGM_FI_DEV_MEM_CLOCK": ("gauge", "Memory clock frequency (in MHz)."),
    "DCGM_FI_DEV_MEMORY_TEMP": ("gauge", "Memory temperature (in C)."),
    "DCGM_FI_DEV_GPU_TEMP": ("gauge", "GPU temperature (in C)."),
    "DCGM_FI_DEV_POWER_USAGE": ("gauge", "Power draw (in W)."),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": (
        "counter",
        "Total energy consumption since boot (in mJ).",
    ),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("counter", "Total number of PCIe retries."),
    "DCGM_FI_DEV_GPU_UTIL": ("gauge", "GPU utilization (in %)."),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("gauge", "Memory utilization (in %)."),
    "DCGM_FI_DEV_ENC_UTIL": ("gauge", "Encoder utilization (in %)."),
    "DCGM_FI_DEV_DEC_UTIL": ("gauge", "Decoder utilization (in %)."),
    "DCGM_FI_DEV_XID_ERRORS": ("gauge", "Value of the last XID error encountered."),
    "DCGM_FI_DEV_FB_FREE": ("gauge", "Framebuffer memory free (in MiB)."),
    "DCGM_FI_DEV_FB_USED": ("gauge", "Framebuffer memory used (in MiB)."),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": (
        "counter",
        "Total number of NVLink bandwidth counters for all lanes",
    ),
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": ("gauge", "vGPU License status"),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": (
        "counter",
        "Number of remapped rows for uncorrectable errors",
    ),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": (
        "counter",
        "Number of remapped rows for correctable errors",
    ),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("gauge", "Whether remapping of rows has failed"),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gauge", "Ratio of time the graphics engine is active."),
    "DCGM_FI_PROF_SM_ACTIVE": (
        "gauge",
        "The ratio of cycles an SM has at least 1 warp assigned.",
    ),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": (
        "gauge",
        "Ratio of cycles the tensor (HMMA) pipe is active.",
    ),
    "DCGM_FI_PROF_DRAM_ACTIVE": (
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
    ),
}
"""The exporter's default counters, including profiling fields."""

PROFILING = frozenset(name for name in COUNTERS if name.startswith("DCGM_FI_PROF_"))
BLANK = 9223372036854775794
"""DCGM's value for a field that a card does not have."""


@dataclass(kw_only=True)
class Gpu:
    """A card, or with `instance` a MIG slice of it, and its pod or job."""

    index: int
    node: str
    util: float = 0.0
    """Percent."""
    used_mib: int = 0
    total_mib: int = 81559
    watts: float = 70.0
    energy_mj: int = 1_000_000
    temperature: float = 33.0
    xid: int = 0
    namespace: str = ""
    pod: str = ""
    hpc_job: str = ""
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    """As they are on the pod: odc.dev/job-id."""
    model: str = "NVIDIA H100 80GB HBM3"
    instance: str = ""

    @property
    def uuid(self) -> str:
        digits = f"{abs(hash_of(self.node)):08x}"[:8]
        return f"GPU-{digits}-d9cf-fef3-62e9-{self.index:012x}"

    def values(self) -> dict[str, float]:
        busy = self.util / 100
        return {
            "DCGM_FI_DEV_SM_CLOCK": 1980,
            "DCGM_FI_DEV_MEM_CLOCK": 2619,
            "DCGM_FI_DEV_MEMORY_TEMP": BLANK,
            "DCGM_FI_DEV_GPU_TEMP": self.temperature,
            "DCGM_FI_DEV_POWER_USAGE": self.watts,
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": self.energy_mj,
            "DCGM_FI_DEV_GPU_UTIL": self.util,
            "DCGM_FI_DEV_MEM_COPY_UTIL": self.util / 3,
            "DCGM_FI_DEV_XID_ERRORS": self.xid,
            "DCGM_FI_DEV_FB_FREE": self.total_mib - self.used_mib,
            "DCGM_FI_DEV_FB_USED": self.used_mib,
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE": busy,
            "DCGM_FI_PROF_SM_ACTIVE": busy * 0.8,
            "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": busy * 0.4,
            "DCGM_FI_PROF_DRAM_ACTIVE": busy * 0.5,
        }

    def labels(self) -> str:
        labels = {
            "gpu": str(self.index),
            "UUID": self.uuid,
            "pci_bus_id": f"00000000:{self.index + 1:02X}:00.0",
            "device": f"nvidia{self.index}",
            "modelName": self.model,
        }
        if self.instance:
            labels |= {"GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": self.instance}
        labels |= {"Hostname": self.node, "DCGM_FI_DRIVER_VERSION": "580.82.07"}
        labels |= {as_label(name): value for name, value in self.pod_labels.items()}
        if self.pod:
            labels |= {"container": "job", "namespace": self.namespace, "pod": self.pod}
        if self.hpc_job:
            labels |= {"hpc_job": self.hpc_job}
        return ",".join(f'{name}="{value}"' for name, value in labels.items())


def dcgm_text(gpus: Iterable[Gpu], without: Iterable[str] = ()) -> str:
    """The output of the exporter for these cards; the list of counters may be shorter."""
    cards = list(gpus)
    absent = set(without)
    lines: list[str] = []
    for name, (kind, description) in COUNTERS.items():
        if name in absent:
            continue
        samples = [(gpu.labels(), gpu.values().get(name, 0)) for gpu in cards if _has(gpu, name)]
        if samples:
            lines += [f"# HELP {name} {description}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{{{labels}}} {value}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def kube_pod_labels(pods: Iterable[Mapping[str, str]]) -> str:
    """kube-state-metrics with --metric-labels-allowlist=pods=[odc.dev/...]: a line a pod.

    A pod is {namespace, pod, and its labels as they are: odc.dev/job-id}.
    """
    lines = [
        "# HELP kube_pod_labels [STABLE] Kubernetes labels converted to Prometheus labels.",
        "# TYPE kube_pod_labels gauge",
    ]
    for one in pods:
        labels = {"namespace": one["namespace"], "pod": one["pod"], "uid": f"uid-{one['pod']}"}
        labels |= {
            f"label_{as_label(name)}": value
            for name, value in one.items()
            if name not in ("namespace", "pod")
        }
        lines.append("kube_pod_labels{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "} 1")
    return "\n".join(lines) + "\n"


def as_label(name: str) -> str:
    """A Kubernetes label as a Prometheus label."""
    return re.sub(r"\W", "_", name)


def hash_of(text: str) -> int:
    """The same in every process, unlike hash()."""
    return sum(byte * 31**place for place, byte in enumerate(text.encode())) % 0xFFFFFFFF


def _has(gpu: Gpu, name: str) -> bool:
    # A MIG instance has no utilisation of its own: only the profiling fields have it.
    return not (gpu.instance and name == "DCGM_FI_DEV_GPU_UTIL")
