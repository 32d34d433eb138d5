"""A PostgreSQL of the replay's own: made in a temporary folder, gone afterwards."""

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

# Nothing here must survive a crash. The hot tables turn over hundreds of times a second; but each
# time they are analysed, every statement that reads them is planned anew, which costs more than it
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
    """Call work with the DSN of a new, empty database, which is removed at the end, whatever ends
    it. As root the work is done by a child process under odcd's account: it reads and writes no
    files. of: the type of what it returns."""
    _remove_left_over()
    before = signal.signal(signal.SIGTERM, _interrupt)
    home = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir="/tmp"))
    # The account of the server must be able to enter it.
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


def _interrupt(number: int, _: object) -> None:
    raise KeyboardInterrupt


def _remove(home: Path) -> None:
    if any((home / HOME / "data").glob("[0-9]*")):
        EmbeddedPostgres(home / HOME).stop("immediate")
    # Its processes may outlive the first of them by a moment, and write on.
    for _ in range(TRIES):
        shutil.rmtree(home, ignore_errors=True)
        if not home.exists():
            break
        time.sleep(RETRY_S)


def _remove_left_over() -> None:
    """Databases of replays that were killed outright."""
    for home in Path("/tmp").glob(f"{PREFIX}*"):
        pid = home.name.removeprefix(PREFIX).partition("-")[0]
        # Anybody may leave a link of that name to a folder of ours.
        status = home.lstat()
        ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        if ours and not Path(f"/proc/{pid}").exists():
            _remove(home)
