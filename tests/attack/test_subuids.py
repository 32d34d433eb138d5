"""A user with subordinate uids is still one user, and owns all their processes."""

from __future__ import annotations

import asyncio
import ctypes
import os
import pwd
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from odcd.api.http.identity import Identifier
from odcd.errors import NotOwner
from odcd.front.crowd import Crowd, Limits
from odcd.front.peer import PEER, Peer
from odcd.front.proxies import Proxies
from odcd.front.watch import Nobody
from odcd.records.job import Identity
from odcd.runner import subuids
from odcd.runner.keeping import Keeping
from odcd.runner.log import Log
from odcd.runner.spool import full_of
from odcd.runner.subuids import Subuids
from tests.attack.strangers import ALICE, BOB
from tests.attack.test_jobs import PTRACE_SEIZE, PYTHON, pids_in
from tests.support.fakes.clock import VirtualClock
from tests.support.harness.database import make_home, remove_home
from tests.support.harness.runner import (
    Client,
    RunnerHome,
    a_dispatch,
    forked_runner,
    is_running,
    until,
)
from tests.support.harness.users import needs_root

pytestmark = [needs_root, pytest.mark.long]

ANN = {"uid": ALICE, "gid": ALICE}
SUB, COUNT = 300_000, 1000
PTRACE_O_TRACEEXIT, CLONE_NEWUSER = 0x40, 0x10000000
BECOMES_ANOTHER = f"""{PYTHON}
import ctypes, os, time
if ctypes.CDLL(None).unshare({CLONE_NEWUSER}):
    os._exit(9)
with open("pid", "w") as file:
    print(os.getpid(), file=file)
while not os.path.exists("mapped"):
    time.sleep(0.01)
os.setresuid(1, 1, 1)
os.execv("/bin/sleep", ["sleep", "1000"])
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = make_home()
    yield folder
    remove_home(folder)


@pytest.fixture
def work_dir(folder: Path) -> Path:
    work_dir = folder / "work"
    work_dir.mkdir()
    os.chown(work_dir, ALICE, ALICE)
    return work_dir


@pytest.fixture
def listed(folder: Path) -> Path:
    path = folder / "subuid"
    path.write_text(f"# none\n{BOB}:{SUB + COUNT}:{COUNT}\nno one:5:x\n{ALICE}:{SUB}:{COUNT}\n")
    return path


def job_of_another_id(client: Client, work_dir: Path) -> int:
    """The pid of job 1, which has a subordinate uid by now, as newuidmap allows it."""
    client.start(a_dispatch(1, BECOMES_ANOTHER, work_dir, **ANN))
    until(lambda: (work_dir / "pid").exists() or ended(client))
    if ended(client):
        pytest.skip("this machine lets no user make user namespaces")
    (pid,) = pids_in(work_dir / "pid", 1)
    Path(f"/proc/{pid}/uid_map").write_text(f"0 {ALICE} 1\n1 {SUB} {COUNT}\n")
    (work_dir / "mapped").touch()
    until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
    assert f"Uid:\t{SUB}\t{SUB}\t{SUB}\t{SUB}\n" in Path(f"/proc/{pid}/status").read_text()
    return pid


def in_namespace(pid: int) -> None:
    with Path(f"/proc/{pid}/ns/user").open() as namespace:
        if ctypes.CDLL(None).setns(namespace.fileno(), CLONE_NEWUSER):
            os._exit(9)
    os.setresuid(1, 1, 1)


def test_a_tracer_with_a_subordinate_uid_does_not_keep_a_jobs_gpus(
    folder: Path, work_dir: Path
) -> None:
    home = RunnerHome(folder / "runner")
    home.launch()
    client = home.client()
    pid = job_of_another_id(client, work_dir)
    reading, writing = os.pipe()
    tracer = os.fork()
    if tracer == 0:
        try:
            os.setgroups([])
            os.setresgid(ALICE, ALICE, ALICE)
            in_namespace(pid)
            libc = ctypes.CDLL(None, use_errno=True)
            libc.ptrace.argtypes = [ctypes.c_long] * 4
            done = libc.ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXIT)
            # As if its memory were private: root then owns /proc/PID.
            libc.prctl(4, 0, 0, 0, 0)
            os.write(writing, b"n" if done else b"y")
            while True:
                signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    try:
        if os.read(reading, 1) != b"y":
            pytest.skip("this machine allows no tracing of one's own processes")
        client.ask("stop", job=1, attempt=1, signal=9, grace_s=0)
        assert client.wait_end(1)["signal"] == 9
        assert not is_running(pid)
    finally:
        os.close(reading)
        os.kill(tracer, signal.SIGKILL)
        os.waitpid(tracer, 0)
        home.end()


def ended(client: Client) -> bool:
    return client.ask("state", job=1, attempt=1, rank=0)["state"] == "ended"


def test_a_process_with_a_subordinate_uid_ends_with_its_job(folder: Path, work_dir: Path) -> None:
    home = RunnerHome(folder / "runner")
    home.launch()
    try:
        client = home.client()
        pid = job_of_another_id(client, work_dir)
        client.ask("stop", job=1, attempt=1, signal=15, grace_s=5)
        client.wait_end(1)
        assert not is_running(pid)
    finally:
        home.end()


def test_a_process_with_a_subordinate_uid_is_found_when_runner_and_shim_are_gone(
    folder: Path, work_dir: Path
) -> None:
    home = RunnerHome(folder / "runner")
    home.launch()
    try:
        pid = job_of_another_id(home.client(), work_dir)
        shim = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        home.kill()
        os.kill(shim, signal.SIGKILL)
        home.launch()
        assert home.client(term=2).wait_end(1)["kind"] == "lost"
        assert not is_running(pid)
    finally:
        home.end()


def test_a_process_with_a_listed_uid_is_found_outside_of_namespaces(
    folder: Path, work_dir: Path, listed: Path
) -> None:
    """As a setuid file of the user's namespace makes one."""

    def change() -> None:
        subuids.FILE = listed

    home = RunnerHome(folder / "runner")
    home.launch()
    script = "#!/bin/sh\necho $$ $PPID > pid\nexec sleep 1000\n"
    starter = home.client()
    starter.start(a_dispatch(1, script, work_dir, **ANN))
    pid, shim = pids_in(work_dir / "pid", 2)
    until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")[:-1]
    marks = dict(entry.split(b"=", 1) for entry in environment)
    sleep = ["sleep", "1000"]
    with subprocess.Popen(sleep, user=SUB, group=ALICE, extra_groups=[], env=marks) as escaped:
        home.kill()
        os.kill(shim, signal.SIGKILL)
        runner = forked_runner(home.run_dir, change=change)
        client = home.client(term=2)
        assert client.wait_end(1)["kind"] == "lost"
        until(lambda: escaped.poll() is not None)
    client.close()
    starter.close()
    os.kill(runner, signal.SIGTERM)
    os.waitpid(runner, 0)


def test_a_users_subordinate_uids_share_one_limit_of_connections(listed: Path) -> None:
    limits = Limits(all=1000, tcp=1000, per_user=3, per_address=3)
    crowd = Crowd(limits, Proxies(()), Nobody(), os.getuid(), Subuids(listed))
    for uid in (ALICE, SUB, SUB + COUNT - 1):
        assert crowd.enter(Peer(uid, uid), "") != "user"
    for uid in (ALICE, SUB + 1):
        assert crowd.enter(Peer(uid, uid), "") == "user"
    for uid in (BOB, SUB + COUNT, SUB + 2 * COUNT):
        assert crowd.enter(Peer(uid, uid), "") != "user"


class NoKeys:
    async def get_owner(self, digest: str, now: datetime) -> tuple[str, int, int] | None:
        return None


class NoUsers:
    async def get_name(self, uid: int) -> str | None:
        return None


def test_the_daemon_takes_no_request_of_a_subordinate_uid(listed: Path) -> None:
    """Before: each of 65,536 uids had a user's share, limits and open requests."""
    clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
    identifier = Identifier(
        NoKeys(),
        NoUsers(),
        clock,
        own_uid=0,
        operators=frozenset(),
        serves_uid=None,
        subuids=Subuids(listed),
    )

    def identify(uid: int) -> Identity:
        scope = {"state": {PEER: Peer(uid, uid)}, "headers": []}
        return asyncio.run(identifier.identify(scope))

    for uid in (ALICE, BOB, SUB - 1, SUB + 2 * COUNT):
        assert identify(uid).uid == uid
    for uid in (SUB, SUB + COUNT - 1):
        with pytest.raises(NotOwner, match=f"subordinate uid of {ALICE}") as refused:
            identify(uid)
        assert refused.value.hint == f"Submit as {ALICE}."
    # A range that overlaps with users of this machine does not take over their accounts.
    listed.write_text(f"{ALICE}:1:{COUNT}\n")
    assert identify(pwd.getpwnam("daemon").pw_uid).user == "daemon"


def test_kept_output_of_subordinate_uids_counts_for_their_user(folder: Path, listed: Path) -> None:
    class Silent:
        def info(self, event: str, **fields: object) -> None: ...

    output = folder / "output"
    output.mkdir()
    for job, uid in enumerate((ALICE, SUB, SUB + 1, BOB), 1):
        path = output / f"{job}-1-0.out"
        path.write_bytes(bytes(300_000))
        os.chown(path, uid, uid)
    keeping = Keeping(output, cast(Log, Silent()), Subuids(listed))
    keeping.look_after({f"{job}-1-0" for job in range(1, 5)}, total_mib=1)
    marks = {path.name for path in output.glob(".full-*")}
    assert marks == {full_of(uid) for uid in (ALICE, SUB, SUB + 1)}
