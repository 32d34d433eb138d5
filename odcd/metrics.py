"""What Prometheus reads: counters the daemon keeps, and the queue's numbers when asked."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PASS_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """Collaborators call the methods below; render() adds what `odc.diagnose` told."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "odc_http_requests",
            "HTTP requests answered.",
            ["method", "path", "status"],
            registry=registry,
        )
        self._submitted = Counter("odc_jobs_submitted", "Jobs accepted.", registry=registry)
        self._passes = Histogram(
            "odc_pass_seconds", "How long passes took.", registry=registry, buckets=PASS_BUCKETS
        )
        self._started = Counter("odc_jobs_started", "Jobs started by passes.", registry=registry)
        self._jobs = Gauge("odc_jobs", "Live jobs by state.", ["state"], registry=registry)
        self._tasks = Gauge(
            "odc_pending_tasks", "Jobs and array tasks that wait.", registry=registry
        )
        self._oldest = Gauge(
            "odc_oldest_pending_seconds", "Age of the job that waits longest.", registry=registry
        )
        self._nodes = Gauge("odc_nodes", "Nodes by state.", ["state"], registry=registry)
        self._gpus = Gauge("odc_gpus", "GPUs of all nodes.", registry=registry)
        self._gpus_used = Gauge("odc_gpus_used", "GPUs given to jobs.", registry=registry)
        self._free = Gauge(
            "odc_gpus_free", "Free GPUs of nodes that are up.", ["gpu_type"], registry=registry
        )
        self._fragmented = Gauge(
            "odc_gpus_free_fragmented",
            "Those of them on nodes with some of their GPUs taken.",
            ["gpu_type"],
            registry=registry,
        )
        self._fits = Gauge(
            "odc_gpu_fits",
            "How many jobs with so many GPUs on one node could start.",
            ["gpu_type", "gpus"],
            registry=registry,
        )
        self._largest_gang = Gauge(
            "odc_largest_gang_nodes",
            "Whole nodes that one gang could take.",
            ["gpu_type"],
            registry=registry,
        )
        self._refreshes = Histogram(
            "odc_forecast_seconds",
            "How long refreshes of expected starts took.",
            registry=registry,
            buckets=PASS_BUCKETS,
        )
        self._eta_scored = Gauge(
            "odc_eta_scored",
            "Jobs started in 7 days that had an expected start.",
            registry=registry,
        )
        self._eta_coverage = Gauge(
            "odc_eta_coverage",
            "Fraction of them that started between p10 and p90; 0.8 is right.",
            registry=registry,
        )
        self._eta_error = Gauge(
            "odc_eta_error_seconds", "Their mean distance from p50.", registry=registry
        )
        self._eta_bias = Gauge(
            "odc_eta_bias_seconds",
            "Mean of p50 less start: positive when jobs start earlier than told.",
            registry=registry,
        )
        self._eta_width = Gauge(
            "odc_eta_width_seconds", "Mean distance from p10 to p90.", registry=registry
        )
        self._term = Gauge("odc_term", "The term of the leader.", registry=registry)
        self._leading = Gauge("odc_leader", "1 while this daemon leads.", registry=registry)
        self._children: dict[tuple[str, str, int], Counter] = {}

    def answered(self, method: str, path: str, status: int) -> None:
        key = (method, path, status)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._requests.labels(method, path, str(status))
        child.inc()

    def submitted(self, jobs: int) -> None:
        self._submitted.inc(jobs)

    def passed(self, seconds: float, started: int) -> None:
        """A pass of the planner took this long and started so many jobs."""
        self._passes.observe(seconds)
        self._started.inc(started)

    def foresaw(self, seconds: float) -> None:
        """A refresh of the expected starts took this long."""
        self._refreshes.observe(seconds)

    def leading(self, leads: bool) -> None:
        self._leading.set(1 if leads else 0)

    def render(self, diag: dict[str, Any], types: list[dict[str, Any]]) -> bytes:
        """The exposition, with what odc.diagnose and odc.list_fragmentation answered."""
        for state, count in diag["jobs"].items():
            self._jobs.labels(state).set(count)
        for state, count in diag["nodes"].items():
            self._nodes.labels(state).set(count)
        self._tasks.set(diag["pending_tasks"])
        self._oldest.set(diag["oldest_pending_s"] or 0)
        self._gpus.set(diag["gpus"]["total"])
        self._gpus_used.set(diag["gpus"]["used"])
        for gauge in (self._free, self._fragmented, self._fits, self._largest_gang):
            gauge.clear()  # of types that are gone
        for kind in types:
            name = kind["gpu_type"]
            self._free.labels(name).set(kind["gpus_free"])
            self._fragmented.labels(name).set(kind["gpus_free"] - kind["gpus_whole"])
            self._largest_gang.labels(name).set(kind["largest_gang"])
            for gpus, jobs in kind["fits"].items():
                self._fits.labels(name, gpus).set(jobs)
        eta = diag["eta"]
        self._eta_scored.set(eta["scored"])
        if eta["scored"]:
            self._eta_coverage.set(eta["coverage"])
            self._eta_error.set(eta["mean_abs_error_s"])
            self._eta_bias.set(eta["bias_s"])
            self._eta_width.set(eta["mean_width_s"])
        self._term.set(diag["leader"]["term"])
        return generate_latest(self._registry)
