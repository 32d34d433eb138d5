"""The exceptions of the client.

OdcError
├── Unreachable         no daemon answers, or it did not answer in time
├── WrongArgument       an argument of a call cannot be used; also a ValueError
├── WrongSettings       an address, a key or a configuration file cannot be used
├── Refused             the daemon rejected the request; `problem` is its answer
│   ├── Unauthenticated    401: no API key, or it is unknown or has expired
│   ├── Forbidden          403
│   └── NotFound           404
├── JobFailed           a job ended in another state than COMPLETED
│   └── FolderNotShared    a node does not see the folder of a JobExecutor
├── NotPicklable        a function, an argument or a result cannot be sent
└── CallFailed          a function raised an exception that cannot be sent back
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl import exits
from odcctl.http.wire import LostAnswer


class OdcError(Exception):
    """message: what happened, and why; hint: what to do about it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class Unreachable(OdcError):
    """The request may have been carried out if the connection was lost after it was sent."""


class WrongArgument(OdcError, ValueError):
    """Nothing was sent."""


class WrongSettings(OdcError):
    pass


class Refused(OdcError):
    """problem: the application/problem+json object of the answer, with all its members."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = dict(problem)
        self.code = str(problem.get("code") or "")
        self.title = str(problem.get("title") or "")
        detail = str(problem.get("detail") or self.title or f"HTTP status {status}")
        super().__init__(f"{detail} ({self.code})" if self.code else detail, problem.get("hint"))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.status, self.problem)


class Unauthenticated(Refused):
    pass


class Forbidden(Refused):
    pass


class NotFound(Refused):
    pass


class JobFailed(OdcError):
    """job_id: of the array's task, for an array. exit_code and signal are None if it never ran."""

    def __init__(
        self, job_id: int, state: str, exit_code: int | None = None, signal: int | None = None,
        detail: str | None = None,
    ) -> None:  # fmt: skip
        self.job_id = job_id
        self.state = state
        self.exit_code = exit_code
        self.signal = signal
        self.detail = detail
        how = f" with signal {signal}" if signal else ""
        how = how or (f" with exit code {exit_code}" if exit_code else "")
        why = f": {detail}" if detail else ""
        super().__init__(f"job {job_id} ended as {state}{how}{why}", _hint(job_id))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.job_id, self.state, self.exit_code, self.signal, self.detail)


class FolderNotShared(JobFailed):
    """The folder of a JobExecutor must exist, under the same path, on the nodes."""


class NotPicklable(OdcError):
    pass


class CallFailed(OdcError):
    """The function raised an exception that could not be pickled. type_name: its type."""

    def __init__(self, type_name: str, text: str) -> None:
        super().__init__(f"{type_name}: {text}" if text else type_name)
        self.type_name = type_name
        self.text = text

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.type_name, self.text)


_BY_STATUS = {401: Unauthenticated, 403: Forbidden, 404: NotFound}


def of_failure(error: exits.Failure | LostAnswer) -> OdcError:
    """The error of this package for one of odcctl's."""
    if isinstance(error, LostAnswer):
        return Unreachable(
            f"the connection to the daemon was lost before it answered: {error}",
            "The request may have been carried out. Check before you repeat it.",
        )
    if isinstance(error, exits.Refused):
        problem = {**error.problem, "hint": error.hint}
        return _BY_STATUS.get(error.status, Refused)(error.status, problem)
    if isinstance(error, exits.Unreachable):
        return Unreachable(error.message, error.hint)
    return WrongSettings(error.message, error.hint)


def _hint(job_id: int) -> str:
    return f"`odcctl logs {job_id}` prints its output, and `odcctl show {job_id}` its details."
