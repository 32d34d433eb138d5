"""kill -9 of the runner, or of a shim, at any moment loses no exit and runs nothing twice."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from odcd.runner import record
from tests.support.harness.runner import (
    Client,
    RequestRefused,
    RunnerHome,
    a_dispatch,
    a_file,
    a_part,
    is_running,
    until,
)  # fmt: skip

pytestmark = pytest.mark.long

WAITS = """#!/bin/sh
echo $$ >> began
while [ ! -e go ]; do sleep 0.02; done
exit 9
"""


def _pid_of(client: Client) -> int:
    return client.ask("list")["members"][0]["pid"]


def _shim_of(client: Client) -> int:
    stat = Path(f"/proc/{_pid_of(client)}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def _restart(home: RunnerHome) -> Client:
    home.kill()
    home.launch()
    return home.client()


def test_a_job_outlives_its_runner_and_its_exit_is_known(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, WAITS, work_dir))
    client.wait_for(1, "started")
    client = _restart(home)
    assert client.ask("adopt", expected=[[1, 1, 0]]) == {"lost": 0, "killed": 0}
    (work_dir / "go").touch()
    assert client.wait_end(1)["exit_code"] == 9
    assert len((work_dir / "began").read_text().split()) == 1


def test_an_exit_without_a_runner_is_reported_by_the_next_runner(
    home: RunnerHome, work_dir: Path
) -> None:
    client = home.client()
    client.start(a_dispatch(1, WAITS, work_dir))
    client.wait_for(1, "started")
    path = home.run_dir / "members" / "1-1-0"
    home.kill()
    (work_dir / "go").touch()
    until(lambda: not record.is_held(path))
    home.launch()
    client = home.client()
    client.wait_end(1)
    assert [(f["kind"], f.get("exit_code")) for f in client.facts] == [
        ("started", None),
        ("exited", 9),
    ]


def test_facts_are_reported_until_they_are_acknowledged(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\n", work_dir))
    client.wait_end(1)
    again = home.client()
    assert again.wait_end(1) == client.wait_end(1)
    client = _restart(home)
    end = client.wait_end(1)
    client.acknowledge(end)
    assert client.ask("list")["members"] == []
    assert list((home.run_dir / "members").glob("[0-9]*")) == []


def test_a_gang_is_adopted_whole(home: RunnerHome, work_dir: Path) -> None:
    parts = [a_part(rank, work_dir) for rank in range(3)]
    client = home.client()
    client.start(a_dispatch(1, WAITS, work_dir, members=parts))
    for rank in range(3):
        client.wait_for(1, "started", rank)
    client.acknowledge(*client.facts)
    client = _restart(home)
    client.start(a_dispatch(1, WAITS, work_dir, members=parts))
    (work_dir / "go").touch()
    assert [client.wait_end(1, rank)["exit_code"] for rank in range(3)] == [9, 9, 9]
    assert len((work_dir / "began").read_text().split()) == 3


def test_a_killed_shim_means_lost_and_nothing_left(home: RunnerHome, work_dir: Path) -> None:
    script = "#!/bin/sh\nsetsid sleep 1000 &\necho $!\nsleep 1001 &\necho $!\nwait\n"
    client = home.client()
    client.start(a_dispatch(1, script, work_dir))
    out = work_dir / "out"
    until(lambda: out.exists() and len(out.read_text().split()) == 2)
    pids = [int(pid) for pid in out.read_text().split()]
    client.wait_for(1, "started")  # only then does the runner know its shim
    os.kill(_shim_of(client), signal.SIGKILL)
    end = client.wait_end(1)
    assert (end["kind"], end["cause"]) == ("lost", "unknown")
    assert not [pid for pid in pids if is_running(pid)]


def test_a_shim_killed_while_no_runner_lived_means_lost(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, WAITS, work_dir))
    client.wait_for(1, "started")
    shim = _shim_of(client)
    pid = _pid_of(client)
    home.kill()
    os.kill(shim, signal.SIGKILL)
    home.launch()
    assert home.client().wait_end(1)["kind"] == "lost"
    assert not is_running(pid)


def test_a_shim_killed_after_adoption_means_lost(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, WAITS, work_dir))
    client.wait_for(1, "started")
    shim = _shim_of(client)
    client = _restart(home)
    client.wait_for(1, "started")
    os.kill(shim, signal.SIGKILL)
    assert client.wait_end(1)["kind"] == "lost"


def test_the_next_runner_keeps_the_time_limit(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(
        a_dispatch(1, WAITS, work_dir, ends_at=time.time() + 1000),
        a_dispatch(2, WAITS, work_dir, ends_at=time.time() + 1),
    )
    client.wait_for(1, "started")
    # The end of the other one may be reported if starts take long.
    client.wait(lambda facts: any(fact["job"] == 2 for fact in facts))
    client.ask("set_end", job=1, attempt=1, ends_at=time.time() + 0.8)
    client = _restart(home)
    assert client.wait_end(1)["cause"] == "timeout"
    assert client.wait_end(2)["cause"] == "timeout"


def test_the_next_runner_carries_a_stop_through(home: RunnerHome, work_dir: Path) -> None:
    deaf = "#!/bin/sh\ntrap '' TERM\necho up\nwhile :; do sleep 1; done\n"
    client = home.client()
    client.start(a_dispatch(1, deaf, work_dir))
    until(lambda: (work_dir / "out").exists() and (work_dir / "out").read_text())
    client.ask("stop", job=1, attempt=1, signal=15, grace_s=0.8)
    client = _restart(home)
    assert client.wait_end(1)["signal"] == signal.SIGKILL


def test_the_next_runner_can_stop_jobs_of_the_last_one(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, WAITS, work_dir))
    client.wait_for(1, "started")
    client = _restart(home)
    client.ask("stop", job=1, attempt=1, signal=15, grace_s=10)
    assert client.wait_end(1)["signal"] == signal.SIGTERM


def test_adopting_kills_unknown_jobs_and_reports_missing_ones(
    home: RunnerHome, work_dir: Path
) -> None:
    client = home.client()
    client.ask("adopt", expected=[])
    client.start(a_dispatch(1, WAITS, work_dir), a_dispatch(2, WAITS, work_dir))
    client.wait_for(1, "started"), client.wait_for(2, "started")
    home.kill()
    home.launch()
    client = home.client()
    answer = client.ask("adopt", expected=[[1, 1, 0], [3, 1, 0], [3, 1, 1]])
    assert answer == {"lost": 2, "killed": 1}
    assert client.wait_end(2)["signal"] == signal.SIGKILL
    # This runner's records reach back to before job 3: it was never given that job.
    assert [client.wait_end(3, rank)["kind"] for rank in (0, 1)] == ["start_failed"] * 2
    (work_dir / "go").touch()
    assert client.wait_end(1)["exit_code"] == 9


def test_a_new_runner_reports_missing_jobs_as_lost(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\n", work_dir, started_at=time.time() - 3600))
    assert client.wait_end(1)["kind"] == "lost"
    client.ask("adopt", expected=[[2, 1, 0]])
    assert client.wait_end(2)["kind"] == "lost"


def test_after_a_reboot_running_jobs_are_lost_and_ended_jobs_are_reported(
    home: RunnerHome, work_dir: Path
) -> None:
    client = home.client()
    client.start(a_dispatch(1, WAITS, work_dir), a_dispatch(2, "#!/bin/sh\nexit 4\n", work_dir))
    client.wait_for(1, "started"), client.wait_end(2)
    shim = _shim_of(client)
    pid = _pid_of(client)
    home.kill()
    os.kill(shim, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_running(pid))
    term = home.run_dir / "term"
    known = json.loads(term.read_text()[9:])
    fd = os.open(term, os.O_RDWR)
    record.write(fd, (0, 512), known | {"boot": "another"})
    os.close(fd)
    home.launch()
    client = home.client()
    assert client.wait_end(1)["kind"] == "lost"
    assert client.wait_end(2)["exit_code"] == 4


Ends = dict[int, dict[str, object]]


def _collect(client: Client, ends: Ends, count: int) -> None:
    """Wait until this many members have ended that are not in ends yet; add all ended ones."""

    def all_ends(facts: list[dict[str, Any]]) -> Ends:
        now = {f["job"]: f for f in facts if f["kind"] != "started"}
        return now if len(now.keys() - ends.keys()) >= count else {}

    for job, end in client.wait(all_ends).items() if count else ():
        assert ends.setdefault(job, end) == end, "two different ends were reported"


@pytest.mark.parametrize("seed", range(3))
def test_a_runner_killed_again_and_again_under_load_loses_nothing(
    home: RunnerHome, work_dir: Path, seed: int
) -> None:
    chance = random.Random(seed)
    script = "#!/bin/sh\necho $ODC_JOB >> ran\nexit $((ODC_JOB % 200))\n"
    jobs = range(1, 151)
    dispatches = [
        a_dispatch(
            job, script, work_dir, env={"ODC_JOB": str(job)},
            members=[a_part(0, work_dir, stdout=a_file("/dev/null"))],
        )
        for job in jobs
    ]  # fmt: skip
    ends: Ends = {}
    for _ in range(6):
        client = home.client()
        client.start(*dispatches)
        _collect(client, ends, min(chance.randrange(1, 25), len(jobs) - len(ends)))
        client.acknowledge(*(f for f in client.facts if chance.random() < 0.7))
        home.kill()
        home.launch()
    client = home.client()
    client.start(*dispatches)
    _collect(client, ends, len(jobs) - len(ends))
    ran = sorted(int(line) for line in (work_dir / "ran").read_text().split())
    assert len(ran) == len(set(ran)), "a member ran twice"
    for job, end in ends.items():
        if end["kind"] == "exited":
            assert end["exit_code"] == job % 200
        else:
            # Killed between the record and the fork: it is known never to have begun.
            assert end["kind"] == "start_failed"
            assert job not in ran


def test_an_older_term_is_refused(home: RunnerHome, work_dir: Path) -> None:
    old = home.client(term=4)
    new = home.client(term=5)
    for op, fields in {
        "start": {"dispatches": []},
        "stop": {"job": 1, "attempt": 1, "signal": 15, "grace_s": 1},
        "adopt": {"expected": []},
        "acknowledge": {"facts": []},
        "quit": {},
    }.items():
        with pytest.raises(RequestRefused) as refused:
            old.ask(op, **fields)
        assert refused.value.code == "leadership_lost"
    with pytest.raises(RequestRefused) as refused:
        home.client(term=4)
    assert refused.value.code == "leadership_lost"
    new.start(a_dispatch(1, "#!/bin/sh\n", work_dir))
    assert new.wait_end(1)["exit_code"] == 0


def test_the_term_outlives_the_runner(home: RunnerHome) -> None:
    home.client(term=7)
    home.kill()
    home.launch()
    with pytest.raises(RequestRefused) as refused:
        home.client(term=6)
    assert refused.value.code == "leadership_lost"
    assert home.client(term=7).hello["term"] == 7


def test_only_one_runner_lives_in_a_folder(home: RunnerHome) -> None:
    pid = home.pid
    home.launch()
    (home.run_dir / "runner.sock").unlink()
    home.launch()
    assert home.pid == pid
    assert home.client().hello["pid"] == pid


def test_a_runner_whose_folder_was_removed_ends(tmp_path: Path) -> None:
    home = RunnerHome(tmp_path / "runner")
    home.launch()
    pid = home.pid
    # Move it out of the runner's reach first: it may be creating a file there.
    shutil.rmtree(home.run_dir.rename(tmp_path / "removed"))
    until(lambda: not is_running(pid))


def test_sigterm_ends_the_runner_and_leaves_the_jobs(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, WAITS, work_dir))
    client.wait_for(1, "started")
    pid = home.pid
    os.kill(pid, signal.SIGTERM)
    until(lambda: not is_running(pid))
    home.launch()
    client = home.client()
    (work_dir / "go").touch()
    assert client.wait_end(1)["exit_code"] == 9
