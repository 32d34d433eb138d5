"""Metrics of this process; every daemon exports its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics import MetricWrapperBase

from odcd.front.watch import Refused, Rejected
from odcd.metrics.calls import Backend, CallMetrics, RoundMetrics
from odcd.metrics.instruments import (
    ConnectionInstruments,
    DatabaseInstruments,
    EventInstruments,
    LimitInstruments,
    RequestInstruments,
    SampleInstruments,
    SchedulerInstruments,
    register_build,
)
from odcd.metrics.lines import Lines
from odcd.metrics.sample import MAX_FORMATS, Encoder, Sample


class Metrics:
    """Collaborators call the methods below; expose() returns everything for Prometheus."""

    def __init__(self) -> None:
        # Applies to the whole process: creation times would double the series of every counter.
        disable_created_metrics()
        self.registry = registry = CollectorRegistry()
        self._requests = RequestInstruments(registry)
        self._connections = ConnectionInstruments(registry)
        self._events = EventInstruments(registry)
        self._scheduler = SchedulerInstruments(registry)
        self._limits = LimitInstruments(registry)
        self._database = DatabaseInstruments(registry)
        self._calls = CallMetrics(registry)
        self.rounds = RoundMetrics(registry)
        self._sample = SampleInstruments(registry)
        register_build(registry)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self._lines: dict[str, Lines] = {}
        self._of_route: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._of_query: dict[str, Histogram] = {}
        self.last_pass: tuple[float, int] | None = None
        """When it was made, in seconds since the epoch, and how many jobs it considered."""

    def instruments(self) -> Iterator[MetricWrapperBase]:
        """Every instrument that odc defines, in the order of the reference."""
        for group in (
            self._requests, self._connections, self._events, self._scheduler, self._limits,
            self._database, self._calls, self.rounds, self._sample,
        ):  # fmt: skip
            yield from vars(group).values()

    # -- requests to this daemon -------------------------------------------------------------------

    def answered(self, method: str, route: str, code: int, seconds: float) -> None:
        key = (method, route, code)
        found = self._of_route.get(key)
        if found is None:
            found = self._of_route[key] = (
                self._requests.answered.labels(method, route, str(code)),
                self._requests.durations.labels(method, route),
            )
        found[0].inc()
        found[1].observe(seconds)

    def limited(self, limit: str) -> None:
        self._requests.limited.labels(limit).inc()

    def connected(self, change: int) -> None:
        self._connections.current.inc(change)

    def connection_refused(self, reason: Refused, client: str | int = "") -> None:
        self._connections.refused.labels(reason).inc()

    def request_rejected(self, reason: Rejected, client: str | int = "") -> None:
        self._connections.rejected.labels(reason).inc()

    def know_sockets(self, route: str) -> None:
        self._connections.sockets.labels(route)
        self._connections.sockets_ended.labels(route, "1000")

    def socket_opened(self, route: str) -> None:
        self._connections.sockets.labels(route).inc()

    def socket_ended(self, route: str, code: str, *, opened: bool) -> None:
        if opened:
            self._connections.sockets.labels(route).dec()
        self._connections.sockets_ended.labels(route, code).inc()

    def watch_events(self, clients: Callable[[], int]) -> None:
        self._events.clients.set_function(clients)

    def viewers(self, count: int) -> None:
        self._events.viewers.set(count)

    # -- the daemon's work -------------------------------------------------------------------------

    def passed(self, seconds: float, looked: int, at: float) -> None:
        """A scheduling pass took this long and considered this many jobs; at: when it ended."""
        self._scheduler.passes.observe(seconds)
        self.last_pass = (at, looked)

    def foresaw(self, seconds: float) -> None:
        """A refresh of the expected starts took this long."""
        self._scheduler.refreshes.observe(seconds)

    def leading(self, leads: bool) -> None:
        self._scheduler.leading.set(1 if leads else 0)
        if not leads:
            self.last_pass = None

    def saw_term(self, term: int) -> None:
        self._scheduler.term.set(term)

    def limit_phases(self, limits: Mapping[str, timedelta]) -> None:
        for phase, limit in limits.items():
            self._limits.phases.labels(phase).set(limit.total_seconds())

    def unmeasured(self, measure: str) -> None:
        self._sample.failures.labels(measure).inc()

    # -- calls to others ---------------------------------------------------------------------------

    def watch_listener(self, listening: Callable[[], bool]) -> None:
        self._events.listener.set_function(listening)

    def watch_clock(self, ahead_s: Callable[[], float]) -> None:
        self._scheduler.clock.set_function(ahead_s)

    def watch_disk(self, free: Callable[[], float], reserve: Callable[[], float]) -> None:
        self._limits.disk_free.set_function(free)
        self._limits.disk_reserve.set_function(reserve)

    def queried(self, operation: str, seconds: float) -> None:
        """The database answered, possibly with an error."""
        found = self._of_query.get(operation)
        if found is None:
            found = self._of_query[operation] = self._database.queries.labels(operation)
        found.observe(seconds)
        self._database.up.set(1)

    def database_down(self) -> None:
        self._database.up.set(0)

    def backend(self, name: str) -> Backend:
        return self._calls.backend(name)

    # -- exposition --------------------------------------------------------------------------------

    def expose(self, accept: str | None, sample: Sample | None) -> tuple[bytes, str]:
        """Return the metrics in the client's preferred format, with its media type."""
        encoder, content_type = negotiate(accept)
        lines = self._lines.get(content_type)
        if lines is None:
            lines = Lines(encoder)
            if len(self._lines) < MAX_FORMATS:
                self._lines[content_type] = lines
        body = lines.render(self.registry)
        if sample is not None:
            # The sample goes first, because the end marker of OpenMetrics is at the end of body.
            body = sample.render(encoder, content_type) + body
        return body, content_type


_KNOWN = re.compile(
    r"(text/plain; version=(0\.0\.4|1\.0\.0)|application/openmetrics-text; version=1\.0\.0)"
    r"; charset=utf-8(; escaping=(allow-utf-8|underscores))?"
)


def negotiate(accept: str | None) -> tuple[Encoder, str]:
    """The library copies any version from the header: then each would be a format of its own."""
    try:
        found = choose_encoder(accept or "")
    except (TypeError, ValueError):  # the header has a version that is no number
        found = choose_encoder("")
    return found if _KNOWN.fullmatch(found[1]) else choose_encoder("")
