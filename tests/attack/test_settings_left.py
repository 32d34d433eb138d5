"""Settings that an attacker left in the database do not affect the next daemon."""

from __future__ import annotations

import os
import signal

import pytest

from odcd.errors import OdcError
from odcd.home.lock import holder
from tests.attack.test_privileges import as_daemon, ask, dsn_of
from tests.support.harness.daemon import Odc, wait

pytestmark = pytest.mark.long

LEFT = (
    "alter role odc set local_preload_libraries = 'evil'",
    "alter role odc in database odc set statement_timeout = 1",
    "alter database odc set default_transaction_read_only = on",
    "alter database odc set search_path = pg_temp",
)
"""Settings that a role can change without being superuser."""


@pytest.mark.parametrize("server", ["keeps running", "restarts"])
def test_settings_of_the_daemons_role_are_gone_at_the_next_start(odc: Odc, server: str) -> None:
    """Before: they stayed, and a library that was named so kept all sessions from the database."""
    odc.up("--node", "n1=h100:8")
    job = odc.submit("--hold", "--wrap", "true")
    dsn = dsn_of(odc)
    as_daemon(lambda: ask(dsn, *LEFT, "select 1"))
    with pytest.raises(OdcError, match="evil"):
        as_daemon(lambda: ask(dsn, "select 1"))
    first = odc.postmaster_pid
    daemon = odc.pid
    assert daemon is not None
    assert first is not None
    os.kill(daemon, signal.SIGKILL)
    wait(lambda: holder(odc.home / "odcd.lock") is None, odc.log)
    if server == "restarts":
        os.kill(first, signal.SIGINT)
        wait(lambda: odc.postmaster_pid is None, odc.log)
    odc.up("--node", "n1=h100:8")
    assert (odc.postmaster_pid == first) == (server == "keeps running")
    assert odc.rows("select * from pg_db_role_setting") == []
    assert "postgres.settings_reset" in odc.log()
    assert "local_preload_libraries=evil" in odc.log()
    odc.odcctl("release", str(job))
    assert odc.wait_for(job, "COMPLETED")["exit_code"] == 0
