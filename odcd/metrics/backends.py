"""Count and time the requests to one backend."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import perf_counter

from prometheus_client import Counter, Histogram

from odcd.call_metrics import any_error

BACKENDS = ("kubernetes", "aws", "runner", "prometheus", "nvml")


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
