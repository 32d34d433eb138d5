"""The processes of an embedded PostgreSQL: launch, recognise and signal them."""

from __future__ import annotations

import logging
import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from odcd.home import postgres_files as files
from odcd.home.account import Account
from odcd.home.descriptors import as_before
from odcd.home.processes import uid_of

log = logging.getLogger(__name__)

# Servers that this process started and that have not ended.
_children: set[int] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmaster:
    """The contents of postmaster.pid for a live server."""

    pid: int
    sockets: Path
    status: str


def launch(install: Path, data: Path, owner: Account) -> int:
    """Start a server on the data folder; return its process id. Raises OdcError."""
    output = data / "startup.log"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with owner.acting():
            output.unlink(missing_ok=True)
            sink = os.open(output, flags, 0o600)
        try:
            child = subprocess.Popen(
                as_before([install / "bin" / "postgres", "-D", data]),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                cwd="/",
                umask=0o077,
                env=files.CHILD_ENVIRONMENT,
                # Keep it running when the daemon or its terminal ends.
                start_new_session=True,
                **owner.child(),  # pyright: ignore[reportArgumentType, reportCallIssue]
            )
        finally:
            os.close(sink)
    except OSError as error:
        raise files.disk_trouble(error, output) from error
    # It outlives this object, which would make Popen warn; reap() waits for its process id.
    child.returncode = 0
    _children.add(child.pid)
    log.info("postgres.starting", extra={"pid": child.pid, "data": str(data)})
    return child.pid


def is_child(pid: int | None) -> bool:
    """Whether this process started that server, and it had not ended at the last reap()."""
    return pid in _children


def last_errors(data: Path, owner: Account) -> str:
    """The last fatal lines of a server's log, or the end of its output."""
    with owner.acting():
        return _last_errors(data)


def _last_errors(data: Path) -> str:
    newest = sorted((data / "log").glob("*.log"), key=lambda path: path.stat().st_mtime)
    texts: list[str] = []
    for path in [*newest[-1:], data / "startup.log"]:
        with suppress(OSError):
            texts.append(path.read_text(errors="replace"))
    fatal = [
        line
        for line in "\n".join(texts).splitlines()
        if "FATAL" in line or "PANIC" in line or "No space left" in line
    ]
    return "\n".join(fatal[-3:]) or texts[-1][-500:] if texts else ""


def send_signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def reap() -> None:
    """Reap ended servers: as a zombie, one would keep its process id in use for the next server."""
    for pid in list(_children):
        try:
            ended = os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:
            ended = True
        if ended:
            _children.discard(pid)


def processes_in(data: Path, uids: frozenset[int]) -> set[int]:
    """Processes of these users that work in the data folder, as every process of a server does.

    The user is checked because in another mount namespace a folder may have the same name.
    """
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (entry / "cwd").readlink() == data and uid_of(int(entry.name)) in uids:
                found.add(int(entry.name))
        except OSError:
            continue
    return found
