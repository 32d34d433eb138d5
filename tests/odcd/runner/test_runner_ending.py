"""Stops, signals and time limits reach every process of a member, and only then has it ended."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

from tests.support.harness.runner import (
    Client,
    RunnerHome,
    a_dispatch,
    a_file,
    a_part,
    a_start,
    is_running,
    until,
)  # fmt: skip

DEAF = """#!/bin/sh
trap '' TERM INT HUP
exec >> pids
setsid sh -c 'trap "" TERM; (sleep 1001 & echo $!; wait) & echo $!; exec sleep 1002' &
echo $!
while :; do sleep 1000 & echo $!; wait; done
"""
"""Ignores all signals that can be ignored, and hides a process in another session."""


def _pids(path: Path, count: int) -> list[int]:
    until(lambda: path.exists() and len(path.read_text().split()) >= count)
    return [int(pid) for pid in path.read_text().split()]


def _stop(client: Client, job: int, number: int = 15, grace_s: float = 10.0) -> None:
    client.ask("stop", job=job, attempt=1, signal=number, grace_s=grace_s)


def _an_end(job: int, ends_at: float | None) -> dict[str, Any]:
    return {"op": "set_end", "job": job, "attempt": 1, "ends_at": ends_at}


def test_a_stop_lets_the_job_end_itself(home: RunnerHome, work_dir: Path) -> None:
    script = "#!/bin/sh\ntrap 'echo saved; exit 3' TERM\necho up\nsleep 1000 & wait\n"
    client = home.client()
    client.start(a_dispatch(1, script, work_dir))
    until(lambda: (work_dir / "out").exists() and (work_dir / "out").read_text() == "up\n")
    _stop(client, 1)
    end = client.wait_end(1)
    assert (end["exit_code"], end["cause"]) == (3, None)
    assert (work_dir / "out").read_text() == "up\nsaved\n"


def test_after_the_grace_everything_is_killed(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, DEAF, work_dir))
    pids = _pids(work_dir / "pids", 4)
    _stop(client, 1, grace_s=0.2)
    end = client.wait_end(1)
    assert end["signal"] == signal.SIGKILL
    assert not [pid for pid in pids if is_running(pid)]


def test_a_second_stop_shortens_the_grace(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, DEAF, work_dir))
    _pids(work_dir / "pids", 4)
    _stop(client, 1, grace_s=1000)
    _stop(client, 1, grace_s=0)
    assert client.wait_end(1)["signal"] == signal.SIGKILL


def test_a_suspended_process_receives_the_stop_signal(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nkill -STOP $$\n", work_dir))
    pid = client.wait_for(1, "started") and client.ask("list")["members"][0]["pid"]
    until(lambda: Path(f"/proc/{pid}/stat").read_text().split()[2] == "T")
    _stop(client, 1, grace_s=1000)
    assert client.wait_end(1)["signal"] == signal.SIGTERM


def test_a_stop_before_the_script_began_ends_it(home: RunnerHome, work_dir: Path) -> None:
    dispatches = [
        a_dispatch(job, "#!/bin/sh\nexec sleep 1000\n", work_dir) for job in range(1, 101)
    ]
    client = home.client()
    # The last members, before the runner has started any, however long this process is delayed.
    client.ask_together(
        a_start(*dispatches),
        *({"op": "stop", "job": job, "attempt": 1, "signal": 15, "grace_s": 1000}
          for job in range(100, 80, -1)),
    )  # fmt: skip
    for job in range(80, 0, -1):
        _stop(client, job, grace_s=1000)
    ends = [client.wait_end(job) for job in range(1, 101)]
    assert "stopped before it started" in [end.get("detail") for end in ends]
    for end in ends:
        assert end["kind"] == "start_failed" or end["signal"] == signal.SIGTERM


def test_every_member_of_a_gang_is_stopped(home: RunnerHome, work_dir: Path) -> None:
    parts = [a_part(rank, work_dir) for rank in range(3)]
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nexec sleep 1000\n", work_dir, members=parts))
    for rank in range(3):
        client.wait_for(1, "started", rank)
    _stop(client, 1)
    assert [client.wait_end(1, rank)["signal"] for rank in range(3)] == [15, 15, 15]


def test_processes_that_fork_to_escape_the_kill_are_killed(
    home: RunnerHome, work_dir: Path
) -> None:
    # Each forks the next and ends: a handful at any time, none of them for long.
    rabbits = """#!/bin/bash
trap '' TERM
hop() { hop & }
hop & hop & hop & hop & hop &
echo up
while :; do sleep 1; done
"""
    client = home.client()
    client.start(a_dispatch(1, rabbits, work_dir))
    _lines(work_dir, 1)
    _stop(client, 1, grace_s=0.1)
    assert client.wait_end(1)["signal"] == signal.SIGKILL


def test_an_unknown_attempt_is_lost(home: RunnerHome) -> None:
    client = home.client()
    client.ask("stop", job=5, attempt=2, signal=15, grace_s=1, ranks=2)
    assert [client.wait_end(5, rank, attempt=2)["kind"] for rank in (0, 1)] == ["lost", "lost"]


def test_the_time_limit_ends_a_job(home: RunnerHome, work_dir: Path) -> None:
    script = "#!/bin/sh\ntrap 'exit 0' TERM\necho up\nsleep 1000 & wait\n"
    client = home.client()
    limit = time.time() + 0.5
    client.start(
        a_dispatch(1, script, work_dir, ends_at=time.time() + 1000),
        a_dispatch(2, "#!/bin/sh\nexec sleep 1000\n", work_dir, ends_at=limit,
                   members=[a_part(0, work_dir, stdout=a_file("/dev/null"))]),
    )  # fmt: skip
    # Earlier it would not notice its limit.
    _lines(work_dir, 1)
    moved = time.time() + 0.1
    client.ask(**_an_end(1, moved))
    end = client.wait_end(1)
    assert (end["kind"], end["exit_code"], end["cause"]) == ("exited", 0, "timeout")
    assert end["at"] >= moved
    end = client.wait_end(2)
    assert end["cause"] == "timeout"
    assert end["at"] >= limit


def test_a_job_that_ignores_its_limit_is_killed(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, DEAF, work_dir, ends_at=time.time() + 1000, grace_s=0.2))
    _pids(work_dir / "pids", 4)
    client.ask(**_an_end(1, time.time() + 0.1))
    end = client.wait_end(1)
    assert (end["signal"], end["cause"]) == (signal.SIGKILL, "timeout")


def test_a_moved_limit_counts(home: RunnerHome, work_dir: Path) -> None:
    waits = "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.02; done\n"
    client = home.client()
    client.start(*(a_dispatch(job, waits, work_dir, ends_at=time.time() + 1000)
                   for job in (1, 2, 3)))  # fmt: skip
    for job in (1, 2, 3):
        client.wait_for(job, "started")
    soon = time.time() + 0.2
    # Together, so that the first limits have not passed before the next ones are set.
    client.ask_together(
        _an_end(1, soon), _an_end(3, soon), _an_end(2, soon + 0.2),
        _an_end(1, time.time() + 1000), _an_end(3, None),
    )  # fmt: skip
    # By then the original limits of the others have passed.
    assert client.wait_end(2)["cause"] == "timeout"
    (work_dir / "go").touch()
    assert client.wait_end(1)["exit_code"] == 0
    assert client.wait_end(3)["exit_code"] == 0


HEARS = """#!/bin/bash
trap 'echo shell' USR1
python3 -c '
import signal, time
signal.signal(signal.SIGUSR1, lambda *_: print("child", flush=True))
print("up", flush=True)
while True: time.sleep(0.1)
' &
child=$!
trap 'kill -9 $child 2>/dev/null; exit 0' TERM
while :; do wait; done
"""


def _lines(work_dir: Path, count: int) -> list[str]:
    path = work_dir / "out"
    until(lambda: path.exists() and len(path.read_text().split()) >= count)
    return path.read_text().split()


def test_the_signal_before_the_end_reaches_the_children_of_the_shell(
    home: RunnerHome, work_dir: Path
) -> None:
    client = home.client()
    client.start(
        a_dispatch(1, HEARS, work_dir, ends_at=time.time() + 1000, signal=[10, 500, False])
    )
    _lines(work_dir, 1)
    client.ask("set_end", job=1, attempt=1, ends_at=time.time() + 500.1)
    assert _lines(work_dir, 2) == ["up", "child"]
    client.ask("set_end", job=1, attempt=1, ends_at=time.time() + 499)
    _stop(client, 1)
    client.wait_end(1)
    assert _lines(work_dir, 2) == ["up", "child"]


def test_with_b_the_signal_is_the_shells_alone(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, HEARS, work_dir, ends_at=time.time() + 1000, signal=[10, 500, True]))
    _lines(work_dir, 1)
    client.ask("set_end", job=1, attempt=1, ends_at=time.time() + 500.1)
    assert _lines(work_dir, 2) == ["up", "shell"]


def test_a_signal_alone_ends_nothing_by_itself(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, HEARS, work_dir))
    _lines(work_dir, 1)
    client.ask("signal", job=1, attempt=1, signal=10, batch_only=False)
    assert _lines(work_dir, 2) == ["up", "child"]
    client.ask("signal", job=1, attempt=1, signal=10, batch_only=True)
    assert _lines(work_dir, 3) == ["up", "child", "shell"]


def test_a_shell_that_became_its_program_is_signalled_itself(
    home: RunnerHome, work_dir: Path
) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\necho up\nexec sleep 1000\n", work_dir))
    _lines(work_dir, 1)
    client.ask("signal", job=1, attempt=1, signal=10, batch_only=False)
    assert client.wait_end(1)["signal"] == signal.SIGUSR1
