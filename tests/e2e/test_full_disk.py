"""A full disk loses no accepted job and is reported; after space was freed, everything continues by
itself."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import socket
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from odcd.database.pool import connect
from odcd.home.account import become
from odcd.home.postgres import EmbeddedPostgres
from odcd.home.postgres_roles import ADMIN_ROLE, ROLE
from tests.support.harness.daemon import Odc, new_odc, wait
from tests.support.harness.database import make_home
from tests.support.harness.users import needs_root

pytestmark = [needs_root, pytest.mark.long]

NODES = ("--node", "n1=h100:8x64")


@dataclass(frozen=True)
class Disk:
    folder: Path

    def fill(self, leave_mib: int = 0) -> None:
        with contextlib.suppress(OSError), (self.folder / "filler").open("ab", 0) as file:
            while leave_mib == 0 or self.free_mib > leave_mib:
                file.write(bytes(4096))

    @property
    def free_mib(self) -> int:
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize // 2**20

    def free(self) -> None:
        (self.folder / "filler").unlink()


@contextmanager
def small_disk(mib: int) -> Generator[Disk]:
    folder = make_home()
    command = ["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=755", "tmpfs", folder]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip(f"cannot mount here: {mounted.stderr.strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def post(odc: Odc, body: dict[str, Any], key: str) -> tuple[int, Any]:
    """Status 0: no answer."""
    spec = {"script": "#!/bin/sh\necho $ODC_JOB_ID >> runs\n", "work_dir": str(odc.work)}
    try:
        return odc.request("POST", "/v1/jobs", spec | body, key=key)
    except (OSError, http.client.HTTPException):
        return 0, None


@contextlib.contextmanager
def wal_switch(odc: Odc) -> Iterator[Callable[[], None]]:
    """Call to begin another file of PostgreSQL's log, as its superuser: the daemon's role may not.

    The session begins before the disk is full, for a new one may have to write a file first.
    PostgreSQL may end meanwhile.
    """
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            asyncio.run(_switch_when_asked(odc, theirs))
        finally:
            os._exit(0)
    theirs.close()

    def switch() -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            ours.send(b".")
            ours.recv(1)

    try:
        with ours:
            assert ours.recv(1), "no session"
            yield switch
    finally:
        os.waitpid(pid, 0)


async def _switch_when_asked(odc: Odc, requests: socket.socket) -> None:
    postgres = EmbeddedPostgres(odc.home)
    become(postgres.owner, odc.home)
    dsn = postgres.dsn.replace(f"//{ROLE}@", f"//{ADMIN_ROLE}@")
    connection = await connect(dsn, name="odc test")
    requests.send(b".")
    while requests.recv(1):
        # Without the message the present file may have nothing in it; PostgreSQL would keep it.
        await connection.execute("select pg_logical_emit_message(false, 'odc', 'test')")
        await connection.execute("select pg_switch_wal()")
        requests.send(b".")


def test_a_full_disk_of_the_database_refuses_submits_clearly_and_loses_nothing() -> None:
    with small_disk(320) as disk, new_odc(disk.folder / "home") as odc:
        odc.environment["ODC_DISK_RESERVE_MIB"] = "0"
        odc.up(*NODES)
        flag = odc.work / "go"
        running = odc.submit("--wrap", f"until [ -e {flag} ]; do sleep 0.05; done; exit 3")
        odc.wait_for(running, "RUNNING")
        accepted = [odc.submit("--hold", "--wrap", "echo $ODC_JOB_ID >> runs") for _ in range(3)]
        disk.fill()
        refused: list[Any] = []
        for number in range(2000):
            script = f"#!/bin/sh\n# {number}\n" + "# long\n" * 100_000
            status, answer = post(odc, {"script": script, "hold": True}, f"filling {number}")
            if status == 201:
                accepted.append(answer["id"])
                continue
            assert status in (0, 503), answer
            if status == 503:
                refused.append(answer)
                assert answer["code"] == "OD023"
                assert answer["hint"]
            if len(refused) == 3:
                break
        assert len(refused) == 3
        assert all("no disk space left" in problem["detail"] for problem in refused), refused
        # Jobs continue, and their exits are known after space was freed.
        flag.touch()
        disk.free()
        wait(lambda: post(odc, {}, "after")[0] == 201, odc.log)
        last = post(odc, {}, "after")[1]["id"]
        assert odc.wait_for(running, "FAILED")["exit_code"] == 3
        odc.wait_for(last, "COMPLETED")
        odc.odcctl("release", *map(str, accepted))
        for job in accepted:
            assert odc.wait_for(job, "COMPLETED")["attempt"] == 1
        assert odc.rows("select odc.check_books()") == []
        count = odc.rows("select count(*) from odc.job")[0]["count"]
        assert count == len(accepted) + 2


def test_a_server_that_died_of_a_full_disk_comes_back_with_all_that_was_accepted() -> None:
    """Without room for its log PostgreSQL ends itself, and cannot start before there is space."""
    with small_disk(320) as disk, new_odc(disk.folder / "home") as odc:
        odc.environment["ODC_DISK_RESERVE_MIB"] = "0"
        odc.up(*NODES)
        daemon = odc.pid
        accepted = [odc.submit("--hold", "--wrap", "echo $ODC_JOB_ID >> runs") for _ in range(3)]
        first = odc.postmaster_pid
        with wal_switch(odc) as switch:
            disk.fill()
            for number in range(200):
                switch()
                status, answer = post(odc, {"hold": True}, f"filling {number}")
                assert status in (201, 503), answer
                if status == 201:
                    accepted.append(answer["id"])
                elif odc.postmaster_pid != first:
                    break
                disk.fill()
        # Its log may lack the reason: it is on the same full disk.
        assert odc.postmaster_pid != first
        disk.free()
        wait(lambda: post(odc, {}, "after")[0] == 201, odc.log)
        assert odc.pid == daemon
        odc.odcctl("release", *map(str, accepted))
        for job in accepted:
            assert odc.wait_for(job, "COMPLETED")["attempt"] == 1
        assert odc.rows("select odc.check_books()") == []


def test_jobs_are_refused_before_the_databases_disk_is_full() -> None:
    with small_disk(320) as disk, new_odc(disk.folder / "home") as odc:
        odc.environment["ODC_DISK_RESERVE_MIB"] = "40"
        odc.up(*NODES)
        flag = odc.work / "go"
        running = odc.submit("--wrap", f"until [ -e {flag} ]; do sleep 0.05; done; exit 3")
        odc.wait_for(running, "RUNNING")
        held = odc.submit("--hold", "--wrap", "true")
        disk.fill(leave_mib=30)

        def refused() -> Any:
            status, answer = post(odc, {"hold": True}, os.urandom(4).hex())
            assert status in (201, 507), answer
            return answer if status == 507 else None

        problem = wait(refused, odc.log)
        assert problem["code"] == "OD043"
        assert "less than the reserve of 40 MiB" in problem["detail"]
        assert "Free space there" in problem["hint"]
        result = odc.odcctl("submit", "--wrap", "true", check=False)
        assert result.returncode != 0
        assert "OD043" in result.stderr
        with odc.asking("GET", "/metrics") as connection:
            metrics = connection.getresponse().read().decode()
        (free,) = [
            float(line.split()[1])
            for line in metrics.splitlines()
            if line.startswith("odcd_database_disk_free_bytes ")
        ]
        assert 0 < free < 40 * 2**20
        # Requests that remove jobs, and requests that only read, still work.
        assert odc.odcctl("submit", "--test-only", "--wrap", "true").returncode == 0
        odc.odcctl("cancel", str(held))
        flag.touch()
        assert odc.wait_for(running, "FAILED")["exit_code"] == 3
        disk.free()
        wait(lambda: refused() is None, odc.log)


def test_a_full_output_disk_fails_only_the_job_that_writes_to_it() -> None:
    with small_disk(1) as disk, new_odc() as odc:
        odc.up(*NODES)
        disk.folder.chmod(0o777)
        full = odc.submit("-o", str(disk.folder / "out"), "--wrap", "set -e; yes | head -c 9000000")
        other = odc.submit("--wrap", "echo fine")
        assert odc.wait_for(full, "FAILED", "COMPLETED")["state"] == "FAILED"
        assert odc.wait_for(other, "COMPLETED")["exit_code"] == 0
        assert odc.odcctl("logs", str(other)).stdout == "fine\n"


def test_a_full_disk_of_the_runner_refuses_starts_until_there_is_space() -> None:
    with small_disk(4) as disk, new_odc() as odc:
        odc.home.mkdir()
        (odc.home / "odcd.lock").touch()
        (disk.folder / "runner").mkdir()
        (odc.home / "runner").symlink_to(disk.folder / "runner")
        odc.up(*NODES)
        flag = odc.work / "go"
        running = odc.submit("--wrap", f"until [ -e {flag} ]; do sleep 0.05; done; exit 3")
        odc.wait_for(running, "RUNNING")
        disk.fill()
        refused = odc.submit("--no-requeue", "--wrap", "echo $ODC_ATTEMPT >> runs")

        def waits() -> bool:
            job = odc.job(refused)
            return (job["state"], job["reason"]) == ("PENDING", "JobLaunchFailure")

        wait(waits, lambda: f"{odc.job(refused)}{odc.log()}")
        events = odc.odcctl("events", "--job", str(refused)).stdout
        assert "no space left" in events
        flag.touch()
        assert odc.wait_for(running, "FAILED")["exit_code"] == 3
        disk.free()
        odc.odcctl("update", str(refused), "--begin", "now")
        # It was tried again by itself, too, where all this took long.
        attempt = odc.wait_for(refused, "COMPLETED")["attempt"]
        assert attempt >= 2
        assert (odc.work / "runs").read_text() == f"{attempt}\n"
