"""A member runs once, as ordered, and its end is reported correctly."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.harness.runner import RunnerHome, a_dispatch, a_file, a_part, is_running, until
from tests.support.harness.signals import OF_THE_C_LIBRARY


def test_exit_codes_and_signals_are_reported(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(
        a_dispatch(1, "#!/bin/sh\nexit 0\n", work_dir),
        a_dispatch(2, "#!/bin/sh\nexit 7\n", work_dir),
        a_dispatch(3, "#!/bin/sh\nkill -SEGV $$\n", work_dir),
    )
    ends = [client.wait_end(job) for job in (1, 2, 3)]
    assert [(e["kind"], e["exit_code"], e["signal"]) for e in ends] == [
        ("exited", 0, None),
        ("exited", 7, None),
        ("exited", None, signal.SIGSEGV),
    ]


def test_a_start_is_reported_before_the_end(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\n", work_dir))
    client.wait_end(1)
    assert [fact["kind"] for fact in client.facts] == ["started", "exited"]
    assert client.facts[0]["at"] <= client.facts[1]["at"]


def test_a_script_runs_as_the_dispatch_specifies(home: RunnerHome, work_dir: Path) -> None:
    script = """#!/bin/sh
echo "$1|$2|$GREETING|$ODC_RANK|$(pwd)|$(umask)|$(cat | wc -c)"
touch made
"""
    client = home.client()
    client.start(
        a_dispatch(
            1, script, work_dir, args=["a b", "*"], umask=0o077, env={"GREETING": "héllo"},
            members=[a_part(0, work_dir, env={"ODC_RANK": "0"})],
        )
    )  # fmt: skip
    client.wait_end(1)
    assert (work_dir / "out").read_text() == f"a b|*|héllo|0|{work_dir}|0077|0\n"
    assert (work_dir / "made").stat().st_mode & 0o777 == 0o600


def test_a_job_leads_its_own_session_with_default_signals(home: RunnerHome, work_dir: Path) -> None:
    script = """#!/bin/sh
[ "$(ps -o sid= -p $$ | tr -d ' ')" = $$ ] && echo leads
grep -E '^(SigIgn|SigBlk)' /proc/self/status
ls /proc/self/fd | wc -l
"""
    client = home.client()
    client.start(a_dispatch(1, script, work_dir))
    client.wait_end(1)
    leads, _, blocked, _, ignored, files = (work_dir / "out").read_text().split()
    assert leads == "leads"
    assert int(blocked, 16) == 0
    assert int(ignored, 16) & ~OF_THE_C_LIBRARY == 0
    # 0, 1, 2 and the descriptor ls reads the folder by.
    assert files == "4"


def test_stderr_shares_stdout_unless_it_has_a_file(home: RunnerHome, work_dir: Path) -> None:
    script = "#!/bin/sh\necho out\necho err >&2\n"
    apart = a_part(0, work_dir, stdout=a_file(work_dir / "o2"), stderr=a_file(work_dir / "e2"))
    client = home.client()
    client.start(a_dispatch(1, script, work_dir), a_dispatch(2, script, work_dir, members=[apart]))
    client.wait_end(1), client.wait_end(2)
    assert (work_dir / "out").read_text() == "out\nerr\n"
    assert (work_dir / "o2").read_text() == "out\n"
    assert (work_dir / "e2").read_text() == "err\n"


def test_output_is_truncated_or_appended_as_requested(home: RunnerHome, work_dir: Path) -> None:
    for name in ("truncated", "appended"):
        (work_dir / name).write_text("before\n")
    client = home.client()
    client.start(
        a_dispatch(1, "#!/bin/sh\necho a\n", work_dir,
                   members=[a_part(0, work_dir, stdout=a_file(work_dir / "truncated"))]),
        a_dispatch(2, "#!/bin/sh\necho a\n", work_dir,
                   members=[a_part(0, work_dir, stdout=a_file(
                       work_dir / "appended", truncate=False, append=True))]),
    )  # fmt: skip
    client.wait_end(1), client.wait_end(2)
    assert (work_dir / "truncated").read_text() == "a\n"
    assert (work_dir / "appended").read_text() == "before\na\n"


def test_ranks_that_share_a_file_lose_nothing(home: RunnerHome, work_dir: Path) -> None:
    (work_dir / "out").write_text("of an earlier attempt\n")
    parts = [
        a_part(
            rank, work_dir, env={"ODC_RANK": str(rank)}, shared=True,
            stdout=a_file(work_dir / "out", truncate=rank == 0, append=True),
        )
        for rank in range(8)
    ]  # fmt: skip
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\necho $ODC_RANK\n", work_dir, members=parts))
    for rank in range(8):
        client.wait_end(1, rank)
    assert sorted((work_dir / "out").read_text().split()) == [str(rank) for rank in range(8)]


def test_a_repeated_start_runs_once(home: RunnerHome, work_dir: Path) -> None:
    dispatch = a_dispatch(1, "#!/bin/sh\necho ran >> ran\n", work_dir)
    client = home.client()
    client.start(dispatch, dispatch)
    client.start(dispatch)
    end = client.wait_end(1)
    client.start(dispatch)
    client.acknowledge(*client.facts)
    assert client.ask("list")["members"] == []
    client.start(dispatch)
    home.kill()
    home.launch()
    client = home.client()
    client.start(dispatch, a_dispatch(2, "#!/bin/sh\n", work_dir))
    client.wait_end(2)
    assert end["kind"] == "exited"
    assert (work_dir / "ran").read_text() == "ran\n"


def test_a_next_attempt_runs(home: RunnerHome, work_dir: Path) -> None:
    dispatch = a_dispatch(1, "#!/bin/sh\necho ran >> ran\n", work_dir)
    client = home.client()
    client.start(dispatch)
    client.wait_end(1)
    client.acknowledge(*client.facts)
    client.start(dispatch | {"attempt": 2})
    client.wait_end(1, attempt=2)
    assert (work_dir / "ran").read_text() == "ran\nran\n"


@pytest.mark.long
def test_a_thousand_quick_members_give_a_thousand_exits(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    null = [a_part(0, work_dir, stdout=a_file("/dev/null"))]
    client.start(
        *(a_dispatch(job, "#!/bin/sh\ntrue\n", work_dir, members=null) for job in range(1, 1001))
    )
    # On a slow machine some are reported again before the last one is.
    client.wait(lambda facts: len({f["job"] for f in facts if f["kind"] == "exited"}) == 1000)
    exits = [fact for fact in client.facts if fact["kind"] == "exited"]
    assert {fact["job"] for fact in exits} == set(range(1, 1001))
    assert {fact["exit_code"] for fact in exits} == {0}
    client.acknowledge(*client.facts)
    assert client.ask("list")["members"] == []


def test_the_runner_requests_each_text_once(home: RunnerHome, work_dir: Path) -> None:
    dispatch = a_dispatch(1, "#!/bin/sh\n", work_dir)
    client = home.client()
    bare = dict(dispatch)
    texts = bare.pop("texts")
    assert client.ask("start", dispatches=[bare]) == {"need": sorted(texts)}
    assert client.ask("list")["members"] == []
    assert client.ask("start", dispatches=[bare], texts=texts) == {}
    assert client.ask("start", dispatches=[bare | {"job": 2}]) == {}
    assert client.wait_end(1)["kind"] == client.wait_end(2)["kind"] == "exited"


@pytest.mark.parametrize(
    ("changes", "part", "detail"),
    [
        ({"work_dir": "/nowhere/at/all"}, {},
         "cannot enter the working directory /nowhere/at/all: No such file or directory"),
        ({}, {"stdout": a_file("/nowhere/out")},
         "cannot open the output file /nowhere/out: No such file or directory"),
        ({}, {"stdout": a_file("/")}, "cannot open the output file /: Is a directory"),
        ({}, {"stderr": a_file("/nowhere/err")},
         "cannot open the error file /nowhere/err: No such file or directory"),
        ({}, {"stdin": "/nowhere/in"},
         "cannot open the input file /nowhere/in: No such file or directory"),
        ({}, {"stdout": a_file("/tmp/a\0b")}, "embedded null byte"),
    ],
)  # fmt: skip
def test_a_member_that_cannot_start_is_reported_with_the_reason(
    home: RunnerHome,
    work_dir: Path,
    changes: dict[str, object],
    part: dict[str, object],
    detail: str,
) -> None:
    client = home.client()
    members = [a_part(0, work_dir, **part)]
    client.start(a_dispatch(1, "#!/bin/sh\n", work_dir, members=members) | changes)
    end = client.wait_end(1)
    assert end["kind"] == "start_failed"
    assert detail in end["detail"]
    assert [fact["kind"] for fact in client.facts] == ["start_failed"]


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        ("echo no interpreter line\n", "cannot execute the script: Exec format error"),
        (
            "#!/nowhere/python -u\n",
            "cannot execute the script's interpreter /nowhere/python: No such file or directory",
        ),
        (
            "#! /etc/passwd\n",
            "cannot execute the script's interpreter /etc/passwd: Permission denied",
        ),
    ],
)
def test_a_script_that_cannot_be_executed_is_reported_with_the_reason(
    home: RunnerHome, work_dir: Path, script: str, detail: str
) -> None:
    client = home.client()
    client.start(a_dispatch(1, script, work_dir))
    end = client.wait_end(1)
    assert (end["kind"], end["detail"], end["cause"]) == ("start_failed", detail, "unknown")


def test_an_environment_beyond_the_kernels_limit_is_reported(
    home: RunnerHome, work_dir: Path
) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\n", work_dir, env={"BIG": "x" * 4_000_000}))
    assert client.wait_end(1)["detail"] == "cannot execute the script: Argument list too long"


def test_huge_output_is_complete(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nhead -c 50000000 /dev/zero\n", work_dir))
    client.wait_end(1)
    assert (work_dir / "out").stat().st_size == 50_000_000


def test_an_unread_fifo_blocks_no_other_job(home: RunnerHome, work_dir: Path) -> None:
    os.mkfifo(work_dir / "fifo")
    stuck = [a_part(0, work_dir, stdout=a_file(work_dir / "fifo"))]
    client = home.client()
    client.start(
        *(a_dispatch(job, "#!/bin/sh\necho read\n", work_dir, members=stuck)
          for job in range(1, 31)),
        a_dispatch(99, "#!/bin/sh\n", work_dir),
    )  # fmt: skip
    assert client.wait_end(99)["exit_code"] == 0
    for job in range(1, 31):
        end = client.wait_end(job)
        assert (end["kind"], end["cause"]) == ("start_failed", "unknown")
        assert "neither a regular file nor /dev/null" in end["detail"]


@pytest.mark.long
def test_processes_that_a_script_leaves_behind_are_ended_with_it(
    home: RunnerHome, work_dir: Path
) -> None:
    script = """#!/bin/sh
sleep 1000 &
echo $!
setsid sh -c '(sleep 1001 & echo $!; wait) & echo $!; trap "" TERM; exec sleep 1002' &
echo $!
while [ $(wc -l < out) -lt 4 ]; do sleep 0.01; done
"""
    client = home.client()
    client.start(a_dispatch(1, script, work_dir))
    assert client.wait_end(1)["exit_code"] == 0
    pids = [int(line) for line in (work_dir / "out").read_text().split()]
    assert len(pids) == 4
    assert not [pid for pid in pids if is_running(pid)]


def test_output_that_odcd_keeps_has_files_of_its_own(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\necho out\necho err >&2\n", work_dir, spool=True))
    client.wait_end(1)
    fields = {"job": 1, "attempt": 1, "rank": 0, "uid": os.geteuid(), "gid": os.getegid()}
    for spool in ("out", "err"):
        _, (fd,) = client.ask_with_fd("open_output", spool=spool, **fields)
        assert os.read(fd, 100) == f"{spool}\n".encode()
        os.close(fd)
    assert list(work_dir.iterdir()) == []


def test_a_changed_script_file_is_created_again(home: RunnerHome, work_dir: Path) -> None:
    script = "#!/bin/sh\necho right\n"
    client = home.client()
    client.start(a_dispatch(1, script, work_dir))
    client.wait_end(1)
    (copy,) = (home.run_dir / "scripts").iterdir()
    copy.chmod(0o700)
    copy.write_text("#!/bin/sh\necho wrong\n")
    client.start(a_dispatch(2, script, work_dir))
    client.wait_end(2)
    assert (work_dir / "out").read_text() == "right\n"


def test_a_job_does_not_get_the_limits_the_runner_was_given(
    home: RunnerHome, work_dir: Path
) -> None:
    import resource

    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nulimit -Sn\nulimit -Hn\n", work_dir))
    client.wait_end(1)
    soft, hard = (work_dir / "out").read_text().split()
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == "1024"
    # Without CAP_SYS_RESOURCE no process can raise a hard limit.
    assert hard in {"524288", str(min(524_288, hard_limit))}


def test_a_runner_that_quits_leaves_nothing_behind(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nexec sleep 1000\n", work_dir))
    client.wait_for(1, "started")
    assert client.ask("quit") == {"quitting": False, "live": 1}
    client.ask("stop", job=1, attempt=1, signal=15, grace_s=5)
    client.wait_end(1)
    pid = home.pid
    assert client.ask("quit") == {"quitting": True, "live": 0}
    until(lambda: not is_running(pid))
