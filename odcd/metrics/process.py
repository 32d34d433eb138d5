"""Metrics of this process; every daemon exports its own."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from datetime import timedelta

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

from odcd import __version__
from odcd.front.watch import REFUSED, REJECTED, Refused, Rejected
from odcd.metrics.calls import Backend, CallMetrics, RoundMetrics
from odcd.metrics.families import MEASURES
from odcd.metrics.lines import Lines
from odcd.metrics.sample import MOST_FORMATS, Encoder, Sample

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
)


class Metrics:
    """Collaborators call the methods below; expose() returns everything for Prometheus."""

    def __init__(self) -> None:
        # Applies to the whole process: creation times would double the series of every counter.
        disable_created_metrics()
        self.registry = registry = CollectorRegistry()
        self._requests = Counter(
            "odcd_http_requests", "HTTP requests answered.", ["method", "route", "code"],
            registry=registry,
        )  # fmt: skip
        self._answers = Histogram(
            "odcd_http_request_duration_seconds",
            "Time from a request to the start of its answer; a stream starts at once, a long poll "
            "when there is news.",
            ["method", "route"], registry=registry, buckets=SHORT_BUCKETS,
        )  # fmt: skip
        self._limited = Counter(
            "odcd_requests_limited",
            "Requests answered by 429 because the user reached a limit.", ["limit"],
            registry=registry,
        )  # fmt: skip
        for limit in LIMITS:
            # Start at 0, so that the first rejection counts as an increase.
            self._limited.labels(limit)
        self._sockets = Gauge(
            "odcd_websockets_open", "Open WebSockets: terminals, and connections to dev servers.",
            ["route"], registry=registry,
        )  # fmt: skip
        self._sockets_ended = Counter(
            "odcd_websockets",
            "Closed WebSockets, by odcd's close code, or by the HTTP status of a refusal; left: "
            "the client closed it; broke: the connection was lost.",
            ["route", "code"], registry=registry,
        )  # fmt: skip
        self._connections = Gauge(
            "odcd_http_connections", "Open connections of clients.", registry=registry
        )
        self._connections_refused = Counter(
            "odcd_http_connections_refused",
            "Connections refused because of a limit (of the user, the address, TCP or this "
            "daemon), or because no descriptor was free.",
            ["reason"], registry=registry,
        )  # fmt: skip
        self._rejected = Counter(
            "odcd_http_requests_rejected",
            "Requests refused before they were processed: late or large headers, a slow body, not "
            "HTTP, a wrong host name, a failed TLS handshake.",
            ["reason"], registry=registry,
        )  # fmt: skip
        for refused in REFUSED:
            self._connections_refused.labels(refused)
        for rejected in REJECTED:
            self._rejected.labels(rejected)
        self._event_clients = Gauge(
            "odcd_event_clients", "Clients that follow a stream of events.", registry=registry
        )
        self._viewers = Gauge(
            "odcd_page_viewers", "Open pages that update themselves.", registry=registry
        )
        self._listener = Gauge(
            "odcd_listener_up",
            "1 while this daemon receives notifications of changes from the database.",
            registry=registry,
        )  # fmt: skip
        self._passes = Histogram(
            "odcd_scheduler_cycle_seconds", "Duration of scheduler passes.", registry=registry,
            buckets=PASS_BUCKETS,
        )  # fmt: skip
        self._refreshes = Histogram(
            "odcd_forecast_seconds", "Duration of refreshes of expected starts.",
            registry=registry, buckets=PASS_BUCKETS,
        )  # fmt: skip
        self._leading = Gauge("odcd_leader", "1 while this daemon leads.", registry=registry)
        self._term = Gauge(
            "odcd_leader_term_seen",
            "The newest term of a leader that this daemon has seen; 0: none yet.",
            registry=registry,
        )
        self._clock = Gauge(
            "odcd_clock_ahead_seconds",
            "How far this daemon's clock was ahead of PostgreSQL's when it last led or tried to "
            "lead.",
            registry=registry,
        )
        self._disk_free = Gauge(
            "odcd_database_disk_free_bytes",
            "Free space of the embedded database's disk; -1: the database is not embedded.",
            registry=registry,
        )
        self._disk_reserve = Gauge(
            "odcd_database_disk_reserve_bytes",
            "Jobs are refused while the embedded database's disk has less free space; 0: never.",
            registry=registry,
        )
        self._disk_free.set(-1)
        self._phase_limits = Gauge(
            "odcd_reservation_phase_limit_seconds",
            "How long a dev server may be in a phase before odc restarts it or fails it, by this "
            "daemon's settings.",
            ["phase"], registry=registry,
        )  # fmt: skip
        self._database = Gauge(
            "odcd_database_up", "1 while the database answers this daemon.", registry=registry
        )
        self._queries = Histogram(
            "odcd_database_request_seconds",
            "Duration of calls of SQL functions, without the wait for a connection.",
            ["operation"], registry=registry, buckets=SHORT_BUCKETS,
        )  # fmt: skip
        self._calls = CallMetrics(registry)
        self.rounds = RoundMetrics(registry)
        self._unmeasured = Counter(
            "odcd_sample_errors", "Measurements of the cluster that failed.", ["measure"],
            registry=registry,
        )  # fmt: skip
        for name in (*MEASURES, "fold_tally", "set_event_aside", "retry_aside", "render_job_info"):
            # Start at 0, so that the first failure counts as an increase.
            self._unmeasured.labels(name)
        build = Info("odcd_build", "Version of this daemon.", registry=registry)
        build.info({
            "version": __version__,
            "revision": os.environ.get("ODC_REVISION", "unknown"),
            "python": platform.python_version(),
        })  # fmt: skip
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self._lines: dict[str, Lines] = {}
        self._of_route: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._of_query: dict[str, Histogram] = {}
        self.last_pass: tuple[float, int] | None = None
        """When it was made, in seconds since the epoch, and how many jobs it considered."""

    # -- requests to this daemon -------------------------------------------------------------------

    def answered(self, method: str, route: str, code: int, seconds: float) -> None:
        key = (method, route, code)
        found = self._of_route.get(key)
        if found is None:
            found = self._of_route[key] = (
                self._requests.labels(method, route, str(code)),
                self._answers.labels(method, route),
            )
        found[0].inc()
        found[1].observe(seconds)

    def limited(self, limit: str) -> None:
        self._limited.labels(limit).inc()

    def connected(self, change: int) -> None:
        self._connections.inc(change)

    def connection_refused(self, reason: Refused, client: str | int = "") -> None:
        self._connections_refused.labels(reason).inc()

    def request_rejected(self, reason: Rejected, client: str | int = "") -> None:
        self._rejected.labels(reason).inc()

    def know_sockets(self, route: str) -> None:
        self._sockets.labels(route)
        self._sockets_ended.labels(route, "1000")

    def socket_opened(self, route: str) -> None:
        self._sockets.labels(route).inc()

    def socket_ended(self, route: str, code: str, *, opened: bool) -> None:
        if opened:
            self._sockets.labels(route).dec()
        self._sockets_ended.labels(route, code).inc()

    def watch_events(self, clients: Callable[[], int]) -> None:
        self._event_clients.set_function(clients)

    def viewers(self, count: int) -> None:
        self._viewers.set(count)

    # -- the daemon's work -------------------------------------------------------------------------

    def passed(self, seconds: float, looked: int, at: float) -> None:
        """A scheduling pass took this long and considered this many jobs; at: when it ended."""
        self._passes.observe(seconds)
        self.last_pass = (at, looked)

    def foresaw(self, seconds: float) -> None:
        """A refresh of the expected starts took this long."""
        self._refreshes.observe(seconds)

    def leading(self, leads: bool) -> None:
        self._leading.set(1 if leads else 0)
        if not leads:
            self.last_pass = None

    def saw_term(self, term: int) -> None:
        self._term.set(term)

    def limit_phases(self, limits: Mapping[str, timedelta]) -> None:
        for phase, limit in limits.items():
            self._phase_limits.labels(phase).set(limit.total_seconds())

    def unmeasured(self, measure: str) -> None:
        self._unmeasured.labels(measure).inc()

    # -- calls to others ---------------------------------------------------------------------------

    def watch_listener(self, listening: Callable[[], bool]) -> None:
        self._listener.set_function(listening)

    def watch_clock(self, ahead_s: Callable[[], float]) -> None:
        self._clock.set_function(ahead_s)

    def watch_disk(self, free: Callable[[], float], reserve: Callable[[], float]) -> None:
        self._disk_free.set_function(free)
        self._disk_reserve.set_function(reserve)

    def queried(self, operation: str, seconds: float) -> None:
        """The database answered, possibly with an error."""
        found = self._of_query.get(operation)
        if found is None:
            found = self._of_query[operation] = self._queries.labels(operation)
        found.observe(seconds)
        self._database.set(1)

    def database_down(self) -> None:
        self._database.set(0)

    def backend(self, name: str) -> Backend:
        return self._calls.backend(name)

    # -- exposition --------------------------------------------------------------------------------

    def expose(self, accept: str | None, sample: Sample | None) -> tuple[bytes, str]:
        """Return the metrics in the client's preferred format, with its media type."""
        encoder, content_type = negotiate(accept)
        lines = self._lines.get(content_type)
        if lines is None:
            lines = Lines(encoder)
            # Clients choose the content type, so the cache is limited.
            if len(self._lines) < MOST_FORMATS:
                self._lines[content_type] = lines
        body = lines.render(self.registry)
        if sample is not None:
            # The sample goes first, because the end marker of OpenMetrics is at the end of body.
            body = sample.render(encoder, content_type) + body
        return body, content_type


def negotiate(accept: str | None) -> tuple[Encoder, str]:
    return choose_encoder(accept or "")
