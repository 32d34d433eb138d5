"""GPU hours and GPU usage by user and account."""

from __future__ import annotations

from grafana.dashboard import GPU_TYPES, choice, dashboard
from grafana.links import runbook, to_job
from grafana.model import Json
from grafana.panels import bars, rows_of, sql_series, stat, table, timeseries

WHO = 'user=~"$user",account=~"$account"'
HELD = f'odcd_gpu_seconds_total{{{WHO},gpu_type=~"$gpu_type"}}'


def board() -> Json:
    return dashboard(
        "odc-users",
        "odc: users and accounts",
        "GPU hours by user and account, GPU usage, and allocated but idle GPUs.",
        [
            ("", 4, _now()),
            ("GPU hours", 10, _hours()),
            ("GPU usage", 9, _use()),
            ("Allocated but idle", 8, _idle()),
            ("By day", 9, _days()),
            ("Ended jobs", 9, _ended()),
        ],
        [
            choice("user", "odcd_gpu_seconds_total", label="User"),
            choice("account", "odcd_gpu_seconds_total", label="Account"),
            GPU_TYPES,
        ],
        since="now-7d",
        refresh="5m",
    )


def _now() -> list[Json]:
    return [
        stat("GPU hours in this time range", (f"sum(increase({HELD}[$__range])) / 3600", "")),
        stat("Users with allocated GPUs", (f"count(sum by (user) (increase({HELD}[$__range])) > 0)", "")),
        stat(
            "Current usage of monitored GPUs",
            (f"avg(odcd:dcgm_gpu_utilization:ratio{{{WHO}}})", ""), unit="percentunit",
        ),
        stat(
            "GPUs allocated but idle", ('sum(odcd_gpus_held_idle{gpu_type=~"$gpu_type"})', ""), red_above=1,
            links=[runbook("OdcHeldIdle")],
        ),
    ]  # fmt: skip


def _hours() -> list[Json]:
    return [
        bars("By user", (f"topk(15, sum by (user) (increase({HELD}[$__range]))) / 3600", "{{user}}")),
        bars("By account", (f"topk(15, sum by (account) (increase({HELD}[$__range]))) / 3600", "{{account}}")),
        timeseries(
            "Allocated GPUs by account", (f"sum by (account) (rate({HELD}[$__rate_interval]))", "{{account}}"), stack=True,
        ),
    ]  # fmt: skip


def _use() -> list[Json]:
    return [
        timeseries(
            "GPU usage by user",
            (f"avg by (user) (odcd:gpu_utilization:avg_by_job{{{WHO}}})", "{{user}}"),
            unit="percentunit", top=1,
        ),
        timeseries(
            "Power by user", (f"sum by (user) (odcd:gpu_power:watts_by_job{{{WHO}}})", "{{user}}"), unit="watt", stack=True,
        ),
        bars(
            "Jobs with the lowest current usage", (f"bottomk(15, odcd:gpu_utilization:avg_by_job{{{WHO}}})", "{{job_id}} {{user}}"),
            unit="percentunit", top=1,
        ),
    ]  # fmt: skip


def _idle() -> list[Json]:
    return [
        timeseries("GPUs allocated but idle, by type", ('sum by (gpu_type) (odcd_gpus_held_idle{gpu_type=~"$gpu_type"})', "{{gpu_type}}")),
        timeseries("Jobs with allocated but idle GPUs", ("sum by (kind) (odcd_jobs_held_idle)", "{{kind}}")),
        bars(
            "Idle time of dev servers", ('topk(15, odcd_reservation_idle_seconds{user=~"$user"})', "{{user}}"), unit="s",
        ),
        table(
            "GPUs unused for 15 minutes, according to DCGM", (f"odcd:gpus_idle:by_job{{{WHO}}}", ""),
            names={"job_id": "job", "Value": "GPUs"},
            column_links=to_job("job"),
        ),
    ]  # fmt: skip


def _days() -> list[Json]:
    where = "where $__timeFilter(day) and \"user\" ~ '^(${user:pipe})$' and account ~ '^(${account:pipe})$'"
    return [
        sql_series(
            "GPU hours by day and account",
            f'select day as "time", account as metric, sum(gpu_hours) as value from odc_report.gpu_hours_by_day {where} '
            "group by day, account order by day",
            unit="h",
        ),
        rows_of(
            "GPU hours by user",
            'select "user", account, gpu_type as "GPU type", round(sum(gpu_hours), 1) as "GPU hours", sum(jobs) as "jobs" '
            f'from odc_report.gpu_hours_by_day {where} group by "user", account, gpu_type order by 4 desc limit 200',
        ),
    ]


def _ended() -> list[Json]:
    where = (
        "where $__timeFilter(ended_at) and busy_ratio is not null "
        "and \"user\" ~ '^(${user:pipe})$' and account ~ '^(${account:pipe})$'"
    )
    return [
        rows_of(
            "GPU usage of ended jobs",
            'select job_id as "job", "user", account, name, gpus, gpu_hours as "GPU hours", busy_ratio as "busy", '
            'mem_peak_mib as "memory peak", energy_j as "energy", ended_at as "ended" '
            f"from odc_report.efficiency {where} order by ended_at desc limit 300",
            units={"busy": "percentunit", "memory peak": "decmbytes", "energy": "joule", "ended": "dateTimeAsLocal"},
            column_links=to_job("job"),
        ) | {"w": 2},
        rows_of(
            "Unused GPU hours by user",
            'select "user", account, sum(gpu_hours) as "GPU hours", sum(gpu_hours * (1 - busy_ratio)) as "idle", '
            'sum(gpu_hours * busy_ratio) / nullif(sum(gpu_hours), 0) as "busy" '
            f'from odc_report.efficiency {where} group by "user", account order by 4 desc limit 100',
            units={"busy": "percentunit"},
        ),
    ]  # fmt: skip
