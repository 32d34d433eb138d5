"""Free GPUs, their distribution over nodes, and the forecast of free GPUs."""

from __future__ import annotations

from grafana.dashboard import GPU_TYPES, dashboard
from grafana.links import runbook, to_job
from grafana.model import Json
from grafana.panels import bars, rows_of, stat, table, timeseries

TYPES = 'gpu_type=~"$gpu_type"'


def board() -> Json:
    return dashboard(
        "odc-capacity",
        "odc: capacity",
        "Free GPUs by type and by the size of job that fits, and the GPUs expected to be free in the next 24 hours.",
        [
            ("", 4, _now()),
            ("Jobs that could start now", 8, _fits()),
            ("The next 24 hours", 8, _forecast()),
            ("History", 8, _history()),
            ("Nodes", 9, _nodes()),
        ],
        [GPU_TYPES],
    )


def _now() -> list[Json]:
    return [
        stat("GPUs", (f"sum(odcd_gpus{{{TYPES}}})", "")),
        stat("Allocated", (f'sum(odcd_gpus{{state="allocated",{TYPES}}})', "")),
        stat("Idle", (f'sum(odcd_gpus{{state="idle",{TYPES}}})', "")),
        stat("Booked", (f'sum(odcd_gpus{{state="booked",{TYPES}}})', "")),
        stat(
            "Draining or down", (f'sum(odcd_gpus{{state=~"draining|down",{TYPES}}})', ""),
            red_above=1,
        ),
        stat(
            "Share allocated", (
                f'sum(odcd_gpus{{state="allocated",{TYPES}}})'
                f' / sum(odcd_gpus{{state!="down",{TYPES}}})', "",
            ), unit="percentunit", description="Share of the GPUs on nodes that are not down.",
        ),
        stat(
            "Quarantined nodes", ("sum(odcd_nodes_quarantined)", ""), red_above=1,
            links=[runbook("OdcNodeQuarantined")],
        ),
    ]  # fmt: skip


def _fits() -> list[Json]:
    return [
        bars(
            "Idle GPUs by type", (f'sum by (gpu_type) (odcd_gpus{{state="idle",{TYPES}}})', "{{gpu_type}}"),
        ),
        table(
            "Jobs that could start on one node, by GPUs per job",
            (f"sum by (gpu_type, gpus) (odcd_gpu_fits{{{TYPES}}})", ""),
            description="Each number assumes that only jobs of this size start.",
            names={"gpu_type": "GPU type", "gpus": "GPUs", "Value": "jobs"},
        ),
        bars(
            "Largest possible gang, in whole nodes", (f"max by (gpu_type) (odcd_gang_nodes_max{{{TYPES}}})", "{{gpu_type}}"),
            description="The number of whole nodes that one gang could get now.",
        ),
        bars(
            "Idle GPUs on partly allocated nodes",
            (f"sum by (gpu_type) (odcd_gpus_fragmented{{{TYPES}}})", "{{gpu_type}}"),
            description="Jobs that need whole nodes cannot use these GPUs.",
        ),
    ]  # fmt: skip


def _forecast() -> list[Json]:
    hours = f"sum by (gpu_type, hours) (odcd_gpus_forecast{{{TYPES}}})"
    return [
        table(
            "GPUs expected to be free, by hours from now", (hours, ""),
            description="Running jobs end when predicted, planned jobs start, bookings start and end.",
            names={"gpu_type": "GPU type", "Value": "GPUs"},
        ),
        timeseries(
            "Forecasts of free GPUs for 1, 8 and 24 hours ahead",
            (f'sum by (hours) (odcd_gpus_forecast{{hours=~"1|8|24",{TYPES}}})', "in {{hours}} h"),
            (f'sum(odcd_gpus{{state="idle",{TYPES}}})', "idle"),
        ) | {"w": 2},
        rows_of(
            "Next planned starts",
            'select planned_start_at as "start", job_id as "job", "user", partition, '
            "node_count || 'x' || gpus_per_node as gpus, gpu_type as \"GPU type\" "
            "from odc_report.plan order by planned_start_at nulls last, job_id limit 100",
            units={"start": "dateTimeAsLocal"},
            column_links=to_job("job"),
        ) | {"w": 2},
    ]  # fmt: skip


def _history() -> list[Json]:
    return [
        timeseries(
            "GPUs by state", (f"sum by (state) (odcd_gpus{{{TYPES}}})", "{{state}}"), stack=True,
        ),
        timeseries(
            "Idle GPUs by type over time", (f'sum by (gpu_type) (odcd_gpus{{state="idle",{TYPES}}})', "{{gpu_type}}"),
        ),
        timeseries(
            "Share of the idle GPUs on partly allocated nodes",
            (
                f"sum by (gpu_type) (odcd_gpus_fragmented{{{TYPES}}})"
                f' / (sum by (gpu_type) (odcd_gpus{{state="idle",{TYPES}}}) > 0)', "{{gpu_type}}",
            ),
            unit="percentunit", top=1,
        ),
    ]  # fmt: skip


def _nodes() -> list[Json]:
    return [
        timeseries(
            "Nodes by state", (f"sum by (state) (odcd_nodes{{{TYPES}}})", "{{state}}"), stack=True,
        ),
        rows_of(
            "Nodes that start no jobs",
            'select name, gpu_type as "GPU type", state, gpus_used || \'/\' || gpus as "GPUs used", '
            "reason, state_at as since, quarantined_at as \"quarantined\" "
            "from odc_report.node where state <> 'UP' or quarantined_at is not null order by name limit 200",
            units={"since": "dateTimeAsLocal", "quarantined": "dateTimeAsLocal"},
            links=[runbook("OdcNodeQuarantined")],
        ) | {"w": 2},
    ]  # fmt: skip
