"""Checks what the daemon needs of this machine, without changing anything."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from odcd.clock import SystemClock
from odcd.errors import OdcError
from odcd.home import account as accounts
from odcd.home import folder as home_folder
from odcd.home import postgres_files as files
from odcd.home.lock import holder
from odcd.home.ping import answers
from odcd.runner.cgroup import find_place
from odcd.settings import socket_of

LEAST_DISK_MIB = 300
GOOD_DISK_MIB = 5000
TIME_ERROR = 5
"""adjtimex: the kernel's clock is not synchronized."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    about: str
    verdict: Literal["ok", "note", "bad"]
    """note: works, but less well than expected; bad: the daemon cannot run like this."""
    text: str
    hint: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def examine(home: Path) -> list[Finding]:
    checks = (_python, _wheel, _account, _home, _disk, _daemon, _cgroup, _gpus, _clock)
    found: list[Finding] = []
    for check in checks:
        try:
            found.extend(check(home))
        except OdcError as error:
            name = check.__name__.removeprefix("_")
            found.append(Finding(about=name, verdict="bad", text=error.message, hint=error.hint))
    return found


def _python(_: Path) -> Iterator[Finding]:
    text = f"{platform.python_version()} at {sys.executable}"
    yield Finding(about="python", verdict="ok", text=text)


def _wheel(_: Path) -> Iterator[Finding]:
    for major in files.INSTALLS:
        files.wheel_install(major)
    version = importlib.metadata.version(files.WHEEL)
    majors = " and ".join(map(str, files.INSTALLS))
    yield Finding(about="postgresql", verdict="ok", text=f"{majors} of the wheel {version}")


def _account(_: Path) -> Iterator[Finding]:
    if os.geteuid() != 0:
        name = accounts.current().name
        yield Finding(
            about="account", verdict="ok", text=f"runs as {name}, and runs jobs of {name} only"
        )
    elif accounts.exists(accounts.ACCOUNT) and not accounts.exists(accounts.DATABASE_ACCOUNT):
        yield Finding(
            about="account",
            verdict="note",
            text=f"{accounts.ACCOUNT}, which also runs PostgreSQL, because there is no account "
            f"{accounts.DATABASE_ACCOUNT}",
            hint="`odcd up` creates the account if it can; then someone who takes over the daemon "
            "is not a database superuser.",
        )
    elif accounts.exists(accounts.ACCOUNT):
        yield Finding(
            about="account",
            verdict="ok",
            text=f"{accounts.ACCOUNT}; jobs run as the users who submit them",
        )
    else:
        yield Finding(
            about="account",
            verdict="note",
            text=f"{accounts.ACCOUNT} does not exist; `odcd up` creates it",
        )


def _home(home: Path) -> Iterator[Finding]:
    there = home
    while not there.exists():
        there = there.parent
    if there == home:
        home_folder.check_ours(home, _expected_account())
        home_folder.check_entry(home, _expected_account())
        yield Finding(about="home", verdict="ok", text=str(home))
    elif os.access(there, os.W_OK | os.X_OK):
        yield Finding(about="home", verdict="ok", text=f"{home}, will be created")
    else:
        yield Finding(
            about="home",
            verdict="bad",
            text=f"{home} cannot be created: you may not write to {there}",
            hint="Choose another with --home or ODC_HOME.",
        )


def _expected_account() -> accounts.Account:
    """The account the daemon will run as; root stands in until that account exists."""
    if os.geteuid() == 0 and not accounts.exists(accounts.ACCOUNT):
        return accounts.current()
    return accounts.service_account()


def _disk(home: Path) -> Iterator[Finding]:
    there = home
    while not there.exists():
        there = there.parent
    free_mib = shutil.disk_usage(there).free // 2**20
    text = f"{free_mib} MiB free at {there}"
    if free_mib < LEAST_DISK_MIB:
        yield Finding(
            about="disk",
            verdict="bad",
            text=text,
            hint=f"PostgreSQL needs {LEAST_DISK_MIB} MiB to start.",
        )
    elif free_mib < GOOD_DISK_MIB:
        yield Finding(
            about="disk", verdict="note", text=text, hint="The job history and its WAL need space."
        )
    else:
        yield Finding(about="disk", verdict="ok", text=text)


def _daemon(home: Path) -> Iterator[Finding]:
    pid, path = holder(home / "odcd.lock"), socket_of(home)
    if pid is None:
        yield Finding(about="daemon", verdict="note", text="not running", hint="Start it: odcd up")
    elif answers(path):
        yield Finding(about="daemon", verdict="ok", text=f"process {pid} answers at {path}")
    else:
        yield Finding(
            about="daemon",
            verdict="bad",
            text=f"process {pid} is not ready at {path}",
            hint="Its log has the reason: odcd.log in the home, or where odcd up runs.",
        )


def _cgroup(_: Path) -> Iterator[Finding]:
    place = find_place()
    if place.parent is not None:
        yield Finding(
            about="cgroup", verdict="ok", text=f"limits of jobs are enforced below {place.parent}"
        )
    else:
        yield Finding(
            about="cgroup",
            verdict="note",
            text=f"a job may use more memory and CPUs than it requested: {place.reason}",
            hint="Use cgroup v2 as root, or a group delegated by systemd (Delegate=yes).",
        )


def _gpus(_: Path) -> Iterator[Finding]:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        yield Finding(
            about="gpus",
            verdict="note",
            text=f"no NVIDIA GPUs: {error}",
            hint="Jobs run on the CPUs; to try things out, declare GPUs with --node.",
        )
        return
    try:
        count = pynvml.nvmlDeviceGetCount()
        names = [
            pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(index))
            for index in range(count)
        ]
        kinds = ", ".join(f"{names.count(name)} x {name}" for name in sorted(set(names)))
        yield Finding(about="gpus", verdict="ok", text=kinds or "the driver sees none")
    finally:
        pynvml.nvmlShutdown()


def _clock(_: Path) -> Iterator[Finding]:
    now = SystemClock().now()
    text = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    buffer = ctypes.create_string_buffer(512)
    if ctypes.CDLL(None).adjtimex(buffer) == TIME_ERROR:
        yield Finding(
            about="clock",
            verdict="note",
            text=f"{text}, not synchronised",
            hint="Begin times and time limits use this clock; synchronise it with NTP.",
        )
    else:
        yield Finding(about="clock", verdict="ok", text=f"{text}, synchronised")
