"""The queue: waiting jobs, their waits, and the reasons."""

from __future__ import annotations

from grafana.dashboard import choice, dashboard
from grafana.links import runbook, to_job
from grafana.model import Json
from grafana.panels import bars, heatmap, rows_of, stat, table, timeseries

PARTS = 'partition=~"$partition"'
WAITS = f"odcd_job_queue_wait_seconds_bucket{{{PARTS}}}"


def board() -> Json:
    return dashboard(
        "odc-queue",
        "odc: queue and waits",
        "The queue by state and reason, waits, and the accuracy of expected starts.",
        [
            ("", 4, _now()),
            ("Queue", 9, _queue()),
            ("Waits", 9, _waits()),
            ("Submits, starts and ends", 8, _flow()),
            ("Expected starts", 8, _eta()),
            ("Now", 12, _table()),
        ],
        [choice("partition", "odcd_jobs", label="Partition")],
    )


def _now() -> list[Json]:
    return [
        stat("Waiting", (f'sum(odcd_jobs{{state="PENDING",{PARTS}}})', "")),
        stat("Running", (f'sum(odcd_jobs{{state="RUNNING",{PARTS}}})', "")),
        stat(
            "Maximum current wait", (f"max(odcd_job_oldest_wait_seconds{{{PARTS}}})", ""), unit="s",
            red_above=86400, links=[runbook("OdcQueueOld")],
        ),
        stat(
            "Median wait of jobs started in this time range",
            (f"histogram_quantile(0.5, sum by (le) (increase({WAITS}[$__range])))", ""), unit="s",
        ),
        stat(
            "90th percentile of the wait",
            (f"histogram_quantile(0.9, sum by (le) (increase({WAITS}[$__range])))", ""), unit="s",
        ),
        stat(
            "Coverage of expected starts, last 7 days", ("max(odcd_eta_coverage_ratio)", ""), unit="percentunit",
            red_below=0.6, description="Share of jobs that started within their expected interval. The target is 80 %.",
            links=[runbook("OdcEtaCoverageOff")],
        ),
    ]  # fmt: skip


def _queue() -> list[Json]:
    return [
        timeseries(
            "Jobs by state", (f"sum by (state) (odcd_jobs{{{PARTS}}})", "{{state}}"), stack=True
        ),
        timeseries(
            "Waiting jobs by reason", ("sum by (reason) (odcd_jobs_pending)", "{{reason}}"),
            stack=True, description="Slurm's names of the reasons, for all partitions.",
        ),
        bars(
            "Causes that block the first planned jobs",
            ("sort_desc(sum by (cause) (odcd_why_causes) > 0)", "{{cause}}"),
            description="The causes that `odcctl why` shows, of the jobs planned first.",
        ),
    ]  # fmt: skip


def _waits() -> list[Json]:
    return [
        heatmap(
            "Waits of started jobs", f"sum by (le) (increase({WAITS}[$__rate_interval]))",
            description="From the time the job was eligible until it started.",
        ),
        timeseries(
            "Median and 90th percentile of the wait",
            (f"histogram_quantile(0.5, sum by (partition, le) (rate({WAITS}[1h])))", "{{partition}} median"),
            (f"histogram_quantile(0.9, sum by (partition, le) (rate({WAITS}[1h])))", "{{partition}} p90"),
            unit="s",
        ),
        timeseries(
            "Maximum current wait by partition", (f"max by (partition) (odcd_job_oldest_wait_seconds{{{PARTS}}})", "{{partition}}"),
            unit="s", links=[runbook("OdcQueueOld")],
        ),
    ]  # fmt: skip


def _flow() -> list[Json]:
    return [
        timeseries(
            "Submitted and started per hour",
            (f"sum(rate(odcd_jobs_submitted_total{{{PARTS}}}[$__rate_interval])) * 3600", "submitted"),
            (f"sum(rate(odcd_jobs_started_total{{{PARTS}}}[$__rate_interval])) * 3600", "started"),
        ),
        timeseries(
            "Ended per hour, by state",
            (f"sum by (state) (rate(odcd_jobs_finished_total{{{PARTS}}}[$__rate_interval])) * 3600", "{{state}}"),
            stack=True,
        ),
        timeseries(
            "Requeued and preempted per hour",
            (f"sum by (reason) (rate(odcd_job_requeues_total{{{PARTS}}}[$__rate_interval])) * 3600", "requeued {{reason}}"),
            (f"sum by (reason) (rate(odcd_job_preemptions_total{{{PARTS}}}[$__rate_interval])) * 3600", "preempted {{reason}}"),
        ),
        timeseries(
            "Jobs at a limit", ("sum by (reason) (odcd_jobs_at_limit)", "{{reason}}"),
            description="Jobs that wait because their account, user or QOS has reached a limit.",
        ),
    ]  # fmt: skip


def _eta() -> list[Json]:
    return [
        timeseries(
            "Share of jobs started within their expected interval", ("max(odcd_eta_coverage_ratio)", "coverage"),
            unit="percentunit", top=1, links=[runbook("OdcEtaCoverageOff")],
        ),
        timeseries(
            "Error and width of expected starts",
            ("max(odcd_eta_error_seconds)", "mean distance from p50"),
            ("max(odcd_eta_bias_seconds)", "earlier than expected"),
            ("max(odcd_eta_width_seconds)", "p10 to p90"),
            unit="s", signed=True,
        ),
        rows_of(
            "Accuracy by day and by cause of the prediction",
            'select day, cause, scored, coverage, early, late, mean_abs_error_s as "error", '
            'mean_width_s as "width" from odc_report.eta_score '
            "where $__timeFilter(day) order by day desc, cause limit 100",
            units={"coverage": "percentunit", "early": "percentunit", "late": "percentunit", "error": "s", "width": "s"},
        ),
    ]  # fmt: skip


def _table() -> list[Json]:
    return [
        rows_of(
            "Queue",
            'select job_id as "job", "user", account, name, partition, qos, state, reason, gpus, '
            'gpu_type as "GPU type", submitted_at as "submitted", started_at as "started", '
            'ends_at as "ends at the latest", coalesce(planned_start_at, eta_p50) as "expected" '
            "from odc_report.queue where partition ~ '^(${partition:pipe})$' "
            "order by started_at nulls last, eta_p50 nulls last, job_id limit 500",
            units=dict.fromkeys(("submitted", "started", "ends at the latest", "expected"), "dateTimeAsLocal"),
            column_links=to_job("job"),
        ) | {"w": 3},
        table(
            "Limits with at least 90 % used", ("sort_desc(odcd_limit_used_ratio >= 0.9)", ""), unit="percentunit",
            names={"Value": "used"},
        ),
    ]  # fmt: skip
