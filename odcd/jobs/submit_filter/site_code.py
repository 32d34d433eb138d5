"""The child that runs the site's function on the jobs of one request, and answers with what it
changed.

It trusts nothing to end: its parent kills it at the time limit.
"""

from __future__ import annotations

import copy
import json
import os
import resource
import socket
import sys
import traceback
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NoReturn

from odcd.jobs.submit_filter.target import Filter, Target, load
from odcd.runner.hooks import program

MAX_MEMORY_BYTES = 2 * 1024 * 1024 * 1024
MAX_WARNINGS = 20
ENVIRONMENT = {"PATH": program.PATH, "HOME": "/", "LANG": "C.UTF-8"}
READ_BYTES = 1024 * 1024


class Rejected(BaseException):
    """Not an Exception: the site's own `except Exception` must not swallow it."""


class Request(SimpleNamespace):
    """The facts that the function gets beside the job: user, uid, gid, operator, kind, dry_run."""

    def __init__(self, facts: dict[str, Any]) -> None:
        super().__init__(**facts)
        self.warnings: list[str] = []

    def reject(self, message: str) -> NoReturn:
        """Reject the submit; the user gets the message."""
        raise Rejected(str(message))

    def warn(self, message: str) -> None:
        """Show the user a message; the job is accepted."""
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(str(message))


def become(channel: socket.socket, target: Target, output: int) -> NoReturn:
    """Read the request from channel, and write the answer to it. output: for what is printed."""
    try:
        program.detach(output)
        _confine()
        request = json.loads(_read_all(channel))
        channel.sendall(_encode(_answer(request, target)))
    except BaseException:
        with suppress(BaseException):
            traceback.print_exc()
        _leave(1)
    _leave(0)


def _confine() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    os.environ.clear()
    os.environ.update(ENVIRONMENT)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    printing = open(1, "w", buffering=1, errors="replace", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stderr = printing


def _leave(code: int) -> NoReturn:
    with suppress(BaseException):
        sys.stdout.flush()
    os._exit(code)


def _read_all(channel: socket.socket) -> bytes:
    parts: list[bytes] = []
    while part := channel.recv(READ_BYTES):
        parts.append(part)
    return b"".join(parts)


def _answer(order: dict[str, Any], target: Target) -> dict[str, Any]:
    """order: {"facts", "jobs"}; without jobs, the function is only loaded. The answer has
    `rejected` and `job`, or `failed`, or `changes` and `warnings`."""
    try:
        function = load(target)
    except BaseException as error:
        return _failure(error)
    changes: dict[int, dict[str, Any]] = {}
    request = Request(order["facts"])
    for index, job in enumerate(order["jobs"]):
        try:
            changed = _run(function, job, request)
        except Rejected as refusal:
            return {"rejected": str(refusal), "job": index}
        except BaseException as error:
            return _failure(error)
        if changed:
            changes[index] = changed
    return {"changes": changes, "warnings": request.warnings}


def _encode(answer: dict[str, Any]) -> bytes:
    try:
        return json.dumps(answer).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return json.dumps(_failure(error)).encode()


def _run(function: Filter, job: dict[str, Any], request: Request) -> dict[str, Any]:
    """The fields that the function changed."""
    before = copy.deepcopy(job)
    returned = function(job, request)
    if returned is not None:
        raise TypeError(
            f"it returned {type(returned).__name__}; change the job in place, or call "
            "request.reject()"
        )
    return {name: value for name, value in job.items() if before.get(name, ...) != value}


def _failure(error: BaseException) -> dict[str, Any]:
    traceback.print_exception(error)
    return {"failed": type(error).__name__}
