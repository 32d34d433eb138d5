"""The embedded PostgreSQL: start it, find it again, wait for its recovery, restart it, stop it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import quote

from odcd.clock import Clock
from odcd.errors import DatabaseDown, OdcError
from odcd.home import account as accounts
from odcd.home import postgres_files as files
from odcd.home import postgres_roles as roles
from odcd.home import postgres_settings as server_settings
from odcd.home.descriptors import as_before, ran_out
from odcd.home.folder import check_entry, former_owners, prepare_home, read_own
from odcd.home.processes import uid_of

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


class WatchedPostgres(Protocol):
    """The server of a home, as its daemon needs it."""

    version: int

    async def watch(self, clock: Clock) -> None:
        """Restart the server whenever it is gone, until cancelled."""
        ...

    def stop(self) -> None: ...


class EmbeddedPostgres:
    """One server of one home. Any call may come from a process that did not start it."""

    def __init__(
        self, home: Path, version: int | None = None, account: accounts.Account | None = None,
        *, durable: bool = True, settings: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """account: the daemon's, which connects. settings: of the server, instead of ours."""
        self._home = home
        self._account = account or accounts.service_account()
        self._owner = accounts.database_account(self._account)
        self.version = files.choose_major(home, version)
        self._data = home / "data" / str(self.version)
        self._settings = {**({} if durable else server_settings.FAST), **(settings or {})}
        self._child: int | None = None

    @property
    def data(self) -> Path:
        return self._data

    @property
    def account(self) -> accounts.Account:
        """The daemon's, which may connect as the role `odc`."""
        return self._account

    @property
    def owner(self) -> accounts.Account:
        """Whom the server runs as and its files belong to."""
        return self._owner

    def start(self) -> str:
        """Have a server that answers, adopting one that runs; its DSN.

        Blocks through crash recovery. Raises DatabaseDown or OdcError with what to do.
        """
        self.begin()
        return self._wait_ready()

    def begin(self) -> None:
        """Start the server unless it runs; it may not be ready yet. Raises as start()."""
        prepare_home(self._home, self._account)
        if self.postmaster() is None:
            check_entry(self._home, self._owner)
            install = files.usable_install(self._home, self.version, self._account)
            if self._data.exists():
                files.take_data(self._data, self._owner, self._account)
            else:
                files.create_data(install, self._data, self.version, self._owner, self._account)
            self._check_data()
            sockets = files.socket_folder(self._home, self._data, self._owner, self._account)
            self._clear_remains(sockets)
            server_settings.configure(
                self._data, sockets, self._owner, self._account, self._settings
            )
            files.split_roles(install, self._data, self._owner)
            self._launch(install)

    def retire_former(self) -> None:
        """End a server that an earlier version left under the daemon's account, so that the next
        one is PostgreSQL's own. Only for the daemon that has the home's lock."""
        running = self.postmaster()
        if running is not None and uid_of(running.pid) != self._owner.uid:
            log.info("postgres.changes_account", extra={"to": self._owner.name})
            self.stop()

    def reset_settings(self) -> None:
        """Drop settings that the daemon's role left for itself or for the database, which would act
        on every session of the next daemon. The server runs. Raises DatabaseDown."""
        running = self.postmaster()
        with self._owner.acting():
            ours = (self._data / roles.MADE).exists()
        if running is None or not ours:
            return
        install = files.usable_install(self._home, self.version, self._account)
        ask = partial(files.ask_server, install, running.sockets, owner=self._owner)
        if found := ask((roles.FOUND,)):
            ask(roles.RESET)
            log.warning("postgres.settings_reset", extra={"settings": found})

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
                if not self._is_postmaster(running.pid) and self.postmaster() is None:
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

        async def look() -> str | None:
            return await asyncio.to_thread(self.look)

        async def restart() -> None:
            await asyncio.to_thread(self.restart)

        await watch(clock, look, restart)

    def look(self) -> str | None:
        """The status of the server, `ready` among them; None when there is none."""
        running = self.postmaster()
        if running is not None:
            return running.status
        return "starting" if self._child in _children else None

    def restart(self) -> None:
        """Start the server that died. Raises as start()."""
        log.warning("postgres.died", extra={"data": str(self._data), "said": self._said()})
        self.begin()

    def postmaster(self) -> Postmaster | None:
        """The living server of this data folder, whoever started it. Raises OSError when no
        descriptor is free to find out."""
        _reap()
        try:
            lines = read_own(self._data / "postmaster.pid").splitlines()
            pid = int(lines[0])
        except PermissionError as error:
            raise self._not_ours() from error
        except (FileNotFoundError, NotADirectoryError, ValueError, IndexError):
            return None
        if not self._is_postmaster(pid) or len(lines) < 5:
            return None
        status = lines[7].strip() if len(lines) > 7 else "starting"
        return Postmaster(pid=pid, sockets=Path(lines[4]), status=status)

    def _is_postmaster(self, pid: int) -> bool:
        """That process is alive, not a zombie, and a server on this folder.

        Of one of our accounts, too: whoever writes the pid file may name any process in it, and we
        may be about to kill that.
        """
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError as error:
            if ran_out(error):
                raise
            return False
        ours = former_owners(self._account) | {self._owner.uid}
        return os.fsencode(self._data) in command and uid_of(pid) in ours

    def _check_data(self) -> None:
        if self._data.lstat().st_uid != self._owner.uid:
            raise self._not_ours()
        with self._owner.acting():
            found = read_own(self._data / "PG_VERSION").strip()
        if found != str(self.version):
            raise OdcError(
                f"{self._data} was written by PostgreSQL {found}", "Choose another --home."
            )

    def _not_ours(self) -> OdcError:
        return OdcError(
            f"{self._data} does not belong to the account {accounts.current().name}",
            "Run odcd as the user who made this home, as root where root did, or choose another "
            "with --home.",
        )

    def _clear_remains(self, sockets: Path) -> None:
        """After a crash: wait for the old server's processes, then drop lock files that lie.

        PostgreSQL itself refuses to start while a process with the old number lives, be it another
        program that got it since. Dropping the files is safe once nobody works in the folder.
        """
        deadline = time.monotonic() + ORPHAN_TIMEOUT_S
        ours = former_owners(self._account) | {self._owner.uid}
        while remains := _processes_in(self._data, ours):
            if time.monotonic() > deadline:
                raise DatabaseDown(
                    f"processes of a PostgreSQL that died still run: {sorted(remains)}",
                    "End them, then start odcd again.",
                )
            time.sleep(POLL_S)
        with self._owner.acting():
            (self._data / "postmaster.pid").unlink(missing_ok=True)
            (sockets / f".s.PGSQL.{files.PORT}.lock").unlink(missing_ok=True)

    def _launch(self, install: Path) -> None:
        output = self._data / "startup.log"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with self._owner.acting():
                output.unlink(missing_ok=True)
                sink = os.open(output, flags, 0o600)
            try:
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
                    **self._owner.child(),  # pyright: ignore[reportArgumentType, reportCallIssue]
                )
            finally:
                os.close(sink)
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
        with self._owner.acting():
            return self._last_words()

    def _last_words(self) -> str:
        newest = sorted((self._data / "log").glob("*.log"), key=lambda path: path.stat().st_mtime)
        texts: list[str] = []
        for path in [*newest[-1:], self._data / "startup.log"]:
            with suppress(OSError):
                texts.append(path.read_text(errors="replace"))
        wanted = [
            line
            for line in "\n".join(texts).splitlines()
            if "FATAL" in line or "PANIC" in line or "No space left" in line
        ]
        return "\n".join(wanted[-3:]) or texts[-1][-500:] if texts else ""


async def watch(
    clock: Clock, look: Callable[[], Awaitable[str | None]], restart: Callable[[], Awaitable[None]]
) -> None:
    """Call restart whenever look finds no server, until cancelled; less often while it fails."""
    wait_s = WATCH_S
    while True:
        await clock.sleep(wait_s)
        try:
            status = await look()
            if status is not None:
                # One that recovers from its crash may take minutes, and is left to it.
                if status == "ready":
                    wait_s = WATCH_S
                continue
            wait_s = min(MAX_BACKOFF_S, wait_s * 2)
            await restart()
        except OdcError as error:
            wait_s = max(wait_s, WATCH_S * 2)
            log.error(
                "postgres.restart_failed",
                extra={"error": error.message, "hint": error.hint, "next_try_s": wait_s},
            )
        except OSError as error:
            if not ran_out(error):
                raise
            # Nothing is known: neither that it is gone, nor that it is there.
            log.warning("postgres.out_of_descriptors", extra={"error": str(error)})


def _dsn(sockets: Path) -> str:
    return (
        f"postgresql://{roles.ROLE}@/{roles.DATABASE}"
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


def _processes_in(data: Path, uids: frozenset[int]) -> set[int]:
    """Processes of these users that work in the data folder, as every process of a server does.

    In a mount namespace of their own, others may have a folder of that name.
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
