"""Exit codes, and the failures that end a command with one of them.

Every failure is printed as: what happened (OD code), then a hint on a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

DONE = 0
REFUSED = 1
USAGE = 2
UNREACHABLE = 3
NO_EXIT_CODE = 4
"""Of `wait` and `run`: the job ended in a state other than COMPLETED, without a failing code."""
INTERRUPTED = 130
BROKEN_PIPE = 141


class Failure(Exception):
    """The command failed. message starts in lowercase; hint is a sentence or several lines."""

    exit_code = REFUSED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class WrongUsage(Failure):
    exit_code = USAGE


class Unreachable(Failure):
    exit_code = UNREACHABLE


class Refused(Failure):
    """The daemon rejected the request; its answer is application/problem+json."""

    def __init__(
        self, status: int, problem: Mapping[str, Any], retry_after_s: int | None = None
    ) -> None:
        """retry_after_s: the server accepts the request again after that time; None: not known."""
        self.retry_after_s = retry_after_s
        self.status = status
        self.problem = problem
        self.code: str | None = problem.get("code")
        message = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
        super().__init__(message, problem.get("hint"))

    @property
    def title(self) -> str:
        return str(self.problem.get("title", ""))


def job_exit_code(jobs: Iterable[Mapping[str, Any]]) -> int:
    """The exit code for these ended jobs: the highest of their own codes."""
    return max(map(_one_exit_code, jobs), default=NO_EXIT_CODE)


def _one_exit_code(job: Mapping[str, Any]) -> int:
    if job["state"] == "COMPLETED":
        return DONE
    if job.get("signal"):
        return 128 + int(job["signal"])
    # A job over its time limit may have exited with 0; that is not a success.
    return int(job.get("exit_code") or NO_EXIT_CODE)
