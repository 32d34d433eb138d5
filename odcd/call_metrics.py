"""Who is told how calls of what odc commands went: of Kubernetes, AWS, the runner."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


def any_error(error: Exception) -> bool:
    return True


class Calls(Protocol):
    """operation: one of few, and nothing of what users named."""

    def took(self, operation: str, seconds: float) -> None: ...

    def failed(self, operation: str) -> None: ...

    def asking(
        self, operation: str, *, timed: bool = True, fails: Callable[[Exception], bool] = any_error
    ) -> AbstractContextManager[None]:
        """Around a call. fails: is what it raised an error? timed: false for what stays open."""
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
