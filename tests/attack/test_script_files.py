"""A user cannot grow the file of a job's script, and no other user can read it."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odcd.runner import __main__, access, texts
from tests.attack.strangers import ALICE, BOB, as_uid
from tests.support.harness.database import make_home, remove_home
from tests.support.harness.runner import (
    RunnerHome,
    a_dispatch,
    a_file,
    a_part,
    forked_runner,
    until,
)
from tests.support.harness.users import needs_root

pytestmark = needs_root

ANN = {"uid": ALICE, "gid": ALICE}
SHARED = {"uid": ALICE, "gid": 64100}


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = make_home()
    yield folder
    remove_home(folder)


@pytest.fixture
def home(folder: Path) -> Iterator[RunnerHome]:
    home = RunnerHome(folder / "runner")
    home.launch()
    yield home
    home.end()


@pytest.fixture
def work_dir(folder: Path) -> Path:
    work_dir = folder / "work"
    work_dir.mkdir()
    os.chown(work_dir, ALICE, ALICE)
    return work_dir


def run(
    home: RunnerHome, work_dir: Path, script: str, ids: dict[str, int] = ANN
) -> tuple[str, Path]:
    """Its output, and its file."""
    client = home.client()
    client.start(a_dispatch(1, script, work_dir, **ids))
    assert client.wait_end(1)["kind"] == "exited", client.facts
    client.close()
    (copy,) = (home.run_dir / "scripts").iterdir()
    return (work_dir / "out").read_text(), copy


def refused(work: Callable[[], object]) -> bool:
    try:
        work()
    except PermissionError:
        return True
    return False


def grow(path: Path) -> None:
    path.chmod(0o700)
    with path.open("ab") as file:
        file.write(b"#" * 1_000_000)


def test_a_user_cannot_grow_the_file_of_their_script(home: RunnerHome, work_dir: Path) -> None:
    script = '#!/bin/sh\nchmod u+w "$0"\nhead -c 1000000 /dev/zero >> "$0"\nrm -f "$0"\n'
    _, copy = run(home, work_dir, script)
    assert copy.read_text() == script
    for attack in (
        lambda: grow(copy), lambda: copy.open("ab"), lambda: os.truncate(copy, 10**9),
        lambda: os.setxattr(copy, "user.space", b"x" * 3000), lambda: copy.rename(work_dir / "x"),
    ):  # fmt: skip
        assert as_uid(ALICE, lambda attack=attack: refused(attack))
    assert copy.read_text() == script


def test_no_other_user_reads_a_script(home: RunnerHome, work_dir: Path) -> None:
    _, copy = run(home, work_dir, "#!/bin/sh\n: secret\n")
    assert as_uid(BOB, lambda: refused(copy.read_text))
    assert "secret" in as_uid(ALICE, copy.read_text)


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ('#!/bin/sh\ntail -n 1 "$0"\nexit\nitself', "itself"),
        ('#!/bin/bash\n[ -r "$0" ] && [ -x "$0" ] && "$BASH" -c "tail -n 1 $0"\n#it', "#it"),
        ("#!/usr/bin/env -S python3 -S\nprint(open(__file__).read()[-4:-1])\n#it\n", "#it\n"),
        ('#!/bin/sh\n[ -n "$AGAIN" ] && echo again && exit\nAGAIN=1 exec "$0"\n', "again\n"),
    ],
)
def test_a_script_reads_and_runs_itself(
    home: RunnerHome, work_dir: Path, script: str, printed: str
) -> None:
    assert run(home, work_dir, script)[0] == printed


def without_acls() -> None:
    def none(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    access.os.setxattr = none  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("ids", "means", "owner", "mode"),
    [(ANN, "group", 0, 0o550), (SHARED, "owner", ALICE, 0o500)],
    ids=["private group", "shared group"],
)
def test_without_acls_a_private_group_reads_it_and_a_shared_one_does_not(
    folder: Path, work_dir: Path, ids: dict[str, int], means: str, owner: int, mode: int
) -> None:
    home = RunnerHome(folder / "runner")
    home.run_dir.mkdir()
    pid = forked_runner(home.run_dir, change=without_acls)
    printed, copy = run(home, work_dir, '#!/bin/sh\necho right; (: > "$0") 2> /dev/null\n', ids)
    assert printed == "right\n"
    assert (copy.stat().st_uid, copy.stat().st_mode & 0o777) == (owner, mode)
    assert as_uid(BOB, lambda: refused(copy.read_text))
    assert f"readable_by={means}" in (home.run_dir / "runner.log").read_text()
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)


def sweep_at_once() -> None:
    texts.UNUSED_SCRIPT_S = 0
    __main__.SWEEP_S = 0.0


@pytest.mark.long
def test_a_script_is_removed_after_its_jobs_while_other_jobs_run(
    folder: Path, work_dir: Path
) -> None:
    """Else a job that never ends keeps the scripts of all others on the disk."""
    home = RunnerHome(folder / "runner")
    home.run_dir.mkdir()
    pid = forked_runner(home.run_dir, change=sweep_at_once)
    client = home.client()
    stays = '#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.05; done\ntail -n 1 "$0"\nexit\nitself'
    client.start(a_dispatch(1, stays, work_dir, **ANN))
    client.wait_for(1, "started")
    for job in (2, 3):
        client.start(a_dispatch(job, f"#!/bin/sh\n: {job}\n", work_dir, **ANN, members=[
            a_part(0, work_dir, stdout=a_file("/dev/null"))]))  # fmt: skip
        client.wait_end(job)
    until(lambda: len(list((home.run_dir / "scripts").iterdir())) == 1)
    (work_dir / "go").touch()
    assert client.wait_end(1)["exit_code"] == 0
    assert (work_dir / "out").read_text() == "itself"
    client.close()
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
