"""Metrics of calls to the systems that odc controls: Kubernetes, AWS and the runner."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


def any_error(error: Exception) -> bool:
    return True


class Calls(Protocol):
    """operation: one of a small fixed set of names; never a name that a user chose."""

    def took(self, operation: str, seconds: float) -> None: ...

    def failed(self, operation: str) -> None: ...

    def asking(
        self, operation: str, *, timed: bool = True, fails: Callable[[Exception], bool] = any_error
    ) -> AbstractContextManager[None]:
        """Wrap a call. fails: whether an exception it raised counts as an error. timed: False for a
        call that stays open."""
        ...


class _Nobody:
    def took(self, operation: str, seconds: float) -> None:
        pass

    def failed(self, operation: str) -> None:
        pass

    def asking(
        self, operation: str, *, timed: bool = True, fails: Callable[[Exception], bool] = any_error
    ) -> AbstractContextManager[None]:
        return nullcontext()


NOBODY: Calls = _Nobody()
