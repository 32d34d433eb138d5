"""Dev servers, from the wait until the end, and their disks."""

from __future__ import annotations

from grafana.dashboard import dashboard
from grafana.links import runbook, to_job
from grafana.model import Json
from grafana.panels import bars, heatmap, rows_of, stat, timeseries

PHASES = "odcd_reservation_phase_seconds_bucket"


def board() -> Json:
    return dashboard(
        "odc-dev-servers",
        "odc: dev servers and disks",
        "How long dev servers take to become active, whether they end on time, and whether their disks are saved.",
        [
            ("", 4, _now()),
            ("Preparation", 9, _phases()),
            ("Disks", 9, _disks()),
            ("Now", 10, _tables()),
        ],
    )


def _now() -> list[Json]:
    return [
        stat("Active", ('sum(odcd_reservations{status="active"})', "")),
        stat("Being prepared", ('sum(odcd_reservations{status="preparing"})', "")),
        stat("Waiting", ('sum(odcd_reservations{status=~"pending|queued"})', "")),
        stat(
            "Longest time in one phase", ("max(odcd_reservation_phase_oldest_seconds{phase!~'queued|active'})", ""), unit="s", red_above=1800,
            links=[runbook("OdcPhaseStuck")],
        ),
        stat("Longest overrun of a job's end", ("max(odcd_expiry_lag_seconds)", ""), unit="s", red_above=300, links=[runbook("OdcExpiryLate")]),
        stat(
            "Longest time without a snapshot", ("max(odcd_disk_unsaved_seconds)", ""), unit="s", red_above=7200,
            links=[runbook("OdcDiskUnsaved")],
        ),
        stat("Orphans", ("sum(odcd_orphans)", ""), red_above=1, links=[runbook("OdcOrphans")]),
    ]  # fmt: skip


def _phases() -> list[Json]:
    return [
        timeseries("Dev servers by status", ("sum by (status) (odcd_reservations)", "{{status}}"), stack=True),
        timeseries("Dev servers by phase", ("sum by (phase) (odcd_reservation_phase)", "{{phase}}"), stack=True),
        timeseries(
            "90th percentile of the time in each phase",
            (f"histogram_quantile(0.9, sum by (phase, le) (rate({PHASES}[6h])))", "{{phase}}"), unit="s",
        ),
        heatmap("Duration of all phases", f"sum by (le) (increase({PHASES}[$__rate_interval]))"),
    ]  # fmt: skip


def _disks() -> list[Json]:
    return [
        timeseries("Disks by state", ("sum by (state) (odcd_disks)", "{{state}}"), stack=True),
        timeseries("Snapshots by state", ("sum by (state) (odcd_snapshots)", "{{state}}"), stack=True),
        timeseries(
            "Oldest problem of each kind",
            ("max(odcd_snapshot_pending_seconds)", "snapshot not completed"),
            ("max(odcd_disk_unsaved_seconds)", "data without a snapshot"),
            ("max(odcd_disk_lock_stale_seconds)", "locked by an ended dev server"),
            unit="s", links=[runbook("OdcSnapshotOld"), runbook("OdcDiskLockStale")],
        ),
        timeseries("Orphans by kind", ("sum by (kind) (odcd_orphans)", "{{kind}}"), links=[runbook("OdcOrphans")]),
        bars("Orphans found in this time range", ("sum by (kind) (increase(odcd_orphans_found_total[$__range]))", "{{kind}}")),
    ]  # fmt: skip


def _tables() -> list[Json]:
    return [
        rows_of(
            "Dev servers",
            'select job_id as "job", "user", name, state, gpus, gpu_type as "GPU type", phase, phase_since as "in it since", '
            'launched_at as "active since", expires_at as "until", extensions, disk_id as "disk" '
            "from odc_report.dev_server order by job_id limit 300",
            units=dict.fromkeys(("in it since", "active since", "until"), "dateTimeAsLocal"),
            column_links=to_job("job", "Open the job"),
        ),
        rows_of(
            "Disks",
            'select disk_id as "disk", "user", size_gib as "GiB", state, held_by_job as "held by", snapshots, '
            'last_snapshot_at as "last snapshot", pending_since as "saving since" '
            "from odc_report.disk where deleted_at is null order by state = 'trouble' desc, pending_since nulls last, disk_id limit 300",
            units={"last snapshot": "dateTimeAsLocal", "saving since": "dateTimeAsLocal"},
            column_links=to_job("held by", "Open the job"),
        ),
    ]  # fmt: skip
