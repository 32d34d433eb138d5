"""The request for a reservation from the command line, and the command that repeats it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from odcctl.options import Arguments
from odcctl.reservations.disks import NAME, NAME_RULE
from odcctl.text.hours import LEAST, hours_of

LABEL = re.compile(r"[^\s=]+=\S+")


def wanted_of(arguments: Arguments) -> dict[str, Any]:
    """The request from the command line; None for options not given. Wrong usage is
    reported before the daemon is asked; the daemon checks the rest."""
    wrong = arguments.command.wrong
    gpus = arguments.number("gpus")
    if gpus is not None and gpus < 0:
        wrong("--gpus is at least 0")
    disk = arguments.value("disk")
    if disk is not None and disk != "none":
        if not NAME.fullmatch(disk):
            wrong(f'{NAME_RULE}, not "{disk}"')
        if arguments.flag("no-persist"):
            wrong(f"--no-persist keeps nothing, and --disk {disk} keeps it: give one of them")
    image, dockerfile = arguments.value("dockerimage"), arguments.value("dockerfile")
    if image is not None and dockerfile is not None:
        wrong("--dockerimage and --dockerfile exclude each other")
    if arguments.flag("preserve-entrypoint") and image is None and dockerfile is None:
        wrong("--preserve-entrypoint is that of an image: give --dockerimage, too")
    for option in (
        "name", "gpu-type", "dockerimage", "dockerfile", "github-user", "account", "qos",
        "partition", "booking",
    ):  # fmt: skip
        if arguments.value(option) == "":
            wrong(f"--{option} is empty")
    wanted: dict[str, Any] = {
        "gpu_type": arguments.value("gpu-type"),
        "gpus": gpus,
        "hours": hours_of(arguments, "hours", LEAST),
        "name": arguments.value("name"),
        "distributed": arguments.flag("distributed"),
        "disk": disk,
        "no_persist": arguments.flag("no-persist"),
        "recreate_env": arguments.flag("recreate-env"),
        "jupyter": arguments.flag("jupyter"),
        "image": image,
        "preserve_entrypoint": arguments.flag("preserve-entrypoint"),
        "labels": _labels(arguments),
        "github_user": arguments.value("github-user"),
        "account": arguments.value("account"),
        "qos": arguments.value("qos"),
        "partition": arguments.value("partition"),
        "booking": arguments.value("booking"),
    }
    if arguments.flag("rebuild") and dockerfile is None:
        wrong("--rebuild is of what --dockerfile names: give that, too")
    return wanted


def _labels(arguments: Arguments) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in arguments.given.get("node-label", []):
        if not LABEL.fullmatch(text):
            arguments.command.wrong(f'--node-label takes KEY=VALUE, not "{text}"')
        key, _, value = text.partition("=")
        if labels.setdefault(key, value) != value:
            arguments.command.wrong(f"--node-label gives {key} two values")
    return labels


def as_command(wanted: Mapping[str, Any]) -> str:
    words = ["odcctl reserve", f"-t {wanted['gpu_type']}", f"-g {wanted['gpus']}"]
    words.append(f"-h {wanted['hours']:g}")
    words += ["-d"] if wanted["distributed"] else []
    words += [f"--disk {wanted['disk']}"] if wanted["disk"] else []
    words += ["--no-persist"] if wanted["no_persist"] else []
    words += ["--jupyter"] if wanted["jupyter"] else []
    return " ".join(words)


def body_of(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in wanted.items()
        if value is not None and value is not False and value != {}
    }
