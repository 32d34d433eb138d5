"""The health of odc itself."""

from __future__ import annotations

from grafana.dashboard import dashboard
from grafana.links import runbook
from grafana.model import Json
from grafana.panels import bars, heatmap, stat, table, timeseries


def board() -> Json:
    return dashboard(
        "odc-scheduler",
        "odc: scheduler",
        "Passes, planned starts, leadership, PostgreSQL, requests to other services, and the API.",
        [
            ("", 4, _now()),
            ("Passes", 8, _passes()),
            ("Planned starts", 8, _promises()),
            ("Leadership and PostgreSQL", 8, _database()),
            ("Requests to other services", 8, _backends()),
            ("API", 8, _api()),
            ("Daemons", 8, _process()),
        ],
        since="now-3h",
    )


def _now() -> list[Json]:
    return [
        stat("Leaders", ("sum(odcd_leader)", ""), red_below=1, links=[runbook("OdcNoLeader")]),
        stat(
            "Last pass", ("time() - max(odcd_scheduler_last_success_timestamp_seconds)", ""), unit="s",
            red_above=180, links=[runbook("OdcPlannerSilent")],
        ),
        stat(
            "Age of these metrics", ("time() - max(odcd_sample_timestamp_seconds)", ""), unit="s", red_above=120,
            links=[runbook("OdcSampleOld")],
        ),
        stat("Daemons connected to PostgreSQL", ("sum(odcd_database_up)", ""), red_below=1, links=[runbook("OdcDatabaseDown")]),
        stat("Daemons that listen for notifications", ("sum(odcd_listener_up)", ""), red_below=1, description="Notifications of PostgreSQL about changes."),
        table(
            "Firing alerts", ('sum by (alertname, severity) (ALERTS{alertname=~"Odc.*",alertstate="firing"})', ""), hide=["Value"],
        ) | {"w": 2},
    ]  # fmt: skip


def _passes() -> list[Json]:
    return [
        heatmap(
            "Duration of passes", "sum by (le) (increase(odcd_scheduler_cycle_seconds_bucket[$__rate_interval]))",
            links=[runbook("OdcPlannerSilent")],
        ),
        timeseries(
            "90th percentile of passes and of refreshes of expected starts",
            ("histogram_quantile(0.9, sum by (le) (rate(odcd_scheduler_cycle_seconds_bucket[$__rate_interval])))", "pass"),
            ("histogram_quantile(0.9, sum by (le) (rate(odcd_forecast_seconds_bucket[$__rate_interval])))", "expected starts"),
            unit="s",
        ),
        timeseries("Passes per minute", ("sum(rate(odcd_scheduler_cycle_seconds_count[$__rate_interval])) * 60", "passes")),
        timeseries("Jobs that the last pass considered", ("max(odcd_scheduler_jobs_considered)", "jobs")),
    ]  # fmt: skip


def _promises() -> list[Json]:
    return [
        timeseries("Jobs with a planned start", ("sum(odcd_planned_starts)", "planned")),
        timeseries(
            "Planned starts kept and moved per hour",
            ("sum(rate(odcd_planned_starts_kept_total[$__rate_interval])) * 3600", "kept"),
            ("sum by (because) (rate(odcd_planned_starts_moved_total[$__rate_interval])) * 3600", "moved: {{because}}"),
        ),
        bars("Planned starts moved in this time range, by reason", ("sum by (because) (increase(odcd_planned_starts_moved_total[$__range]))", "{{because}}")),
    ]  # fmt: skip


def _database() -> list[Json]:
    return [
        timeseries("Leader", ("odcd_leader", "{{instance}}"), links=[runbook("OdcNoLeader")]),
        timeseries(
            "Time since the leader took over", ("time() - max(odcd_leader_since_timestamp_seconds)", "leader for"), unit="s",
        ),
        timeseries("Term", ("max(odcd_leader_term)", "term"), description="Each new leader has a higher term.", links=[runbook("OdcLeaderChanges")]),
        timeseries(
            "90th percentile of database calls",
            ("topk(8, histogram_quantile(0.9, sum by (operation, le) (rate(odcd_database_request_seconds_bucket[$__rate_interval]))))", "{{operation}}"),
            unit="s", links=[runbook("OdcDatabaseDown")],
        ),
        timeseries("Connections", ("sum by (state) (odcd_database_connections)", "{{state}}"), stack=True),
        timeseries("Standby lag", ("max by (replica) (odcd_database_replication_lag_seconds)", "{{replica}}"), unit="s", links=[runbook("OdcReplicationLag")]),
        timeseries("Oldest transaction", ("max(odcd_database_oldest_snapshot_seconds)", "open for"), unit="s", links=[runbook("OdcOldTransaction")]),
        timeseries("Size of the database", ("max(odcd_database_bytes)", "database"), unit="bytes"),
    ]  # fmt: skip


def _backends() -> list[Json]:
    return [
        timeseries(
            "Errors per second", ("sum by (backend, operation) (rate(odcd_backend_errors_total[$__rate_interval]))", "{{backend}} {{operation}}"),
            links=[runbook("OdcBackendErrors")],
        ),
        timeseries(
            "90th percentile of response times",
            ("histogram_quantile(0.9, sum by (backend, operation, le) (rate(odcd_backend_request_seconds_bucket[$__rate_interval])))", "{{backend}} {{operation}}"),
            unit="s",
        ),
        timeseries(
            "GPU usage not stored yet", ("sum(odcd_gpu_use_pending)", "attempts"),
            description="Ended attempts whose usage has not been read from Prometheus yet.", links=[runbook("OdcGpuUsePending")],
        ),
        timeseries("Prometheus errors per second", ("sum by (operation) (rate(odcd_backend_errors_total{backend='prometheus'}[$__rate_interval]))", "{{operation}}")),
    ]  # fmt: skip


def _api() -> list[Json]:
    return [
        timeseries("Requests per second", ("sum by (code) (rate(odcd_http_requests_total[$__rate_interval]))", "{{code}}"), stack=True, links=[runbook("OdcApiErrors")]),
        timeseries(
            "90th percentile of the API's response times",
            ("topk(8, histogram_quantile(0.9, sum by (route, le) (rate(odcd_http_request_duration_seconds_bucket[$__rate_interval]))))", "{{route}}"),
            unit="s",
        ),
        timeseries(
            "Event streams and page viewers", ("sum(odcd_event_clients)", "event streams"), ("sum(odcd_page_viewers)", "viewers of the page"),
        ),
        timeseries(
            "Open WebSockets", ("sum by (route) (odcd_websockets_open)", "{{route}}"), stack=True,
            description="Terminals, and connections to dev servers by SSH and Jupyter.",
        ),
        timeseries(
            "WebSockets closed per hour", ("sum by (code) (rate(odcd_websockets_total[$__rate_interval])) * 3600", "{{code}}"),
            description="left: the client disconnected. 1000: done. 1012: the daemon stopped. 4xxx: refused.",
        ),
    ]  # fmt: skip


def _process() -> list[Json]:
    ours = "* on (instance, job) group_left () max by (instance, job) (odcd_build_info)"
    return [
        timeseries("CPUs", (f"rate(process_cpu_seconds_total[$__rate_interval]) {ours}", "{{instance}}")),
        timeseries("Memory", (f"process_resident_memory_bytes {ours}", "{{instance}}"), unit="bytes"),
        timeseries("Duration of a measurement", ("max(odcd_sample_seconds)", "sample"), unit="s", links=[runbook("OdcSampleOld")]),
        table("Versions", ("max by (instance, version, revision, python) (odcd_build_info)", ""), hide=["Value"]) | {"w": 1},
    ]  # fmt: skip
