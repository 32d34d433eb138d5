"""A separate PostgreSQL for a replay, in a temporary folder that is removed afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from odcd.home.database_access import as_account
from odcd.home.postgres import EmbeddedPostgres

T = TypeVar("T")

PREFIX = "odc-simulate-"
HOME = "home"
TRIES, RETRY_S = 50, 0.1

# Nothing here must survive a crash. The hot tables change hundreds of times per second. But each
# analyze makes PostgreSQL plan again every statement that reads them, which costs more than it
# gains.
SERVER_SETTINGS = {
    "autovacuum_naptime": "3s",
    "autovacuum_analyze_threshold": "100000",
    "max_wal_size": "1GB",
    "wal_writer_delay": "2s",
    "bgwriter_lru_maxpages": "0",
    "track_activities": "off",
}


def in_private_database(work: Callable[[str], Awaitable[T]], of: Any) -> T:
    """Call work with the DSN of a new, empty database, which is always removed at the end. For
    root, a child process under the odc account does the work; it reads and writes no files. of: the
    type that work returns."""
    _remove_left_over()
    before = signal.signal(signal.SIGTERM, interrupt)
    home = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir="/tmp"))
    # The server's account must be able to enter it.
    home.chmod(0o755)
    postgres = EmbeddedPostgres(home / HOME, durable=False, settings=SERVER_SETTINGS)
    try:
        dsn = postgres.start()

        async def call() -> T:
            return await work(dsn)

        return as_account(postgres, lambda: uvloop.run(call()), of=of)
    finally:
        signal.signal(signal.SIGTERM, before)
        _remove(home)


def interrupt(number: int, _: object) -> None:
    """A handler of SIGTERM: it ends the work as Ctrl-C does, so that databases are removed."""
    raise KeyboardInterrupt


def _remove(home: Path) -> None:
    if any((home / HOME / "data").glob("[0-9]*")):
        EmbeddedPostgres(home / HOME).stop("immediate")
    # Processes may outlive the postmaster briefly and still write files.
    for _ in range(TRIES):
        shutil.rmtree(home, ignore_errors=True)
        if not home.exists():
            break
        time.sleep(RETRY_S)


def _remove_left_over() -> None:
    """Remove databases of replays that were killed."""
    for home in Path("/tmp").glob(f"{PREFIX}*"):
        pid = home.name.removeprefix(PREFIX).partition("-")[0]
        # Any user may create a symbolic link of that name to a folder of ours. Another replay may
        # have just ended.
        try:
            status = home.lstat()
        except FileNotFoundError:
            continue
        ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        if ours and not Path(f"/proc/{pid}").exists():
            _remove(home)
