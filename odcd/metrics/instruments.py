"""Define the Prometheus instruments of one process: names, labels and help texts.

Each class has the instruments of one subject, and no other attributes: docs/reference/metrics.md
lists them in this order.
"""

from __future__ import annotations

import os
import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from odcd import __version__
from odcd.front.watch import REFUSED, REJECTED
from odcd.metrics.families import MEASURES

PASS_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
SHORT_BUCKETS = (0.002, 0.01, 0.05, 0.25, 1.0, 5.0)
"""For metrics with many labels: each bucket is one series per label combination."""
LIMITS = (
    "requests",
    "streams",
    "sockets",
    "submits",
    "pending",
    "stored",
    "statements",
    "bodies",
    "answers",
    "lookups",
)


class RequestInstruments:
    """HTTP requests to this daemon."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.answered = Counter(
            "odcd_http_requests", "HTTP requests answered.", ["method", "route", "code"],
            registry=registry,
        )  # fmt: skip
        self.durations = Histogram(
            "odcd_http_request_duration_seconds",
            "Time from a request to the start of its answer; a stream starts at once, a long poll "
            "when there is news.",
            ["method", "route"], registry=registry, buckets=SHORT_BUCKETS,
        )  # fmt: skip
        self.limited = Counter(
            "odcd_requests_limited",
            "Requests answered by 429 because the user reached a limit.", ["limit"],
            registry=registry,
        )  # fmt: skip
        for limit in LIMITS:
            # Start at 0, so that the first rejection counts as an increase.
            self.limited.labels(limit)


class ConnectionInstruments:
    """Connections of HTTP clients, WebSockets included."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.sockets = Gauge(
            "odcd_websockets_open", "Open WebSockets: terminals, and connections to dev servers.",
            ["route"], registry=registry,
        )  # fmt: skip
        self.sockets_ended = Counter(
            "odcd_websockets",
            "Closed WebSockets, by odcd's close code, or by the HTTP status of a refusal; left: "
            "the client closed it; broke: the connection was lost.",
            ["route", "code"], registry=registry,
        )  # fmt: skip
        self.current = Gauge(
            "odcd_http_connections", "Open connections of clients.", registry=registry
        )
        self.refused = Counter(
            "odcd_http_connections_refused",
            "Connections refused because of a limit (of the user, the address, TCP or this "
            "daemon), or because no descriptor was free.",
            ["reason"], registry=registry,
        )  # fmt: skip
        self.rejected = Counter(
            "odcd_http_requests_rejected",
            "Requests refused before they were processed: late or large headers, a slow body, not "
            "HTTP, a wrong host name, a failed TLS handshake.",
            ["reason"], registry=registry,
        )  # fmt: skip
        for refused in REFUSED:
            self.refused.labels(refused)
        for rejected in REJECTED:
            self.rejected.labels(rejected)


class EventInstruments:
    """Streams of events to clients, and the notifications that feed them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.clients = Gauge(
            "odcd_event_clients", "Clients that follow a stream of events.", registry=registry
        )
        self.viewers = Gauge(
            "odcd_page_viewers", "Open pages that update themselves.", registry=registry
        )
        self.listener = Gauge(
            "odcd_listener_up",
            "1 while this daemon receives notifications of changes from the database.",
            registry=registry,
        )  # fmt: skip


class SchedulerInstruments:
    """Scheduler passes, refreshes of expected starts, and leadership."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.passes = Histogram(
            "odcd_scheduler_cycle_seconds", "Duration of scheduler passes.", registry=registry,
            buckets=PASS_BUCKETS,
        )  # fmt: skip
        self.refreshes = Histogram(
            "odcd_forecast_seconds", "Duration of refreshes of expected starts.",
            registry=registry, buckets=PASS_BUCKETS,
        )  # fmt: skip
        self.leading = Gauge("odcd_leader", "1 while this daemon leads.", registry=registry)
        self.term = Gauge(
            "odcd_leader_term_seen",
            "The newest term of a leader that this daemon has seen; 0: none yet.",
            registry=registry,
        )
        self.clock = Gauge(
            "odcd_clock_ahead_seconds",
            "How far this daemon's clock was ahead of PostgreSQL's when it last led or tried to "
            "lead.",
            registry=registry,
        )


class LimitInstruments:
    """Limits from settings: the reserve of the database's disk, and how long phases may take."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.disk_free = Gauge(
            "odcd_database_disk_free_bytes",
            "Free space of the embedded database's disk; -1: the database is not embedded.",
            registry=registry,
        )
        self.disk_reserve = Gauge(
            "odcd_database_disk_reserve_bytes",
            "Jobs are refused while the embedded database's disk has less free space; 0: never.",
            registry=registry,
        )
        self.disk_free.set(-1)
        self.phases = Gauge(
            "odcd_reservation_phase_limit_seconds",
            "How long a dev server may be in a phase before odc restarts it or fails it, by this "
            "daemon's settings.",
            ["phase"], registry=registry,
        )  # fmt: skip


class DatabaseInstruments:
    """Calls of SQL functions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.up = Gauge(
            "odcd_database_up", "1 while the database answers this daemon.", registry=registry
        )
        self.queries = Histogram(
            "odcd_database_request_seconds",
            "Duration of calls of SQL functions, without the wait for a connection.",
            ["operation"], registry=registry, buckets=SHORT_BUCKETS,
        )  # fmt: skip


class SampleInstruments:
    """The leader's measurements of the cluster."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.failures = Counter(
            "odcd_sample_errors", "Measurements of the cluster that failed.", ["measure"],
            registry=registry,
        )  # fmt: skip
        for name in (*MEASURES, "fold_tally", "set_event_aside", "retry_aside", "render_job_info"):
            # Start at 0, so that the first failure counts as an increase.
            self.failures.labels(name)


def register_build(registry: CollectorRegistry) -> None:
    """Export the version of this daemon."""
    build = Info("odcd_build", "Version of this daemon.", registry=registry)
    build.info({
        "version": __version__,
        "revision": os.environ.get("ODC_REVISION", "unknown"),
        "python": platform.python_version(),
    })  # fmt: skip
