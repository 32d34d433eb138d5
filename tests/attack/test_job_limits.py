"""Jobs have their own limits, run only as their user, and never as a system account."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from odcd.errors import BadRequest
from odcd.executor.job_rules import parse_limits
from odcd.runner import launch, processes, rules
from tests.support.harness.daemon import new_odc
from tests.support.harness.database import make_home, remove_home
from tests.support.harness.runner import RequestRefused, RunnerHome, a_dispatch, until
from tests.support.harness.signals import OF_THE_C_LIBRARY
from tests.support.harness.users import needs_root

pytestmark = needs_root

ANN = {"uid": 64001, "gid": 64001}
ROOT = {"uid": 0, "gid": 0}


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = make_home()
    yield folder
    remove_home(folder)


@pytest.fixture
def work_dir(folder: Path) -> Path:
    work_dir = folder / "work"
    work_dir.mkdir()
    os.chown(work_dir, ANN["uid"], ANN["gid"])
    return work_dir


@pytest.fixture
def home(folder: Path) -> Iterator[RunnerHome]:
    home = RunnerHome(folder / "runner")
    yield home
    # Its end of the socket accepts requests of root; root's jobs may still be refused.
    home.end()


class OddShell:
    """A root's shell with odd settings, from which the runner is started."""

    def __enter__(self) -> None:
        self._limits = {
            number: resource.getrlimit(number)
            for number in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE, resource.RLIMIT_STACK)
        }
        self._umask = os.umask(0o077)
        self._hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._child = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        self._nice = os.getpriority(os.PRIO_PROCESS, 0)
        os.environ["ROOTS_SECRET"] = "s3cret"
        _, hard = self._limits[resource.RLIMIT_NOFILE]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 24, self._limits[resource.RLIMIT_STACK][1]))
        os.setpriority(os.PRIO_PROCESS, 0, self._nice + 3)

    def __exit__(self, *_: object) -> None:
        for number, limit in self._limits.items():
            resource.setrlimit(number, limit)
        os.umask(self._umask)
        signal.signal(signal.SIGHUP, self._hangup)
        signal.signal(signal.SIGTSTP, self._child)
        os.setpriority(os.PRIO_PROCESS, 0, self._nice)
        del os.environ["ROOTS_SECRET"]


FACTS = """#!/bin/sh
for name in n c s l u; do
    echo "soft-$name $(ulimit -S -$name)"
    echo "hard-$name $(ulimit -H -$name)"
done
echo "umask $(umask)"
echo "nice $(nice)"
echo "oom $(cat /proc/self/oom_score_adj)"
grep -E '^(SigBlk|SigIgn|Groups|Cap...):' /proc/$$/status | sed 's/:/ /'
echo "secret ${ROOTS_SECRET-none}"
ls /proc/$$/fd > fds
echo -1000 2>/dev/null > /proc/self/oom_score_adj && echo "oom-lowered yes" || echo "oom-lowered no"
"""


def facts_of(home: RunnerHome, work_dir: Path) -> dict[str, str]:
    client = home.client()
    client.start(a_dispatch(1, FACTS, work_dir, **ANN))
    assert client.wait_end(1)["kind"] == "exited"
    lines = (work_dir / "out").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(" ") for line in lines)}


def test_a_job_inherits_nothing_of_the_shell_that_started_odc(
    home: RunnerHome, work_dir: Path
) -> None:
    rules.write(home.run_dir, rules.Rules())
    with OddShell():
        launch.launch_runner(home.run_dir, 0, 0)
    facts = facts_of(home, work_dir)
    processes = str(rules.default_limits()["nproc"][0])
    # Without CAP_SYS_RESOURCE, as in most containers, root raises no limit above its own.
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = {"524288", str(min(524_288, hard_limit))}
    assert facts["soft-n"] == "1024"
    assert facts["hard-n"] in allowed
    assert (facts["soft-c"], facts["hard-c"]) == ("0", "unlimited")
    assert (facts["soft-s"], facts["hard-s"]) == ("8192", "unlimited")
    _, hard_limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    allowed = {
        "unlimited",
        "unlimited" if hard_limit == resource.RLIM_INFINITY else str(hard_limit // 1024),
    }
    assert facts["soft-l"] == facts["hard-l"]
    assert facts["hard-l"] in allowed
    if "soft-u" in facts and facts["soft-u"].isdecimal():
        assert facts["soft-u"] == facts["hard-u"] == processes
    assert facts["umask"] == "0022"
    assert (facts["nice"], facts["oom"], facts["oom-lowered"]) == ("0", "0", "no")
    assert int(facts["SigBlk"], 16) & ~OF_THE_C_LIBRARY == 0
    assert int(facts["SigIgn"], 16) & ~OF_THE_C_LIBRARY == 0
    assert facts["Groups"] == "64001"
    assert {int(facts[name], 16) for name in ("CapPrm", "CapEff", "CapAmb")} == {0}
    assert facts["secret"] == "none"
    # In addition to its own three; a shell keeps its own descriptors from 10 on.
    fds = {int(name) for name in (work_dir / "fds").read_text().split()}
    assert not fds & set(range(3, 10))


def test_the_operator_changes_limits(home: RunnerHome, work_dir: Path) -> None:
    home.launch(limits={**rules.default_limits(), **parse_limits("nofile=64:128,core=1M")})
    facts = facts_of(home, work_dir)
    assert (facts["soft-n"], facts["hard-n"]) == ("64", "128")
    assert facts["soft-c"] == facts["hard-c"] == "2048"  # of 512 bytes


@pytest.mark.parametrize(
    "text", ["nofile", "nofile=", "nofile=x", "files=3", "nofile=9:3", "nofile=unlimited:3",
             "nofile=-1", "nofile=1:2:3", "nofile=99999999999T"],
)  # fmt: skip
def test_limits_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="ODC_JOB_LIMITS") as refused:
        parse_limits(text)
    assert refused.value.hint


def test_a_terminal_is_writable_by_its_user_alone(home: RunnerHome, work_dir: Path) -> None:
    home.launch()
    client = home.client()
    script = "#!/bin/sh\nstat -L -c '%u %G %a' /proc/self/fd/0 > tty\n"
    client.start(a_dispatch(1, script, work_dir, pty=True, **ANN))
    assert client.wait_end(1)["exit_code"] == 0
    assert (work_dir / "tty").read_text() == "64001 tty 600\n"


REFUSED = {
    "root": ({"uid": 0, "gid": 0}, "jobs may not run as root here"),
    "a system account": ({"uid": 33, "gid": 33}, "user id 33 is a system account"),
    "nobody": ({"uid": 65534, "gid": 65534}, "user id 65534 is shared"),
    "no user": ({"uid": 2**32 - 1, "gid": 100}, "is not the id of a user"),
    "below zero": ({"uid": -1, "gid": 100}, "is not the id of a user"),
    "the group root": ({"uid": 64001, "gid": 0}, "user id 64001 is not in group 0"),
    "a group of others": ({"uid": 64999, "gid": 100}, "user id 64999 is not in group 100"),
    "the group shadow": ({"uid": 64001, "gid": 42}, "user id 64001 is not in group 42"),
}


@pytest.mark.parametrize("who", REFUSED)
def test_the_runner_itself_refuses(home: RunnerHome, work_dir: Path, who: str) -> None:
    """Even if the daemon requests otherwise, because it may have been compromised."""
    ids, why = REFUSED[who]
    home.launch(min_uid=1000, allow_root=False)
    client = home.client()
    work_dir.chmod(0o777)
    client.start(a_dispatch(1, "#!/bin/sh\nid > ran\n", work_dir, **ids))
    end = client.wait_end(1)
    assert end["kind"] == "start_failed"
    assert why in end["detail"]
    assert not (work_dir / "ran").exists()


KEYS = """#!/usr/bin/env -S python3 -S
import ctypes, os
libc = ctypes.CDLL(None)
add_key, keyctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
SEARCH, SESSION = 10, -3
found = libc.syscall(keyctl, SEARCH, SESSION, b"user", b"odc-secret", 0)
added = libc.syscall(add_key, b"user", b"odc-secret", b"x", 1, SESSION)
print(os.getppid(), found > 0, added > 0)
"""


def test_jobs_of_one_shim_share_no_session_keyring(home: RunnerHome, work_dir: Path) -> None:
    """Not even jobs of one user: a key ends with the job that added it."""
    home.launch()
    client = home.client()
    outputs: list[list[str]] = []
    for job in (1, 2, 3):
        client.start(a_dispatch(job, KEYS, work_dir, **ANN))
        assert client.wait_end(job)["exit_code"] == 0
        outputs.append((work_dir / "out").read_text().split())
    if "False" in {added for _, _, added in outputs}:
        pytest.skip("this machine has no keyrings")
    assert len({shim for shim, _, _ in outputs}) == 1
    assert {found for _, found, _ in outputs} == {"False"}


def test_a_refused_start_leaves_nothing_open_in_its_shim(home: RunnerHome, work_dir: Path) -> None:
    home.launch()
    client = home.client()

    def open_files(first_job: int) -> int:
        """In the only shim, after several refused starts."""
        for job in range(first_job, first_job + 5):
            client.start(a_dispatch(job, "#!/bin/sh\n", work_dir, spool=True, uid=64001, gid=42))
            assert "is not in group 42" in client.wait_end(job)["detail"]
        (shim,) = processes.children(home.pid)
        return len(list(Path(f"/proc/{shim}/fd").iterdir()))

    assert open_files(1) == open_files(6)


def test_the_runner_refuses_the_daemons_own_account(folder: Path, work_dir: Path) -> None:
    home = RunnerHome(folder / "runner")
    rules.write(home.run_dir, rules.Rules())
    launch.launch_runner(home.run_dir, 64001, 64001)
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nid > ran\n", work_dir, **ANN))
    assert "the daemon's own account" in client.wait_end(1)["detail"]
    home.end()


def test_the_runner_opens_no_file_as_root(home: RunnerHome, folder: Path) -> None:
    (folder / "shadow").write_text("root:secret")
    (folder / "shadow").chmod(0o600)
    home.launch(min_uid=1000, allow_root=False)
    client = home.client(term=None)
    with pytest.raises(RequestRefused, match="may not run as root"):
        client.ask("open_output", path=str(folder / "shadow"), **ROOT)


def test_a_rules_file_owned_by_another_user_is_ignored(home: RunnerHome, work_dir: Path) -> None:
    """A user who can write to the runner's folder gains no rights."""
    home.launch(min_uid=0, allow_root=True)
    os.chown(home.run_dir / "rules", ANN["uid"], ANN["gid"])
    (home.run_dir / "rules").touch()
    client = home.client()
    job = 0

    def refused() -> bool:
        nonlocal job
        job += 1
        client.start(a_dispatch(job, "#!/bin/sh\n", work_dir, **ROOT))
        return client.wait_end(job)["kind"] == "start_failed"

    until(refused)


@pytest.mark.long
def test_roots_jobs_are_refused_at_submit_unless_allowed() -> None:
    with new_odc() as odc:
        for name in ("ODC_ALLOW_ROOT_JOBS", "ODC_MIN_UID"):
            odc.environment.pop(name)
        (odc.work / "job.sh").write_text("#!/bin/sh\ntrue\n")
        odc.up("--node", "self")
        refused = odc.odcctl("submit", "job.sh", check=False)
        assert refused.returncode == 1
        assert "job not accepted: jobs may not run as root here" in refused.stderr
        assert "odcd up --allow-root-jobs" in refused.stderr
        assert odc.rows("select 1 from odc.pending") == []
        odc.odcd("down")
        odc.up("--node", "self", "--allow-root-jobs")
        odc.wait_for(odc.submit("job.sh"), "COMPLETED")
