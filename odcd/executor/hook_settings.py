"""Reads the settings of hooks, and checks their programs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TypedDict

from odcd.errors import BadRequest
from odcd.runner.hooks.environment import owners
from odcd.runner.hooks.program import refusal
from odcd.runner.rules import HOOK_TIMEOUT_S
from odcd.variables import read_seconds

HOOK_TIMEOUT = timedelta(seconds=HOOK_TIMEOUT_S)
MAX_TIMEOUT_S = 3600


class Hooks(TypedDict):
    """The fields of JobSettings about hooks."""

    prolog: str | None
    epilog: str | None
    task_prolog: str | None
    task_epilog: str | None
    prolog_timeout: timedelta
    epilog_timeout: timedelta
    task_prolog_timeout: timedelta
    task_epilog_timeout: timedelta


def read_hooks(environment: Mapping[str, str], *, local: bool) -> Hooks:
    """local: jobs run on this machine. Raises BadRequest."""

    def path(name: str) -> str | None:
        return read_program(environment, name, local=local)

    def limit(name: str) -> timedelta:
        return read_seconds(environment, name, HOOK_TIMEOUT, MAX_TIMEOUT_S)

    return Hooks(
        prolog=path("ODC_PROLOG"),
        epilog=path("ODC_EPILOG"),
        task_prolog=path("ODC_TASK_PROLOG"),
        task_epilog=path("ODC_TASK_EPILOG"),
        prolog_timeout=limit("ODC_PROLOG_TIMEOUT_S"),
        epilog_timeout=limit("ODC_EPILOG_TIMEOUT_S"),
        task_prolog_timeout=limit("ODC_TASK_PROLOG_TIMEOUT_S"),
        task_epilog_timeout=limit("ODC_TASK_EPILOG_TIMEOUT_S"),
    )


def read_program(environment: Mapping[str, str], name: str, *, local: bool) -> str | None:
    """A program that only the operator can change; None: not set. Raises BadRequest."""
    path = environment.get(name) or None
    if path is None:
        return None
    if not local:
        raise BadRequest(
            f"{name} has no effect on Kubernetes: odc runs no programs on the cluster's nodes",
            f"Leave {name} out. Use a DaemonSet to prepare nodes, and ODC_POD_TEMPLATE for pods.",
        )
    why = refusal(path, owners())
    if why is not None:
        raise BadRequest(
            f"{name}: the program cannot be used: {why}",
            "Name an executable file that, with all folders on its path, belongs to root or to the "
            "user who runs odcd, and that no one else may write.",
        )
    return path
