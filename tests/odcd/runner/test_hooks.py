"""Prologs and epilogs of the node: when they run, what their failure does, and their limits."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.runner import (
    RunnerHome,
    a_dispatch,
    a_file,
    a_part,
    is_running,
    until,
)  # fmt: skip

JOB = "#!/bin/sh\necho job >> order\n"


class Site:
    """A runner whose hooks write a common file, `order`."""

    def __init__(self, home: RunnerHome, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self.rules: dict[str, Any] = {}

    def hook(self, kind: str, body: str | None = None) -> Path:
        path = self.folder / f"hook-{kind}"
        path.write_text(f"#!/bin/sh\ncd {self.folder}\n{body or f'echo {kind} >> order'}\n")
        path.chmod(0o755)
        self.rules[kind] = str(path)
        return path

    def launch(self, **changes: Any) -> None:
        self.rules |= changes
        self.home.launch(**self.rules)

    def restart(self) -> None:
        self.home.kill()
        self.launch()

    @property
    def order(self) -> list[str]:
        path = self.folder / "order"
        return path.read_text().split() if path.exists() else []

    @property
    def log(self) -> str:
        return (self.home.run_dir / "runner.log").read_text()


@pytest.fixture
def site(tmp_path: Path, work_dir: Path) -> Any:
    home = RunnerHome(tmp_path / "runner")
    yield Site(home, work_dir)
    home.end()


def test_the_prolog_runs_before_the_job_and_the_epilog_after_its_last_process(
    site: Site, work_dir: Path
) -> None:
    site.hook("prolog")
    site.hook("epilog")
    site.launch()
    client = site.home.client()
    late = "(trap '' TERM; : > ready; sleep 0.3; echo late >> order) &"
    script = f"#!/bin/sh\n{late}\nuntil [ -e ready ]; do sleep 0.01; done\necho job >> order\n"
    client.start(a_dispatch(1, script, work_dir))
    end = client.wait_end(1)
    assert (end["kind"], end["exit_code"]) == ("exited", 0)
    assert "drains" not in end
    assert site.order == ["prolog", "job", "late", "epilog"]
    assert not list((site.home.run_dir / "hooks").iterdir())


def test_hooks_get_slurms_variables_and_nothing_of_the_user(site: Site, work_dir: Path) -> None:
    site.hook("prolog", "env > prolog.env; pwd > prolog.pwd; ls /proc/self/fd > prolog.fds")
    site.hook("epilog", "env > epilog.env")
    site.launch()
    client = site.home.client()
    part = a_part(
        0, work_dir, env={"CUDA_VISIBLE_DEVICES": "3,4", "SLURMD_NODENAME": "gpu7", "X": "1"}
    )
    client.start(
        a_dispatch(
            7, JOB, work_dir, members=[part],
            env={"SLURM_JOB_NODELIST": "gpu7", "SLURM_JOB_UID": "0", "LD_PRELOAD": "/x.so"},
            environment_text='{"PATH": "/usr/bin:/bin", "BASH_ENV": "/x", "SLURM_FAKE": "1"}',
        )
    )  # fmt: skip
    client.wait_end(7)
    for hook in ("prolog", "epilog"):
        lines = (work_dir / f"{hook}.env").read_text().splitlines()
        env = dict(line.split("=", 1) for line in lines)
        assert env["SLURM_JOB_ID"] == "7"
        assert env["SLURM_JOB_UID"] == str(os.geteuid())
        assert env["SLURM_JOB_USER"]
        assert env["SLURM_JOB_NODELIST"] == env["SLURMD_NODENAME"] == "gpu7"
        assert env["CUDA_VISIBLE_DEVICES"] == "3,4"
        assert env["SLURM_SCRIPT_CONTEXT"] == f"{hook}_slurmd"
        assert not {"LD_PRELOAD", "BASH_ENV", "SLURM_FAKE", "X"} & env.keys()
    # ls itself has the folder open.
    assert len((work_dir / "prolog.fds").read_text().split()) == 4


def test_no_text_of_a_user_makes_a_hook_fail(site: Site, work_dir: Path) -> None:
    site.hook("prolog", 'echo "${SLURM_JOB_NAME-none} ${SLURM_SUBMIT_DIR-none}" > names')
    site.launch()
    client = site.home.client()
    texts = {"SLURM_JOB_NAME": "\ud800", "SLURM_SUBMIT_DIR": "x" * 130_000, "SLURM_JOB_QOS": "a\0b"}
    client.start(a_dispatch(1, JOB, work_dir, env=texts, members=[a_part(0, work_dir)]))
    client.wait_end(1)
    assert (work_dir / "names").read_text() == "none none\n"


def test_a_failed_prolog_drains_the_node_and_the_job_never_starts(
    site: Site, work_dir: Path
) -> None:
    site.hook("prolog", "echo no GPU >&2; exit 3")
    site.hook("epilog")
    site.launch()
    client = site.home.client()
    client.start(a_dispatch(1, JOB, work_dir))
    end = client.wait_end(1)
    assert (end["kind"], end["cause"]) == ("start_failed", "launch")
    assert end["detail"] == "the prolog failed: exit code 3"
    assert end["drains"] == {"0": "Prolog error"}
    assert site.order == ["epilog"]
    assert "no GPU" in site.log


def test_a_failed_epilog_drains_the_node_and_the_job_keeps_its_exit(
    site: Site, work_dir: Path
) -> None:
    site.hook("epilog", "exit 1")
    site.launch()
    client = site.home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nexit 5\n", work_dir))
    end = client.wait_end(1)
    assert (end["kind"], end["exit_code"], end["drains"]) == ("exited", 5, {"0": "Epilog error"})


def test_no_member_of_a_gang_starts_when_one_prolog_fails(site: Site, work_dir: Path) -> None:
    site.hook("prolog", 'test "$ODC_RANK" = 0')
    site.hook("epilog")
    site.launch()
    client = site.home.client()
    parts = [a_part(rank, work_dir, stdout=a_file(work_dir / f"{rank}.out")) for rank in (0, 1)]
    client.start(a_dispatch(1, JOB, work_dir, members=parts))
    ends = [client.wait_end(1, rank=rank) for rank in (0, 1)]
    assert [end["kind"] for end in ends] == ["start_failed", "start_failed"]
    assert [end["drains"] for end in ends if "drains" in end] == [{"1": "Prolog error"}]
    assert site.order == ["epilog", "epilog"]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["prolog", "epilog"])
def test_a_hook_that_hangs_is_killed_with_all_its_processes(
    site: Site, work_dir: Path, kind: str
) -> None:
    site.hook(
        kind,
        "trap '' TERM\nsleep 1000 & echo $! >> pids\nsetsid sh -c 'echo $$ >> pids; sleep 1000' &\n"
        "while [ $(wc -l < pids) -lt 2 ]; do :; done; echo $$ >> pids; sleep 1000",
    )
    site.launch(**{f"{kind}_timeout_s": 5.0})
    client = site.home.client()
    client.start(a_dispatch(1, JOB, work_dir))
    end = client.wait_end(1)
    assert end["drains"] == {"0": f"{kind.capitalize()} error"}
    assert "did not end within 5 s" in site.log
    pids = [int(pid) for pid in (work_dir / "pids").read_text().split()]
    assert len(pids) == 3
    assert not [pid for pid in pids if is_running(pid)]


def test_a_hook_that_crashes_has_failed(site: Site, work_dir: Path) -> None:
    site.hook("prolog", "kill -SEGV $$")
    site.launch()
    client = site.home.client()
    client.start(a_dispatch(1, JOB, work_dir))
    assert client.wait_end(1)["detail"] == "the prolog failed: ended by signal 11"


def test_a_gigabyte_of_output_fills_neither_memory_nor_disk(site: Site, work_dir: Path) -> None:
    site.hook("prolog", "head -c 1000000000 /dev/zero; echo done >&2; exit 1")
    site.launch()
    client = site.home.client()
    client.start(a_dispatch(1, JOB, work_dir))
    assert client.wait_end(1)["detail"] == "the prolog failed: exit code 1"
    assert "output_bytes=1000000005" in site.log
    assert len(site.log) < 20_000


def test_a_process_that_outlives_its_prolog_ends_with_it(site: Site, work_dir: Path) -> None:
    site.hook(
        "prolog", "setsid sh -c 'echo $$ > pid; sleep 1000' &\nwhile [ ! -s pid ]; do :; done"
    )
    site.launch()
    client = site.home.client()
    client.start(a_dispatch(1, JOB, work_dir))
    assert client.wait_end(1)["exit_code"] == 0
    assert not is_running(int((work_dir / "pid").read_text()))


@pytest.mark.parametrize("change", ["file", "folder", "link"])
def test_a_hook_that_others_can_change_never_runs(site: Site, work_dir: Path, change: str) -> None:
    path = site.hook("prolog")
    if change == "link":
        # A link in a folder of its own, which others may write.
        (work_dir / "open").mkdir(mode=0o777)
        (work_dir / "open").chmod(0o777)
        (work_dir / "open" / "link").symlink_to(path)
        site.rules["prolog"] = str(work_dir / "open" / "link")
    else:
        (path if change == "file" else work_dir).chmod(0o775)
    site.launch()
    client = site.home.client()
    client.start(a_dispatch(1, JOB, work_dir))
    end = client.wait_end(1)
    assert "is writable by its group or by others" in end["detail"]
    assert end["drains"] == {"0": "Prolog error"}
    assert site.order == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_a_hook_of_another_user_never_runs(site: Site, work_dir: Path) -> None:
    os.chown(site.hook("prolog"), 12345, 0)
    site.launch()
    client = site.home.client()
    client.start(a_dispatch(1, JOB, work_dir))
    assert "belongs to user id 12345" in client.wait_end(1)["detail"]
    assert site.order == []


WAITS = "echo prolog >> order; while [ ! -e go ]; do sleep 0.02; done"


def test_a_runner_killed_during_the_prolog_never_starts_the_job_and_runs_the_epilog(
    site: Site, work_dir: Path
) -> None:
    site.hook("prolog", "echo $$ > pid; " + WAITS)
    site.hook("epilog")
    site.launch()
    client = site.home.client()
    dispatch = a_dispatch(1, JOB, work_dir)
    client.start(dispatch)
    until(lambda: site.order)
    pid = int((work_dir / "pid").read_text())
    site.restart()
    client = site.home.client()
    # The daemon sends it again, because no member of it was reported.
    client.start(dispatch)
    client.ask("adopt", expected=[[1, 1, 0]])
    end = client.wait_end(1)
    assert (end["kind"], end["cause"]) == ("start_failed", "launch")
    assert end["detail"] == "the runner was restarted before it started"
    assert not is_running(pid)
    assert site.order == ["prolog", "epilog"]
    assert [fact["kind"] for fact in client.facts] == ["start_failed"]


def test_a_prolog_whose_keeper_was_killed_too_is_gone_before_the_epilog(
    site: Site, work_dir: Path
) -> None:
    site.hook("prolog", "echo $$ > pid; echo $PPID > keeper; " + WAITS)
    site.hook(
        "epilog",
        "grep '^State:.[^ZX]' /proc/$(cat pid)/status && echo both >> order; echo epilog >> order",
    )
    site.launch()
    client = site.home.client()
    client.start(a_dispatch(1, JOB, work_dir))
    until(lambda: site.order)
    keeper = int((work_dir / "keeper").read_text())
    os.kill(keeper, signal.SIGSTOP)
    site.home.kill()
    os.kill(keeper, signal.SIGKILL)
    site.launch()
    client = site.home.client()
    assert client.wait_end(1)["kind"] == "start_failed"
    assert site.order == ["prolog", "epilog"]


def test_a_runner_killed_while_the_job_runs_still_runs_the_epilog_once(
    site: Site, work_dir: Path
) -> None:
    site.hook("prolog")
    site.hook("epilog")
    site.launch()
    client = site.home.client()
    client.start(
        a_dispatch(1, "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.02; done\nexit 4\n", work_dir)
    )
    client.wait_for(1, "started")
    site.restart()
    (work_dir / "go").touch()
    assert site.home.client().wait_end(1)["exit_code"] == 4
    assert site.order == ["prolog", "epilog"]


def test_a_runner_killed_during_the_epilog_runs_it_again(site: Site, work_dir: Path) -> None:
    site.hook(
        "epilog", "echo begun >> order; while [ ! -e go ]; do sleep 0.02; done; echo e >> order"
    )
    site.launch()
    client = site.home.client()
    client.start(a_dispatch(1, JOB, work_dir))
    until(lambda: "begun" in site.order)
    site.restart()
    (work_dir / "go").touch()
    assert site.home.client().wait_end(1)["exit_code"] == 0
    assert site.order == ["job", "begun", "begun", "e"]


def test_a_drain_that_no_daemon_has_received_is_reported_by_the_next_runner(
    site: Site, work_dir: Path
) -> None:
    site.hook("epilog", "echo epilog >> order; exit 1")
    site.launch()
    client = site.home.client()
    client.start(a_dispatch(1, JOB, work_dir))
    client.wait_end(1)
    site.restart()
    assert site.home.client().wait_end(1)["drains"] == {"0": "Epilog error"}
    assert site.order == ["job", "epilog"]


def test_a_job_cancelled_during_its_prolog_ends_after_its_epilog(
    site: Site, work_dir: Path
) -> None:
    site.hook("prolog", WAITS)
    site.hook("epilog")
    site.launch()
    client = site.home.client()
    client.start(a_dispatch(1, JOB, work_dir))
    until(lambda: site.order)
    client.ask("stop", job=1, attempt=1, signal=15, grace_s=5.0)
    assert client.facts == []
    (work_dir / "go").touch()
    end = client.wait_end(1)
    assert (end["kind"], end["detail"]) == ("start_failed", "stopped before it started")
    assert site.order == ["prolog", "epilog"]


def test_many_jobs_share_a_limited_number_of_hooks(site: Site, work_dir: Path) -> None:
    site.hook("prolog", "echo $$ >> order; while [ ! -e go ]; do sleep 0.05; done")
    site.launch()
    client = site.home.client()
    client.start(*[a_dispatch(job, JOB, work_dir) for job in range(1, 41)])
    until(lambda: len(site.order) == 32)
    (work_dir / "go").touch()
    assert {client.wait_end(job)["exit_code"] for job in range(1, 41)} == {0}
    assert site.order.count("job") == 40
