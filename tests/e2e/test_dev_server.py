"""Dev servers on one machine, as users see them: reserve, connect, reconnect, extend, end."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.harness.daemon import TIMEOUT_S, Odc, gone, kill, wait

pytestmark = pytest.mark.long

NODES = ("--node", "n[1-2]=h100:8x64", "--node", "c1=cpu-x86:0x16")


@pytest.fixture
def odc(odc: Odc) -> Odc:
    """One for each test, so that no test sees leftovers of another."""
    odc.up(*NODES)
    return odc


def reserve(odc: Odc, *argv: str) -> int:
    reserved = odc.odcctl("reserve", "-t", "h100", "-h", "1", "--json", *argv)
    return json.loads(reserved.stdout)["id"]


def show(odc: Odc, job_id: int) -> dict[str, Any]:
    status, reservation = odc.request("GET", f"/v1/reservations/{job_id}")
    assert status == 200, reservation
    return reservation


class Terminal:
    """odcctl connect in a terminal."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def until(self, text: str, times: int = 1) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while self.seen.count(text) < times:
            assert time.monotonic() < deadline, f"waited in vain for {text!r}:\n{self.seen}"
            if select.select([self._fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self._fd, 65536).decode(errors="replace")
                except OSError:
                    raise AssertionError(f"it ended before {text!r}:\n{self.seen}") from None


@contextmanager
def connected(odc: Odc, job_id: int) -> Generator[Terminal]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "odcctl", "connect", str(job_id)],
        env=odc.environment | {"TERM": "xterm"}, cwd=odc.work,
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Terminal(ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_dev_server_keeps_its_shell_when_a_user_detaches_and_restarts_one_that_ends(
    odc: Odc,
) -> None:
    job_id = reserve(odc, "-g", "2")
    with connected(odc, job_id) as first:
        first.until("odc reservation")
        first.type("PS1='> '; here=yes$ODC_GPUS\n")
        first.type("echo says-$here\n")
        first.until("says-yes2")
    with connected(odc, job_id) as second:
        second.type("echo still-$here\n")
        second.until("still-yes2")
        second.type("exit\n")
        second.until(f"Reservation {job_id} continues")
        second.type("echo new-${here:-shell}\n")
        second.until("new-shell")
        second.type("echo at-$HOME,$SHELL,$(pwd)\n")
        second.until(f"at-{odc.user_home},/bin/sh,{odc.user_home}")
        second.type(f"{sys.executable} -m odcctl list --output quiet | sed s/^/mine-/\n")
        second.until(f"mine-{job_id}")
    assert show(odc, job_id)["status"] == "active"
    odc.odcctl("cancel", str(job_id))
    wait(lambda: show(odc, job_id)["phase"] is None, lambda: str(show(odc, job_id)))
    ended = show(odc, job_id)
    assert (ended["status"], ended["connect"]) == ("cancelled", None)


def test_a_dev_server_survives_a_killed_daemon_and_keeps_its_expiry(odc: Odc) -> None:
    """BUG-37: the daemon's memory contains no part of its state."""
    job_id = reserve(odc, "-g", "1")
    before = show(odc, job_id)
    pid = odc.pid
    assert kill(pid, signal.SIGKILL)
    wait(lambda: gone(pid), lambda: "it lives on")
    odc.up(*NODES)
    after = show(odc, job_id)
    assert after["status"] == "active"
    assert (after["expires_at"], after["attempt"]) == (before["expires_at"], before["attempt"])
    odc.odcctl("extend", str(job_id), "-h", "0.5")
    assert show(odc, job_id)["extended_s"] == 1800
    with connected(odc, job_id) as terminal:
        terminal.type("echo alive-$ODC_JOB_ID\n")
        terminal.until(f"alive-{job_id}")
    odc.odcctl("cancel", str(job_id))
    odc.wait_for(job_id, "CANCELLED")


def test_a_queued_reservation_shows_its_reason_and_starts_when_gpus_are_free(odc: Odc) -> None:
    """SCH-18: one queue for dev servers and jobs."""
    job = odc.submit("--exclusive", "-N", "2", "--gpus-per-node", "h100:8", "-t", "60",
                     "--wrap", "sleep 600")  # fmt: skip
    odc.wait_for(job, "RUNNING")
    reserved = odc.odcctl("reserve", "-t", "h100", "-g", "8", "-h", "2", "--no-wait", "--json")
    waiting = json.loads(reserved.stdout)["id"]
    wait(lambda: show(odc, waiting)["status"] == "queued", lambda: str(show(odc, waiting)))

    # Positions are read again once a second.
    def placed() -> bool:
        found = show(odc, waiting)
        return found["queue_position"] == 1 and found["planned_start_at"] is not None

    wait(placed, lambda: str(show(odc, waiting)))
    why = odc.odcctl("why", str(waiting)).stdout
    assert f"job {job}" in why
    odc.odcctl("cancel", str(job))
    odc.wait_for(waiting, "RUNNING")
    odc.odcctl("cancel", str(waiting))
    odc.wait_for(waiting, "CANCELLED")


@pytest.mark.skipif(shutil.which("ssh") is None, reason="odcctl looks for ssh first")
def test_a_command_argument_is_refused_before_anything_is_reserved(odc: Odc) -> None:
    """CLI-50: there is no ssh into a shell of the daemon's machine."""
    refused = odc.odcctl("reserve", "-t", "h100", "--", "hostname", check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "nothing reserved: " in refused.stderr
    assert "odcctl run --gpus 1 COMMAND" in refused.stderr
    assert odc.request("GET", "/v1/reservations?all=true")[1] == {"reservations": []}
