"""As root, a job runs as its submitter before any of its files is opened; a user's runner runs only
that user's jobs."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
from pathlib import Path

import pytest

from tests.support.harness.runner import (
    RequestRefused,
    RunnerHome,
    a_dispatch,
    a_file,
    a_part,
    forked_runner,
)  # fmt: skip
from tests.support.harness.users import folder_of, ids_of, needs_root


@needs_root
def test_a_job_runs_as_its_submitter(
    open_home: RunnerHome, open_folder: Path, nobody: pwd.struct_passwd
) -> None:
    work_dir = folder_of(nobody, open_folder / "work")
    script = "#!/bin/sh\nid -u; id -g; id -G; grep -E '^Cap(Prm|Eff)' /proc/self/status\n"
    client = open_home.client()
    client.start(a_dispatch(1, script, work_dir, **ids_of(nobody)))
    assert client.wait_end(1)["exit_code"] == 0
    out = work_dir / "out"
    uid, gid, groups, *capabilities = out.read_text().splitlines()
    assert (int(uid), int(gid)) == (nobody.pw_uid, nobody.pw_gid)
    expected = {g.gr_gid for g in grp.getgrall() if nobody.pw_name in g.gr_mem} | {nobody.pw_gid}
    assert {int(group) for group in groups.split()} == expected
    assert {int(line.split()[1], 16) for line in capabilities} == {0}
    assert out.stat().st_uid == nobody.pw_uid


@needs_root
def test_output_into_anothers_file_is_refused(
    open_home: RunnerHome, open_folder: Path, nobody: pwd.struct_passwd
) -> None:
    work_dir = folder_of(nobody, open_folder / "work")
    (open_folder / "roots").write_text("precious")
    client = open_home.client()
    part = a_part(0, work_dir, stdout=a_file(open_folder / "roots"))
    client.start(a_dispatch(1, "#!/bin/sh\necho hi\n", work_dir, members=[part], **ids_of(nobody)))
    end = client.wait_end(1)
    assert end["kind"] == "start_failed"
    roots = open_folder / "roots"
    assert end["detail"] == f"cannot open the output file {roots}: Permission denied"
    assert roots.read_text() == "precious"


@needs_root
def test_a_folder_the_user_may_not_enter_is_refused(
    open_home: RunnerHome, open_folder: Path, nobody: pwd.struct_passwd
) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    client = open_home.client()
    client.start(a_dispatch(1, "#!/bin/sh\n", closed, **ids_of(nobody)))
    assert client.wait_end(1)["detail"] == (
        f"cannot enter the working directory {closed}: Permission denied"
    )


@needs_root
def test_no_other_user_can_read_a_script_or_kept_output(
    open_home: RunnerHome, open_folder: Path, nobody: pwd.struct_passwd, other: pwd.struct_passwd
) -> None:
    work_dir = folder_of(nobody, open_folder / "work")
    client = open_home.client()
    client.start(
        a_dispatch(1, "#!/bin/sh\necho secret; echo $0\n", work_dir, spool=True, **ids_of(nobody))
    )
    client.wait_end(1)
    output = open_home.run_dir / "output" / "1-1-0.out"
    script = output.read_text().split()[1]
    for path in (output, script):
        # Kept output is read only through the runner, see tests/attack/test_output_quota.py.
        for account, readable in ((nobody, path == script), (other, False)):
            done = subprocess.run(
                ["cat", path], user=account.pw_uid, group=account.pw_gid, extra_groups=[],
                capture_output=True, check=False,
            )  # fmt: skip
            assert (done.returncode == 0) is readable, (path, account.pw_name)
    listed = subprocess.run(
        ["ls", open_home.run_dir / "scripts"], user=nobody.pw_uid, capture_output=True, check=False
    )
    assert listed.returncode != 0


@needs_root
def test_output_is_opened_for_reading_as_its_user(
    open_home: RunnerHome, open_folder: Path, nobody: pwd.struct_passwd
) -> None:
    (open_folder / "roots").write_text("precious")
    (open_folder / "roots").chmod(0o600)
    mine = open_folder / "mine"
    mine.write_text("mine")
    os.chown(mine, nobody.pw_uid, nobody.pw_gid)
    mine.chmod(0o600)
    client = open_home.client(term=None)
    _, (fd,) = client.ask_with_fd("open_output", path=str(mine), **ids_of(nobody))
    assert os.read(fd, 100) == b"mine"
    os.close(fd)
    with pytest.raises(RequestRefused, match="Permission denied"):
        client.ask("open_output", path=str(open_folder / "roots"), **ids_of(nobody))


def test_only_regular_files_are_opened_for_reading(home: RunnerHome, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    client = home.client(term=None)
    mine = {"uid": os.geteuid(), "gid": os.getegid()}
    for path in (tmp_path / "fifo", Path("/dev/null"), tmp_path):
        with pytest.raises(RequestRefused, match="not a regular file"):
            client.ask("open_output", path=str(path), **mine)
    with pytest.raises(RequestRefused) as refused:
        client.ask("open_output", path=str(tmp_path / "none"), **mine)
    assert refused.value.code == "not_found"


@needs_root
def test_a_user_cannot_kill_the_shim_of_their_job(
    open_home: RunnerHome, open_folder: Path, nobody: pwd.struct_passwd
) -> None:
    work_dir = folder_of(nobody, open_folder / "work")
    script = """#!/bin/sh
while [ ! -e go ]; do sleep 0.02; done
kill -9 $PPID
exit 5
"""
    client = open_home.client()
    client.start(a_dispatch(1, script, work_dir, **ids_of(nobody)))
    client.wait_for(1, "started")
    (work_dir / "go").touch()
    assert client.wait_end(1)["exit_code"] == 5


@needs_root
def test_a_users_runner_runs_only_that_users_jobs(
    open_folder: Path, nobody: pwd.struct_passwd
) -> None:
    work_dir = folder_of(nobody, open_folder / "theirs")
    home = RunnerHome(work_dir / "runner")
    pid = forked_runner(home.run_dir, account=nobody)
    client = home.client()
    script = "#!/bin/sh\nid -u\n"
    client.start(a_dispatch(1, script, work_dir, **ids_of(nobody)), a_dispatch(2, script, work_dir))
    uid = nobody.pw_uid
    assert client.wait_end(1)["exit_code"] == 0
    assert (work_dir / "out").read_text() == f"{uid}\n"
    assert client.wait_end(2)["detail"] == f"odcd runs as uid {uid} and cannot start jobs of uid 0"
    client.ask("quit")
    os.waitpid(pid, 0)
    client.close()
