"""All GPUs that DCGM reports, with or without a job."""

from __future__ import annotations

from grafana.dashboard import choice, dashboard
from grafana.links import runbook, to_job
from grafana.model import Json
from grafana.panels import bars, stat, table, timeseries

CHOSEN = 'odcd:gpu:labels{node=~"$node",gpu=~"$gpu"}'
CARDS = f"max by (node, gpu, UUID, GPU_I_ID, modelName) ({CHOSEN})"
EACH = "{{node}} {{gpu}}"


def board() -> Json:
    return dashboard(
        "odc-gpus",
        "odc: GPU overview",
        "GPU usage, memory, temperature, power and faults of the cluster, of nodes and of GPUs, from DCGM.",
        [
            ("", 4, _now()),
            ("Usage", 9, _use()),
            ("Memory and power", 9, _memory()),
            ("Faults", 8, _faults()),
            ("Jobs on the GPUs", 9, _whose()),
        ],
        [
            choice("node", "odcd:gpu:labels", label="Node"),
            choice("gpu", 'odcd:gpu:labels{node=~"$node"}', label="GPU"),
        ],
        since="now-1h",
    )  # fmt: skip


def _cards(name: str) -> str:
    """One value for each selected GPU: a shared GPU has one series for each pod."""
    return f"{CARDS} * on (UUID, GPU_I_ID) group_left () max by (UUID, GPU_I_ID) ({name})"


UTIL = f"({_cards('DCGM_FI_DEV_GPU_UTIL')} / 100 or {_cards('DCGM_FI_PROF_GR_ENGINE_ACTIVE')})"
USED = _cards("DCGM_FI_DEV_FB_USED")
FREE = _cards("DCGM_FI_DEV_FB_FREE")


def _now() -> list[Json]:
    return [
        stat("GPUs", (f"count(count by (UUID) ({CHOSEN}))", "")),
        stat("Usage", (f"avg({UTIL})", ""), unit="percentunit"),
        stat("Memory used", (f"sum({USED}) / (sum({USED}) + sum({FREE}))", ""), unit="percentunit"),
        stat("Power", (f"sum({_cards('DCGM_FI_DEV_POWER_USAGE')})", ""), unit="watt"),
        stat("Hottest", (f"max({_cards('DCGM_FI_DEV_GPU_TEMP')})", ""), unit="celsius", red_above=88),
        stat(
            "GPUs with an XID", (f"count(({_cards('DCGM_FI_DEV_XID_ERRORS')}) > 0) or vector(0)", ""), red_above=1,
            description="The last error that the driver reported. Some are caused by programs.", links=[runbook("OdcGpuXid")],
        ),
    ]  # fmt: skip


def _use() -> list[Json]:
    return [
        timeseries("Cluster", (f"avg({UTIL})", "usage"), unit="percentunit", top=1),
        timeseries("By node", (f"avg by (node) ({UTIL})", "{{node}}"), unit="percentunit", top=1),
        timeseries("By GPU", (UTIL, EACH), unit="percentunit", top=1),
    ]


def _memory() -> list[Json]:
    return [
        timeseries("Memory, by GPU", (f"{USED} * 1048576", EACH), unit="bytes"),
        timeseries("Temperature", (_cards("DCGM_FI_DEV_GPU_TEMP"), EACH), unit="celsius"),
        timeseries("Power, by node", (f"sum by (node) ({_cards('DCGM_FI_DEV_POWER_USAGE')})", "{{node}}"), unit="watt", stack=True),
        timeseries("SM clock", (f"({_cards('DCGM_FI_DEV_SM_CLOCK')}) * 1000000", EACH), unit="hertz"),
    ]  # fmt: skip


def _faults() -> list[Json]:
    return [
        table(
            "Last XID", (f"({_cards('DCGM_FI_DEV_XID_ERRORS')}) > 0", ""),
            names={"Value": "XID"}, links=[runbook("OdcGpuXid")],
        ),
        timeseries(
            "Remapped rows",
            (f"sum by (node) ({_cards('DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS')})", "{{node}} uncorrectable"),
            (f"sum by (node) ({_cards('DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS')})", "{{node}} correctable"),
        ),
        timeseries(
            "PCIe replays per hour",
            (f"sum by (node) ({_cards('rate(DCGM_FI_DEV_PCIE_REPLAY_COUNTER[$__rate_interval])')}) * 3600", "{{node}}"),
        ),
        bars(
            "GPUs and jobs that could not be matched", ("sum by (node, missing) (odcd:gpu_join_missing)", "{{node}} {{missing}}"),
            description="GPUs whose job is unknown, and job members whose GPUs are unknown.", links=[runbook("OdcGpuJoinMissing"), runbook("OdcGpuJoinEmpty")],
        ),
    ]  # fmt: skip


def _whose() -> list[Json]:
    ours = 'odcd:gpu:job{node=~"$node",gpu=~"$gpu"}'
    return [
        table(
            "GPUs and their jobs", ('odcd:dcgm_gpu_utilization:ratio{node=~"$node",gpu=~"$gpu"}', ""), unit="percentunit",
            hide=["GPU_I_ID"], names={"job_id": "job", "Value": "usage"},
            column_links=to_job("job"),
        ) | {"w": 2},
        timeseries("GPUs of jobs, by partition", (f"count by (partition) ({ours})", "{{partition}}"), stack=True),
    ]  # fmt: skip
