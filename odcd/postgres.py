"""The embedded PostgreSQL: start it, find it again, wait for its recovery, restart it, stop it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from odcd import account as accounts
from odcd import postgres_files as files
from odcd.clock import Clock
from odcd.descriptors import as_before, ran_out
from odcd.errors import DatabaseDown, OdcError

log = logging.getLogger(__name__)

StopMode = Literal["smart", "fast", "immediate"]
STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

# Crash recovery replays up to max_wal_size, on a slow disk for many minutes.
READY_TIMEOUT_S = 30 * 60.0
STOP_TIMEOUT_S = 60.0
ORPHAN_TIMEOUT_S = 60.0
POLL_S = 0.05
TELL_EVERY_S = 10.0
WATCH_S = 0.5
MAX_BACKOFF_S = 30.0

# Servers that this process started and that have not ended.
_children: set[int] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmaster:
    """What postmaster.pid tells of a server that lives."""

    pid: int
    sockets: Path
    status: str


class EmbeddedPostgres:
    """One server of one home. Any call may come from a process that did not start it."""

    def __init__(
        self, home: Path, version: int | None = None, account: accounts.Account | None = None,
        *, durable: bool = True,
    ) -> None:  # fmt: skip
        self._home = home
        self._account = account or accounts.service_account()
        self.version = files.choose_major(home, version)
        self._data = home / "data" / str(self.version)
        self._durable = durable
        self._child: int | None = None

    @property
    def data(self) -> Path:
        return self._data

    @property
    def account(self) -> accounts.Account:
        return self._account

    def start(self) -> str:
        """Have a server that answers, adopting one that runs; its DSN.

        Blocks through crash recovery. Raises DatabaseDown or OdcError with what to do.
        """
        self._begin()
        return self._wait_ready()

    def _begin(self) -> None:
        accounts.prepare_home(self._home, self._account)
        if self.postmaster() is None:
            install = files.usable_install(self._home, self.version, self._account)
            if not self._data.exists():
                files.create_data(install, self._data, self.version, self._account)
            self._check_data()
            self._clear_remains()
            sockets = files.socket_folder(self._home, self._data, self._account)
            files.configure(self._data, sockets, self._account, durable=self._durable)
            self._launch(install)

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server, by force when it does not go; nothing when none runs."""
        running = self.postmaster()
        if running is None:
            return
        for how in (STOP_SIGNALS[mode], signal.SIGQUIT, signal.SIGKILL):
            _kill(running.pid, how)
            deadline = time.monotonic() + STOP_TIMEOUT_S
            while time.monotonic() < deadline:
                # It drops its pid file a moment before it ends.
                if not _is_postmaster(running.pid, self._data) and self.postmaster() is None:
                    log.info("postgres.stopped", extra={"pid": running.pid})
                    return
                time.sleep(POLL_S)
        raise DatabaseDown(f"PostgreSQL (process {running.pid}) does not end")

    def is_running(self) -> bool:
        return self.postmaster() is not None

    @property
    def dsn(self) -> str:
        """Of the server that runs. Raises DatabaseDown when none does."""
        running = self.postmaster()
        if running is None:
            raise DatabaseDown(f"no PostgreSQL runs in {self._home}", "Start it: odcd up")
        return _dsn(running.sockets)

    async def watch(self, clock: Clock) -> None:
        """Restart the server whenever it is gone, until cancelled."""
        wait_s = WATCH_S
        while True:
            await clock.sleep(wait_s)
            try:
                running = await asyncio.to_thread(self.postmaster)
            except OSError as error:
                if not ran_out(error):
                    raise
                # Nothing is known: neither that it is gone, nor that it is there.
                log.warning("postgres.out_of_descriptors", extra={"error": str(error)})
                continue
            if running is not None or self._child in _children:
                # One that recovers from its crash may take minutes, and is left to it.
                if running is not None and running.status == "ready":
                    wait_s = WATCH_S
                continue
            log.warning("postgres.died", extra={"data": str(self._data), "said": self._said()})
            wait_s = min(MAX_BACKOFF_S, wait_s * 2)
            try:
                await asyncio.to_thread(self._begin)
            except OdcError as error:
                log.error(
                    "postgres.restart_failed",
                    extra={"error": error.message, "hint": error.hint, "next_try_s": wait_s},
                )
            except OSError as error:
                if not ran_out(error):
                    raise
                log.warning("postgres.out_of_descriptors", extra={"error": str(error)})

    def postmaster(self) -> Postmaster | None:
        """The living server of this data folder, whoever started it. Raises OSError when no
        descriptor is free to find out."""
        _reap()
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
            pid = int(lines[0])
        except (FileNotFoundError, NotADirectoryError, ValueError, IndexError):
            return None
        except PermissionError as error:
            raise self._not_ours() from error
        if not _is_postmaster(pid, self._data) or len(lines) < 5:
            return None
        status = lines[7].strip() if len(lines) > 7 else "starting"
        return Postmaster(pid=pid, sockets=Path(lines[4]), status=status)

    def _check_data(self) -> None:
        owner = self._data.stat().st_uid
        if owner != self._account.uid:
            raise self._not_ours()
        found = (self._data / "PG_VERSION").read_text().strip()
        if found != str(self.version):
            raise OdcError(
                f"{self._data} was written by PostgreSQL {found}", "Choose another --home."
            )

    def _not_ours(self) -> OdcError:
        return OdcError(
            f"{self._data} does not belong to the account {self._account.name}",
            "Run odcd as the user who made this home, or choose another with --home.",
        )

    def _clear_remains(self) -> None:
        """After a crash: wait for the old server's processes, then drop lock files that lie.

        PostgreSQL itself refuses to start while a process with the old number lives, be it another
        program that got it since. Dropping the files is safe once nobody works in the folder.
        """
        sockets = files.socket_folder(self._home, self._data, self._account)
        deadline = time.monotonic() + ORPHAN_TIMEOUT_S
        while remains := _processes_in(self._data):
            if time.monotonic() > deadline:
                raise DatabaseDown(
                    f"processes of a PostgreSQL that died still run: {sorted(remains)}",
                    "End them, then start odcd again.",
                )
            time.sleep(POLL_S)
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        (sockets / f".s.PGSQL.{files.PORT}.lock").unlink(missing_ok=True)

    def _launch(self, install: Path) -> None:
        output = self._data / "startup.log"
        output.unlink(missing_ok=True)
        try:
            with output.open("wb") as sink:
                self._account.own(output, 0o600)
                child = subprocess.Popen(
                    as_before([install / "bin" / "postgres", "-D", self._data]),
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=sink,
                    cwd="/",
                    umask=0o077,
                    env=files.CHILD_ENVIRONMENT,
                    # Outlives the daemon and its terminal.
                    start_new_session=True,
                    **self._account.child(),  # pyright: ignore[reportArgumentType, reportCallIssue]
                )
        except OSError as error:
            raise files.disk_trouble(error, output) from error
        # It outlives this object, which Popen would complain about; _reap() waits for its number.
        child.returncode = 0
        _children.add(child.pid)
        self._child = child.pid
        log.info("postgres.starting", extra={"pid": child.pid, "data": str(self._data)})

    def _wait_ready(self) -> str:
        began = told = time.monotonic()
        while True:
            now = time.monotonic()
            running = self.postmaster()
            if running is not None and running.status == "ready":
                return _dsn(running.sockets)
            if running is None and self._child not in _children:
                raise files.failure("PostgreSQL does not start", self._said())
            if now - began > READY_TIMEOUT_S:
                raise DatabaseDown(
                    f"PostgreSQL is not ready after {READY_TIMEOUT_S:.0f} s",
                    f"See {self._data / 'log'}; it goes on recovering, try again later.",
                )
            if now - told > TELL_EVERY_S:
                told = now
                log.info(
                    "postgres.recovering",
                    extra={"waited_s": round(now - began), "data": str(self._data)},
                )
            time.sleep(POLL_S)

    def _said(self) -> str:
        newest = sorted((self._data / "log").glob("*.log"), key=lambda path: path.stat().st_mtime)
        texts = [path.read_text(errors="replace") for path in newest[-1:]]
        startup = self._data / "startup.log"
        if startup.exists():
            texts.append(startup.read_text(errors="replace"))
        wanted = [
            line
            for line in "\n".join(texts).splitlines()
            if "FATAL" in line or "PANIC" in line or "No space left" in line
        ]
        return "\n".join(wanted[-3:]) or texts[-1][-500:] if texts else ""


def _dsn(sockets: Path) -> str:
    return (
        f"postgresql://{files.ROLE}@/{files.DATABASE}"
        f"?host={quote(str(sockets), safe='')}&port={files.PORT}"
    )


def _kill(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _reap() -> None:
    """A server that ended must not stay a zombie: its number would seem taken to the next one."""
    for pid in list(_children):
        try:
            ended = os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:
            ended = True
        if ended:
            _children.discard(pid)


def _is_postmaster(pid: int, data: Path) -> bool:
    """That process is alive, not a zombie, and a server on this folder."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError as error:
        if ran_out(error):
            raise
        return False
    return os.fsencode(data) in command


def _processes_in(data: Path) -> set[int]:
    """Processes that work in the data folder, as every process of a server does."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (entry / "cwd").readlink() == data:
                found.add(int(entry.name))
        except OSError:
            continue
    return found
