"""The request for a reservation from the command line, and the command that repeats it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from odcctl.reservations.disks import NAME, NAME_RULE, NONE

LABEL = re.compile(r"[^\s=]+=\S+")
NOT_EMPTY = (
    "name", "gpu_type", "image", "dockerfile", "github_user", "account", "qos", "partition",
    "booking",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of `odcctl reserve` that are not part of the request."""

    interactive: bool
    """Questions are allowed."""
    test_only: bool
    waits: bool
    ignore_no_persist: bool
    verbose: bool
    trace: bool


def check(request: Mapping[str, Any], dockerfile: str | None, *, rebuild: bool) -> None:
    """Raises ValueError for wrong usage, before the daemon is asked; the daemon checks the rest."""
    if request["gpus"] is not None and request["gpus"] < 0:
        raise ValueError("--gpus must be at least 0")
    disk, image = request["disk"], request["image"]
    if disk not in (None, NONE):
        if not NAME.fullmatch(disk):
            raise ValueError(f'{NAME_RULE}, not "{disk}"')
        if request["no_persist"]:
            raise ValueError(f"--no-persist and --disk {disk} cannot be used together")
    if image is not None and dockerfile is not None:
        raise ValueError("--dockerimage and --dockerfile cannot be used together")
    if request["preserve_entrypoint"] and image is None and dockerfile is None:
        raise ValueError("--preserve-entrypoint requires --dockerimage")
    for field in NOT_EMPTY:
        if {**request, "dockerfile": dockerfile}[field] == "":
            option = "dockerimage" if field == "image" else field.replace("_", "-")
            raise ValueError(f"--{option} is empty")
    if rebuild and dockerfile is None:
        raise ValueError("--rebuild requires --dockerfile")


def read_labels(texts: Sequence[str]) -> dict[str, str]:
    """Labels of --node-label, KEY=VALUE each. Raises ValueError."""
    labels: dict[str, str] = {}
    for text in texts:
        if not LABEL.fullmatch(text):
            raise ValueError(f'--node-label must be KEY=VALUE, not "{text}"')
        key, _, value = text.partition("=")
        if labels.setdefault(key, value) != value:
            raise ValueError(f"--node-label gives {key} two values")
    return labels


def as_command(request: Mapping[str, Any]) -> str:
    parts = ["odcctl reserve", f"-t {request['gpu_type']}", f"-g {request['gpus']}"]
    parts.append(f"-h {request['hours']:g}")
    parts += ["-d"] if request["distributed"] else []
    parts += [f"--disk {request['disk']}"] if request["disk"] else []
    parts += ["--no-persist"] if request["no_persist"] else []
    parts += ["--jupyter"] if request["jupyter"] else []
    return " ".join(parts)


def body_of(request: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in request.items()
        if value is not None and value is not False and value != {}
    }
