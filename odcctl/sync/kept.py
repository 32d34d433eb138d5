"""The state of a job of run --sync until its results have arrived: the archive, so that a requeued
job gets the same files, and the digests of the files that were sent.

It is in $XDG_STATE_HOME/odcctl/sync, usually ~/.local/state/odcctl/sync.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from odcctl.exits import Failure
from odcctl.http import private_files

OLD_S = 30 * 86_400
"""Jobs that began so long ago are forgotten."""


@dataclass(kw_only=True)
class Kept:
    """folder: the user's. prefix: the beginning of the name of the job's folder. attempt: the last
    one that was sent."""

    token: str
    server: str
    folder: str
    prefix: str
    job: str = ""
    attempt: int = 0
    known: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @property
    def archive(self) -> str:
        return os.path.join(state_folder(), f"{self.token}.tar")

    def save(self) -> None:
        private_files.write(_path(self.token), json.dumps(asdict(self)))

    def forget(self) -> None:
        for path in (_path(self.token), self.archive):
            with suppress(FileNotFoundError):
                os.unlink(path)


def state_folder() -> str:
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(base, "odcctl", "sync")


def _path(token: str) -> str:
    return os.path.join(state_folder(), f"{token}.json")


def make_folder() -> None:
    """Also removes what is old."""
    folder = state_folder()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with os.scandir(folder) as entries:
            old = [entry.path for entry in entries if entry.stat().st_mtime < time.time() - OLD_S]
        for path in old:
            os.unlink(path)
    except OSError as error:
        raise Failure(f"{error.filename or folder}: {error.strerror}") from None


def load(job: str, server: str) -> Kept:
    """The newest of this job. Raises Failure."""
    found: list[tuple[float, Kept]] = []
    with suppress(FileNotFoundError), os.scandir(state_folder()) as entries:
        for entry in entries:
            if entry.name.endswith(".json"):
                with suppress(ValueError, TypeError, OSError):
                    kept = Kept(**json.loads(private_files.read(entry.path)))
                    if (kept.job, kept.server) == (job, server):
                        found.append((entry.stat().st_mtime, kept))
    if not found:
        raise Failure(
            f"no results of job {job} are expected on this machine",
            "They have arrived already, or it was not started here with odcctl run --sync.",
        )
    return max(found, key=lambda one: one[0])[1]
