"""The embedded PostgreSQL: start, find, recover, restart and stop it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from odcd.clock import Clock
from odcd.errors import DatabaseDown, OdcError
from odcd.home import account as accounts
from odcd.home import postgres_files as files
from odcd.home import postgres_process as process
from odcd.home import postgres_roles as roles
from odcd.home import postgres_settings as server_settings
from odcd.home.descriptors import ran_out
from odcd.home.folder import check_entry, former_owners, prepare_home, read_own
from odcd.home.postgres_watch import watch
from odcd.home.processes import uid_of

log = logging.getLogger(__name__)

StopMode = Literal["smart", "fast", "immediate"]
STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

# Crash recovery replays up to max_wal_size, which takes many minutes on a slow disk.
READY_TIMEOUT_S = 30 * 60.0
STOP_TIMEOUT_S = 60.0
ORPHAN_TIMEOUT_S = 60.0
POLL_S = 0.05
TELL_EVERY_S = 10.0


class EmbeddedPostgres:
    """The server of one home. Any process may call these methods, not only the one that started
    it."""

    def __init__(
        self, home: Path, version: int | None = None, account: accounts.Account | None = None,
        *, durable: bool = True, settings: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """account: the daemon's account, which connects. settings: override the server's
        settings."""
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
        """The daemon's account, which may connect as the role `odc`."""
        return self._account

    @property
    def owner(self) -> accounts.Account:
        """The account that runs the server and owns its files."""
        return self._owner

    def start(self) -> str:
        """Start a server, or adopt a running one; return its DSN once it answers.

        Blocks through crash recovery. Raises DatabaseDown or OdcError with a hint.
        """
        self.begin()
        return self._wait_ready()

    def begin(self) -> None:
        """Start the server unless it runs; it may not be ready yet. Raises the same errors as
        start()."""
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
            self._child = process.launch(install, self._data, self._owner)

    def retire_former(self) -> None:
        """Stop a server that an earlier version started under the daemon's account, so that the
        next one runs as PostgreSQL's own account. Only for the daemon that holds the home's
        lock."""
        running = self.postmaster()
        if running is not None and uid_of(running.pid) != self._owner.uid:
            log.info("postgres.changes_account", extra={"to": self._owner.name})
            self.stop()

    def reset_settings(self) -> None:
        """Remove settings that the daemon's role left for itself or for the database, because they
        would apply to every session of the next daemon. The server must run. Raises
        DatabaseDown."""
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
        """Stop the server, by force if necessary. Does nothing if none runs."""
        running = self.postmaster()
        if running is None:
            return
        for how in (STOP_SIGNALS[mode], signal.SIGQUIT, signal.SIGKILL):
            process.send_signal(running.pid, how)
            deadline = time.monotonic() + STOP_TIMEOUT_S
            while time.monotonic() < deadline:
                # It removes its pid file shortly before it ends.
                if not self._is_postmaster(running.pid) and self.postmaster() is None:
                    log.info("postgres.stopped", extra={"pid": running.pid})
                    return
                time.sleep(POLL_S)
        raise DatabaseDown(f"PostgreSQL (process {running.pid}) does not stop")

    def is_running(self) -> bool:
        return self.postmaster() is not None

    @property
    def dsn(self) -> str:
        """The DSN of the running server. Raises DatabaseDown when none runs."""
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
        """The status of the server, such as `ready`; None when there is none."""
        running = self.postmaster()
        if running is not None:
            return running.status
        return "starting" if process.is_child(self._child) else None

    def restart(self) -> None:
        """Start a server that died. Raises the same errors as start()."""
        log.warning(
            "postgres.died",
            extra={"data": str(self._data), "said": process.last_errors(self._data, self._owner)},
        )
        self.begin()

    def postmaster(self) -> process.Postmaster | None:
        """The live server of this data folder, whoever started it. Raises OSError when no file
        descriptor is free to check."""
        process.reap()
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
        return process.Postmaster(pid=pid, sockets=Path(lines[4]), status=status)

    def _is_postmaster(self, pid: int) -> bool:
        """Whether the process is alive, not a zombie, and a server on this folder.

        It must also belong to one of our accounts: the pid file could name any process, and we may
        be about to kill it.
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
            "Run odcd as the user who created this home (root, if root did), or choose another "
            "with --home.",
        )

    def _clear_remains(self, sockets: Path) -> None:
        """After a crash: wait for the old server's processes, then remove stale lock files.

        PostgreSQL refuses to start while a process with the old id exists, even if another program
        now has that id. Removing the files is safe once no process works in the folder.
        """
        deadline = time.monotonic() + ORPHAN_TIMEOUT_S
        ours = former_owners(self._account) | {self._owner.uid}
        while remains := process.processes_in(self._data, ours):
            if time.monotonic() > deadline:
                raise DatabaseDown(
                    f"processes of a PostgreSQL that died are still running: {sorted(remains)}",
                    "End them, then start odcd again.",
                )
            time.sleep(POLL_S)
        with self._owner.acting():
            (self._data / "postmaster.pid").unlink(missing_ok=True)
            (sockets / f".s.PGSQL.{files.PORT}.lock").unlink(missing_ok=True)

    def _wait_ready(self) -> str:
        began = logged_at = time.monotonic()
        while True:
            now = time.monotonic()
            running = self.postmaster()
            if running is not None and running.status == "ready":
                return _dsn(running.sockets)
            if running is None and not process.is_child(self._child):
                raise files.failure(
                    "PostgreSQL does not start", process.last_errors(self._data, self._owner)
                )
            if now - began > READY_TIMEOUT_S:
                raise DatabaseDown(
                    f"PostgreSQL is not ready after {READY_TIMEOUT_S:.0f} s",
                    f"See {self._data / 'log'}; its recovery continues; try again later.",
                )
            if now - logged_at > TELL_EVERY_S:
                logged_at = now
                log.info(
                    "postgres.recovering",
                    extra={"waited_s": round(now - began), "data": str(self._data)},
                )
            time.sleep(POLL_S)


def _dsn(sockets: Path) -> str:
    return (
        f"postgresql://{roles.ROLE}@/{roles.DATABASE}"
        f"?host={quote(str(sockets), safe='')}&port={files.PORT}"
    )
