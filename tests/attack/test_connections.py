"""No user can stop the daemon, its PostgreSQL or other users by opening connections."""

from __future__ import annotations

import os
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from odcd.front.crowd import Crowd, Entry, Limits
from odcd.front.near import Origin
from odcd.front.peer import Peer
from odcd.front.proxies import Proxies, parse_networks
from odcd.front.watch import Nobody
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
from tests.support.harness.daemon import Odc, kill, new_odc, wait

pytestmark = pytest.mark.long
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="acts as two users")
LISTEN = {"ODC_LISTEN": "127.0.0.1:0"}
MANY = 1_100


def goes_on(odc: Odc, pid: int, postmaster: int | None) -> None:
    """A job runs from submission to end, and nothing was restarted."""
    odc.wait_for(odc.submit("--wrap", "true"), "COMPLETED")
    assert (odc.pid, odc.postmaster_pid) == (pid, postmaster), odc.log()


@as_root
@pytest.mark.parametrize("hard", [None, SOFT])
def test_a_thousand_idle_connections_of_one_user_block_no_other_user(hard: int | None) -> None:
    """If the limit can be raised, and if it cannot."""
    with new_odc() as odc, limited(odc, hard=hard) as pid:
        path, postmaster = str(odc.home / "odcd.sock"), odc.postmaster_pid
        with idle(path, MANY, MALLORY):
            goes_on(odc, pid, postmaster)
            assert get_as(BOB, path, "/v1/jobs") == 200
            assert metric(path, "odcd_http_connections_refused_total") > 0
        wait(lambda: get_as(MALLORY, path, "/v1/jobs") == 200 or None, odc.log)


@as_root
def test_a_thousand_idle_loopback_connections_of_one_user_block_no_other_user() -> None:
    """Before: they were counted under 127.0.0.1, and no one else could connect over loopback."""
    with new_odc() as odc, limited(odc, environment=LISTEN) as pid:
        place, path, postmaster = tcp(odc), str(odc.home / "odcd.sock"), odc.postmaster_pid
        sources = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
        with idle(place, MANY, MALLORY, sources):
            goes_on(odc, pid, postmaster)
            assert get_as(BOB, place, "/health") == 200
            assert get(place)[0] == 200
            assert get_as(MALLORY, place, "/health") in (0, 429)
            # All of them belong to one user, whichever way they come.
            assert get_as(MALLORY, path, "/health") in (0, 429)
            assert metric(path, "odcd_http_connections_refused_total") > 0
        wait(lambda: get_as(MALLORY, place, "/health") == 200 or None, odc.log)


@as_root
def test_many_users_over_tcp_leave_the_socket_free() -> None:
    few = {"ODC_CONNECTIONS": "200"}
    with new_odc() as odc, limited(odc, environment=LISTEN | few) as pid, ExitStack() as stack:
        place, postmaster = tcp(odc), odc.postmaster_pid
        for uid in range(MALLORY, MALLORY + 4):
            stack.enter_context(idle(place, 100, uid))
        goes_on(odc, pid, postmaster)


def test_many_connections_of_an_unknown_client_block_no_user() -> None:
    """Addresses of other machines, and connections for which the kernel names no user."""
    limits = Limits(all=64, tcp=48, per_user=8, per_address=8)
    crowd = Crowd(limits, Proxies(parse_networks(["198.51.100.7"], "X")), Nobody(), own_uid=0)
    far, unknown = Origin("far", None, 80), Origin("unknown", None, 80)

    def taken(address: str, origin: Origin) -> list[str | Entry]:
        return [crowd.enter(None, address, origin) for _ in range(9)]

    assert taken("192.0.2.1", far)[-1] == "address"
    assert taken("127.0.0.1", unknown)[-1] == "address"
    assert taken("127.0.0.1", Origin("near", MALLORY, 80))[-1] == "user"
    assert taken("127.0.0.1", Origin("near", 0, 80))[-1] == "user"
    assert crowd.enter(Peer(MALLORY, MALLORY), "") == "user"
    assert isinstance(taken("198.51.100.7", far)[-1], Entry)
    assert taken("192.0.2.2", far)[-1] == "tcp"
    assert isinstance(crowd.enter(Peer(BOB, BOB), ""), Entry)


def test_postgresql_survives_running_out_of_file_descriptors() -> None:
    with new_odc() as odc, limited(odc) as pid:
        postmaster = odc.postmaster_pid
        usual = soft_limit_of(pid)
        path = str(odc.home / "odcd.sock")
        set_soft_limit(pid, 3)
        with socket.socket(socket.AF_UNIX) as waits:
            waits.connect(path)
            # Long enough for several checks of PostgreSQL; as root, the keeper does those.
            time.sleep(2)
            set_soft_limit(pid, usual)
            goes_on(odc, pid, postmaster)
        assert metric(path, "odcd_http_connections_refused_total") > 0
        log = odc.home.with_name(f"{odc.home.name}.log").read_text()
        assert os.geteuid() == 0 or "postgres.out_of_descriptors" in log


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
