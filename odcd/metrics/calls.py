"""Metrics of calls to the systems that odc controls, and of the leader's rounds."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from odcd.call_metrics import any_error
from odcd.isolation import LOOPS
from odcd.records.notification import CHANNELS

CALL_BUCKETS = (0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 30.0)
BACKENDS = ("kubernetes", "aws", "runner", "prometheus", "nvml")


class CallMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Histogram(
            "odcd_backend_request_seconds",
            "Duration of requests to backends, such as Kubernetes, AWS and the runner.",
            ["backend", "operation"], registry=registry, buckets=CALL_BUCKETS,
        )  # fmt: skip
        self._errors = Counter(
            "odcd_backend_errors", "Failed requests to backends.", ["backend", "operation"],
            registry=registry,
        )  # fmt: skip

    def backend(self, name: str) -> Backend:
        assert name in BACKENDS
        return Backend(name, self._calls, self._errors)


class RoundMetrics:
    """Implements odcd.loops.rounds.RoundMetrics and odcd.isolation.IsolationWatch."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._rounds = Histogram(
            "odcd_leader_round_seconds",
            "Duration of rounds of the leader's loops over dev servers and quarantined nodes.",
            ["loop"], registry=registry, buckets=CALL_BUCKETS,
        )  # fmt: skip
        self._failures = Counter(
            "odcd_leader_round_failures", "Failed attempts to reach a dev server in such a round.",
            ["loop"], registry=registry,
        )  # fmt: skip

        self._isolated = Counter(
            "odcd_isolated",
            "Items that a loop of the leader could not process, so that they were set aside, held "
            "or failed; loops: a whole loop failed and was restarted.",
            ["loop"], registry=registry,
        )  # fmt: skip
        self._aside = Gauge(
            "odcd_isolated_items", "Items that are set aside now and tried again later.", ["loop"],
            registry=registry,
        )  # fmt: skip
        self._notified = Counter(
            "odcd_notifications",
            "Notifications by mail and webhook that this daemon sent, will send again, or gave up.",
            ["channel", "result"], registry=registry,
        )  # fmt: skip
        for channel in CHANNELS:
            for result in ("sent", "retried", "given_up"):
                self._notified.labels(channel, result)
        for loop in LOOPS:
            # Start at 0, so that the first one counts as an increase.
            self._isolated.labels(loop)
            self._aside.labels(loop)

    def notified(self, channel: str, result: str) -> None:
        self._notified.labels(channel, result).inc()

    def isolated(self, loop: str) -> None:
        self._isolated.labels(loop).inc()

    def count_aside(self, loop: str, more: int) -> None:
        self._aside.labels(loop).inc(more)

    def end_term(self) -> None:
        """Another leader tries all items again."""
        for loop in LOOPS:
            self._aside.labels(loop).set(0)

    def round_took(self, loop: str, seconds: float) -> None:
        # Both metrics of a loop begin together, so that the first failure counts as an increase.
        self._failures.labels(loop)
        self._rounds.labels(loop).observe(seconds)

    def round_failed(self, loop: str) -> None:
        self._failures.labels(loop).inc()


class Backend:
    """Implements odcd.call_metrics.Calls for one of BACKENDS."""

    def __init__(self, name: str, calls: Histogram, errors: Counter) -> None:
        self._name = name
        self._calls = calls
        self._errors = errors
        self._known: dict[str, tuple[Histogram, Counter]] = {}

    def _of(self, operation: str) -> tuple[Histogram, Counter]:
        found = self._known.get(operation)
        if found is None:
            found = self._known[operation] = (
                self._calls.labels(self._name, operation),
                self._errors.labels(self._name, operation),
            )
        return found

    def took(self, operation: str, seconds: float) -> None:
        self._of(operation)[0].observe(seconds)

    def failed(self, operation: str) -> None:
        self._of(operation)[1].inc()

    @contextmanager
    def asking(
        self, operation: str, *, timed: bool = True, fails: Callable[[Exception], bool] = any_error
    ) -> Generator[None]:
        begun = perf_counter()
        try:
            yield
        except Exception as error:
            if fails(error):
                self.failed(operation)
            raise
        finally:
            if timed:
                self.took(operation, perf_counter() - begun)
