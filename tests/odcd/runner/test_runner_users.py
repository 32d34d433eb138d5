"""As root, a job is its submitter's before anything of it is opened; a user runs only their own."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from odcd.runner.__main__ import Runner
from tests.support.runner import RequestRefused, RunnerHome, a_dispatch, a_file, a_part

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="only root can run jobs of other users")


def _account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        pytest.skip(f"this machine has no account {name}")


@pytest.fixture
def nobody() -> pwd.struct_passwd:
    return _account("nobody")


@pytest.fixture
def other() -> pwd.struct_passwd:
    return _account("daemon")


def _open_to_all(folder: Path) -> None:
    """pytest's folders are its user's alone."""
    for path in (folder, *folder.parents):
        if path.stat().st_mode & 0o001:
            break
        path.chmod(path.stat().st_mode | 0o011)


@pytest.fixture
def open_home(tmp_path: Path) -> Iterator[RunnerHome]:
    """A runner in a folder that other users can enter."""
    _open_to_all(tmp_path)
    home = RunnerHome(tmp_path / "runner")
    home.launch()
    yield home
    home.end()


def _folder_of(account: pwd.struct_passwd, path: Path) -> Path:
    path.mkdir()
    os.chown(path, account.pw_uid, account.pw_gid)
    path.chmod(0o755)
    return path


def _as(account: pwd.struct_passwd) -> dict[str, int]:
    return {"uid": account.pw_uid, "gid": account.pw_gid}


@as_root
def test_a_job_is_its_submitters(
    open_home: RunnerHome, tmp_path: Path, nobody: pwd.struct_passwd
) -> None:
    work_dir = _folder_of(nobody, tmp_path / "work")
    script = "#!/bin/sh\nid -u; id -g; id -G; grep -E '^Cap(Prm|Eff)' /proc/self/status\n"
    client = open_home.client()
    client.start(a_dispatch(1, script, work_dir, **_as(nobody)))
    assert client.wait_end(1)["exit_code"] == 0
    out = work_dir / "out"
    uid, gid, groups, *capabilities = out.read_text().splitlines()
    assert (int(uid), int(gid)) == (nobody.pw_uid, nobody.pw_gid)
    expected = {g.gr_gid for g in grp.getgrall() if nobody.pw_name in g.gr_mem} | {nobody.pw_gid}
    assert {int(group) for group in groups.split()} == expected
    assert {int(line.split()[1], 16) for line in capabilities} == {0}
    assert out.stat().st_uid == nobody.pw_uid


@as_root
def test_output_into_anothers_file_is_refused(
    open_home: RunnerHome, tmp_path: Path, nobody: pwd.struct_passwd
) -> None:
    work_dir = _folder_of(nobody, tmp_path / "work")
    (tmp_path / "roots").write_text("precious")
    client = open_home.client()
    part = a_part(0, work_dir, stdout=a_file(tmp_path / "roots"))
    client.start(a_dispatch(1, "#!/bin/sh\necho hi\n", work_dir, members=[part], **_as(nobody)))
    end = client.wait_end(1)
    assert end["kind"] == "start_failed"
    assert end["detail"] == f"cannot open the output file {tmp_path / 'roots'}: Permission denied"
    assert (tmp_path / "roots").read_text() == "precious"


@as_root
def test_a_folder_the_user_may_not_enter_is_refused(
    open_home: RunnerHome, tmp_path: Path, nobody: pwd.struct_passwd
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    client = open_home.client()
    client.start(a_dispatch(1, "#!/bin/sh\n", closed, **_as(nobody)))
    assert client.wait_end(1)["detail"] == (
        f"cannot enter the working directory {closed}: Permission denied"
    )


@as_root
def test_no_other_user_can_read_a_script_or_kept_output(
    open_home: RunnerHome, tmp_path: Path, nobody: pwd.struct_passwd, other: pwd.struct_passwd
) -> None:
    work_dir = _folder_of(nobody, tmp_path / "work")
    client = open_home.client()
    client.start(
        a_dispatch(1, "#!/bin/sh\necho secret; echo $0\n", work_dir, spool=True, **_as(nobody))
    )
    client.wait_end(1)
    output = open_home.run_dir / "output" / "1-1-0.out"
    script = output.read_text().split()[1]
    for path in (output, script):
        for account, readable in ((nobody, True), (other, False)):
            done = subprocess.run(
                ["cat", path], user=account.pw_uid, group=account.pw_gid, extra_groups=[],
                capture_output=True, check=False,
            )  # fmt: skip
            assert (done.returncode == 0) is readable, (path, account.pw_name)
    listed = subprocess.run(
        ["ls", open_home.run_dir / "scripts"], user=nobody.pw_uid, capture_output=True, check=False
    )
    assert listed.returncode != 0


@as_root
def test_output_is_opened_for_reading_as_its_user(
    open_home: RunnerHome, tmp_path: Path, nobody: pwd.struct_passwd
) -> None:
    (tmp_path / "roots").write_text("precious")
    (tmp_path / "roots").chmod(0o600)
    mine = tmp_path / "mine"
    mine.write_text("mine")
    os.chown(mine, nobody.pw_uid, nobody.pw_gid)
    mine.chmod(0o600)
    client = open_home.client(term=None)
    _, (fd,) = client.ask_with_fd("open_output", path=str(mine), **_as(nobody))
    assert os.read(fd, 100) == b"mine"
    os.close(fd)
    with pytest.raises(RequestRefused, match="Permission denied"):
        client.ask("open_output", path=str(tmp_path / "roots"), **_as(nobody))


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


@as_root
def test_a_user_cannot_kill_what_watches_their_job(
    open_home: RunnerHome, tmp_path: Path, nobody: pwd.struct_passwd
) -> None:
    work_dir = _folder_of(nobody, tmp_path / "work")
    script = """#!/bin/sh
while [ ! -e go ]; do sleep 0.02; done
kill -9 $PPID
exit 5
"""
    client = open_home.client()
    client.start(a_dispatch(1, script, work_dir, **_as(nobody)))
    client.wait_for(1, "started")
    (work_dir / "go").touch()
    assert client.wait_end(1)["exit_code"] == 5


def _runner_of(account: pwd.struct_passwd, run_dir: Path) -> int:
    """A runner that is the account's, forked: that account may be unable to reach this Python."""
    ready, started = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
            runner = Runner(run_dir, account.pw_uid, account.pw_gid)
            os.write(started, b"y")
            runner.run()
        finally:
            os._exit(0)
    os.close(started)
    assert os.read(ready, 1) == b"y"
    os.close(ready)
    return pid


@as_root
def test_a_users_runner_runs_only_that_users_jobs(
    tmp_path: Path, nobody: pwd.struct_passwd
) -> None:
    _open_to_all(tmp_path)
    work_dir = _folder_of(nobody, tmp_path / "theirs")
    home = RunnerHome(work_dir / "runner")
    pid = _runner_of(nobody, home.run_dir)
    client = home.client()
    script = "#!/bin/sh\nid -u\n"
    client.start(a_dispatch(1, script, work_dir, **_as(nobody)), a_dispatch(2, script, work_dir))
    uid = nobody.pw_uid
    assert client.wait_end(1)["exit_code"] == 0
    assert (work_dir / "out").read_text() == f"{uid}\n"
    assert client.wait_end(2)["detail"] == f"odcd runs as uid {uid} and cannot start jobs of uid 0"
    client.ask("quit")
    os.waitpid(pid, 0)
    client.close()
