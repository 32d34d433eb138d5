"""Nobody stops the daemon, its PostgreSQL or other users by opening connections."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from tests.attack.front import (
    BOB,
    MALLORY,
    SOFT,
    get,
    get_as,
    idle,
    limited,
    metric,
    set_soft_limit,
    soft_limit_of,
    tcp,
)
from tests.support.daemon import Odc, kill, new_odc, wait

pytestmark = pytest.mark.long
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="acts as two users")
LISTEN = {"ODC_LISTEN": "127.0.0.1:0"}
MANY = 1_100


def goes_on(odc: Odc, pid: int, postmaster: int | None) -> None:
    """A job runs from its submission to its end, and nothing was restarted."""
    odc.wait_for(odc.submit("--wrap", "true"), "COMPLETED")
    assert (odc.pid, odc.postmaster_pid) == (pid, postmaster), odc.log()


@as_root
@pytest.mark.parametrize("hard", [None, SOFT])
def test_a_user_with_a_thousand_idle_connections_stops_nobody(hard: int | None) -> None:
    """Where the limit can be raised, and where it cannot."""
    with new_odc() as odc, limited(odc, hard=hard) as pid:
        path, postmaster = str(odc.home / "odcd.sock"), odc.postmaster_pid
        with idle(path, MANY, MALLORY):
            goes_on(odc, pid, postmaster)
            assert get_as(BOB, path, "/v1/jobs") == 200
            assert metric(path, "odcd_http_connections_refused_total") > 0
        wait(lambda: get_as(MALLORY, path, "/v1/jobs") == 200 or None, odc.log)


def test_a_stranger_with_a_thousand_idle_connections_stops_nobody() -> None:
    with new_odc() as odc, limited(odc, environment=LISTEN) as pid:
        place, path, postmaster = tcp(odc), str(odc.home / "odcd.sock"), odc.postmaster_pid
        with idle(place, MANY):
            goes_on(odc, pid, postmaster)
            assert get(place, source="127.0.0.2")[0] == 200
            assert metric(path, "odcd_http_connections_refused_total") > 0


def test_strangers_from_many_addresses_leave_the_socket_free() -> None:
    sources = [f"127.0.0.{n}" for n in range(2, 60)]
    few = {"ODC_CONNECTIONS": "200"}
    with new_odc() as odc, limited(odc, environment=LISTEN | few) as pid:
        place, postmaster = tcp(odc), odc.postmaster_pid
        with idle(place, MANY, sources=sources):
            goes_on(odc, pid, postmaster)


def test_to_run_out_of_descriptors_is_no_end_of_postgresql() -> None:
    with new_odc() as odc, limited(odc) as pid:
        postmaster = odc.postmaster_pid
        usual = soft_limit_of(pid)
        path = str(odc.home / "odcd.sock")
        set_soft_limit(pid, 3)
        with socket.socket(socket.AF_UNIX) as waits:
            waits.connect(path)
            # Long enough for several looks at PostgreSQL; as root those are the keeper's.
            time.sleep(2)
            set_soft_limit(pid, usual)
            goes_on(odc, pid, postmaster)
        assert metric(path, "odcd_http_connections_refused_total") > 0
        told = odc.home.with_name(f"{odc.home.name}.log").read_text()
        assert os.geteuid() == 0 or "postgres.out_of_descriptors" in told


def test_jobs_and_postgresql_keep_the_limit_that_the_daemon_began_with() -> None:
    with new_odc() as odc, limited(odc) as pid:
        assert soft_limit_of(pid) > SOFT
        output: Path = odc.work / "limit"
        job = odc.submit("--output", str(output), "--wrap", "ulimit -S -n")
        odc.wait_for(job, "COMPLETED")
        assert output.read_text().strip() == str(SOFT)
        first = odc.postmaster_pid
        assert first is not None
        assert soft_limit_of(first) == SOFT
        kill(first)
        again = wait(
            lambda: found if (found := odc.postmaster_pid) not in (None, first) else None, odc.log
        )
        assert again is not None
        assert soft_limit_of(again) == SOFT
