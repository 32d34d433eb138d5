"""Notices to a user: files in the home folder, written as that user, and lines on the terminal.

EXP-16: names and texts of users never reach a shell.
"""

from __future__ import annotations

import pwd
import select
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odcd.runner import notices
from odcd.runner.helper import Helper
from odcd.runner.members import Member
from odcd.runner.terminal import Terminal
from tests.support.harness.runner import (
    PATIENCE_S,
    Client,
    RequestRefused,
    RunnerHome,
    a_dispatch,
    a_start,
    forked_runner,
)  # fmt: skip
from tests.support.harness.screen import Screen
from tests.support.harness.users import folder_of, ids_of, needs_root

WARNING = "WARN_EXPIRES_IN_30MIN.txt"
SLEEPS = "#!/bin/sh\nexec sleep 1000\n"


def start(client: Client, folder: Path, home: Path | str | None = None, **changes: Any) -> None:
    """Job 1, running, with its home in the folder unless another is given."""
    env = {} if home is None else {"HOME": str(home)}
    changes = {"pty": True, "env": env} | changes
    client.start(a_dispatch(1, SLEEPS, folder, **changes))
    client.wait_for(1, "started")


def send_notice(client: Client, **notice: Any) -> dict[str, Any]:
    whole = {"name": None, "text": "", "remove": [], "wall": None} | notice
    return client.ask("tell", **({"job": 1, "attempt": 1} | whole))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_and_others_are_removed(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    start(client, work_dir, work_dir)
    for name, old in ((WARNING, "of before, and longer"), ("old.txt", "old")):
        (work_dir / name).write_text(old)
    for _ in range(2):  # a repeated notice has the same result
        answer = send_notice(
            client, name=WARNING, text="30 minutes\n", remove=["old.txt", "none", WARNING]
        )
        assert answer == {"shown": False, "kept": True, "trouble": []}
        assert (work_dir / WARNING).read_text() == "30 minutes\n"
        assert names_in(work_dir) == [WARNING]
    assert (work_dir / WARNING).stat().st_mode & 0o777 == 0o644


def test_a_link_in_the_home_is_replaced_and_its_target_untouched(
    home: RunnerHome, work_dir: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("of somebody else")
    for name in (WARNING, "old.txt"):
        (work_dir / name).symlink_to(precious)
    client = home.client()
    start(client, work_dir, work_dir)
    assert send_notice(client, name=WARNING, text="30 minutes", remove=["old.txt"])["kept"]
    assert precious.read_text() == "of somebody else"
    assert not (work_dir / WARNING).is_symlink()
    assert (work_dir / WARNING).read_text() == "30 minutes"
    assert not (work_dir / "old.txt").is_symlink()


@needs_root
def test_as_root_the_file_is_written_by_the_user(
    open_home: RunnerHome, open_folder: Path, nobody: pwd.struct_passwd
) -> None:
    folder = folder_of(nobody, open_folder / "work")
    client = open_home.client()
    start(client, folder, folder, **ids_of(nobody))
    assert send_notice(client, name=WARNING, text="30 minutes")["kept"]
    status = (folder / WARNING).stat()
    assert (status.st_uid, status.st_gid) == (nobody.pw_uid, nobody.pw_gid)


@needs_root
def test_as_root_no_folder_of_others_is_written(
    open_home: RunnerHome, open_folder: Path, nobody: pwd.struct_passwd
) -> None:
    """Neither by naming it as the home nor by a link to it."""
    folder = folder_of(nobody, open_folder / "work")
    closed, seen = open_folder / "closed", open_folder / "seen"
    closed.mkdir(mode=0o700)
    seen.mkdir(mode=0o755)
    (seen / "old.txt").write_text("precious")
    (folder / "link").symlink_to(closed)
    client = open_home.client()
    for number, given in enumerate((closed, seen, folder / "link"), start=1):
        env = {"HOME": str(given)}
        client.start(a_dispatch(number, SLEEPS, folder, pty=True, env=env, **ids_of(nobody)))
        client.wait_for(number, "started")
        answer = send_notice(
            client, job=number, name=WARNING, text="!", remove=["old.txt"], wall="hear"
        )
        assert (answer["shown"], answer["kept"]) == (True, False)
        assert all("Permission denied" in text for text in answer["trouble"])
    assert names_in(closed) == []
    assert names_in(seen) == ["old.txt"]


@needs_root
def test_without_a_home_in_the_environment_it_is_the_accounts(
    open_home: RunnerHome, open_folder: Path, nobody: pwd.struct_passwd
) -> None:
    folder = folder_of(nobody, open_folder / "work")
    client = open_home.client()
    start(client, folder, **ids_of(nobody))
    answer = send_notice(client, name=WARNING, text="!")
    assert answer["trouble"] == [
        f"cannot open the home folder {nobody.pw_dir}: No such file or directory"
    ]


def test_an_unwritable_home_is_reported_and_the_wall_is_shown(
    home: RunnerHome, work_dir: Path, tmp_path: Path
) -> None:
    client = home.client()
    start(client, work_dir, tmp_path / "gone")
    (work_dir / WARNING).mkdir()
    answer = send_notice(client, name=WARNING, text="!", wall="15 minutes left")
    assert answer == {
        "shown": True, "kept": False,
        "trouble": [f"cannot open the home folder {tmp_path / 'gone'}: No such file or directory"],
    }  # fmt: skip
    with Screen(client) as screen:
        screen.read_until("15 minutes left")
    # A folder has the file's name, and no trace of the failed write is left.
    env = {"HOME": str(work_dir)}
    client.start(a_dispatch(2, SLEEPS, work_dir, pty=True, env=env))
    client.wait_for(2, "started")
    assert "Is a directory" in send_notice(client, job=2, name=WARNING, text="!")["trouble"][0]
    assert names_in(work_dir) == [WARNING]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "/etc/passwd", "../up", "x" * 256, "é" * 128, "a\0b"]
)
def test_only_file_names_are_accepted(home: RunnerHome, work_dir: Path, name: str) -> None:
    client = home.client()
    start(client, work_dir, work_dir)
    for notice in ({"name": name}, {"name": WARNING, "remove": [name]}):
        with pytest.raises(RequestRefused) as refused:
            send_notice(client, text="!", **notice)
        assert refused.value.code == "bad_request"
    assert names_in(work_dir) == []


def test_names_and_texts_never_reach_a_shell(home: RunnerHome, work_dir: Path) -> None:
    """EXP-16"""
    client = home.client()
    start(client, work_dir, work_dir)
    nasty = "$(touch ran);`touch ran`;'\"\n|&* -rf"
    answer = send_notice(client, name=nasty, text=nasty, remove=["*"], wall=nasty)
    assert answer["trouble"] == []
    assert names_in(work_dir) == [nasty]
    assert (work_dir / nasty).read_text() == nasty


def test_a_wall_is_shown_to_attached_and_to_later_clients(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    start(client, work_dir)
    with Screen(client) as first, Screen(client) as second:
        answer = send_notice(client, wall="It ends in 15 min.\nSave \x1b[2Jyour work.")
        assert answer == {"shown": True, "kept": False, "trouble": []}
        for screen in (first, second):
            screen.read_until("\r\n\aIt ends in 15 min.\r\nSave ?[2Jyour work.\r\n")
    with Screen(client) as third:
        third.read_until("your work.")
    kept = (home.run_dir / "output" / "1-1-0.out").read_text()
    assert "It ends in 15 min." in kept


def test_a_repeated_request_shows_its_wall_once(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    start(client, work_dir)
    for wall in ("five left", "five left", "none left"):
        assert send_notice(client, wall=wall)["shown"]
    with Screen(client) as screen:
        screen.read_until("none left")
        assert screen.shown.count("five left") == 1


def test_a_wall_on_a_busy_terminal_is_shown(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nexec yes\n", work_dir, pty=True))
    client.wait_for(1, "started")
    with Screen(client) as screen:
        assert send_notice(client, wall="15 minutes left")["shown"]
        screen.read_until("15 minutes left")


def test_a_job_without_a_terminal_has_the_file(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    start(client, work_dir, work_dir, pty=False)
    answer = send_notice(client, name=WARNING, text="!", wall="hear")
    assert answer == {
        "shown": False, "kept": True, "trouble": ["there is no terminal to show it on"]
    }  # fmt: skip


def test_a_notice_to_a_job_that_does_not_run_is_refused(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    with pytest.raises(RequestRefused) as refused:
        send_notice(client, wall="hear")
    assert refused.value.code == "not_found"
    # Both in one message: it is queued when the notice comes.
    start = a_start(a_dispatch(1, "#!/bin/sh\n", work_dir))
    notice = {"op": "tell", "job": 1, "attempt": 1, "name": None, "text": "", "remove": []}
    with pytest.raises(RequestRefused) as refused:
        client.ask_together(start, notice | {"wall": "hear"})
    assert refused.value.code == "not_ready"
    client.wait_end(1)
    with pytest.raises(RequestRefused) as refused:
        send_notice(client, wall="hear")
    assert refused.value.code == "not_found"


def test_a_notice_of_an_older_term_is_refused(home: RunnerHome, work_dir: Path) -> None:
    old = home.client()
    start(old, work_dir, work_dir)
    home.client(term=2)
    with pytest.raises(RequestRefused) as refused:
        send_notice(old, name=WARNING)
    assert refused.value.code == "leadership_lost"
    assert names_in(work_dir) == []


def test_the_next_runner_still_knows_the_home(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    start(client, work_dir, work_dir)
    home.kill()
    home.launch()
    client = home.client()
    client.wait_for(1, "started")
    answer = send_notice(client, name=WARNING, text="!", wall="hear")
    assert answer == {"shown": True, "kept": True, "trouble": []}
    assert names_in(work_dir) == [WARNING]


def test_a_home_too_long_for_the_record_refuses_no_start(home: RunnerHome, work_dir: Path) -> None:
    deep = work_dir.joinpath(*["x" * 200] * 6)
    deep.mkdir(parents=True)
    client = home.client()
    start(client, work_dir, deep)
    assert send_notice(client, name=WARNING, text="!")["kept"]
    assert names_in(deep) == [WARNING]


@pytest.fixture
def forked(tmp_path: Path) -> Iterator[RunnerHome]:
    """A place for a runner with other code."""
    home = RunnerHome(tmp_path / "forked")
    yield home
    home.end()


def _slow(member: Member, _: object) -> dict[str, Any]:
    """Blocks until it is released, at the latest when the test times out."""
    deadline = time.monotonic() + 2 * PATIENCE_S
    while time.monotonic() < deadline and not Path(member.home or "", "go").exists():
        time.sleep(0.05)
    return {"kept": True}


def _make_homes_slow() -> None:
    def fork_as(*args: Any, **how: Any) -> Helper:
        helper = newer(*args, **how)
        # Its terminal does not matter here: wait until it has answered.
        select.select([helper.channel], [], [], PATIENCE_S)
        return helper

    newer = notices.fork_as
    notices.fork_as = fork_as
    notices.ANSWER_S = 0.3
    notices._keep = _slow


def test_a_home_that_does_not_answer_delays_no_other_request(
    forked: RunnerHome, work_dir: Path
) -> None:
    forked_runner(forked.run_dir, change=_make_homes_slow)
    client, other = forked.client(), forked.client(term=None)
    start(client, work_dir, work_dir)
    client._sock.sendall(
        b'{"id": 99, "op": "tell", "job": 1, "attempt": 1, "name": "x", "text": "", "remove": [],'
        b' "wall": "hear"}\n'
    )
    other.ask("list")
    client._number = 98
    answer = client._next()["ok"]
    assert answer == {
        "shown": True, "kept": False,
        "trouble": ["no answer from the home folder within 0.3 s"],
    }  # fmt: skip
    (work_dir / "go").touch()


def _older_shims() -> None:
    newer = Terminal._obey

    def obey(self: Terminal, client: Any, kind: bytes, data: bytes) -> None:
        if kind != b"w":
            newer(self, client, kind, data)

    Terminal._obey = obey
    notices.SHOW_S = 0.3


def test_a_terminal_of_an_older_runner_does_not_show_the_wall(
    forked: RunnerHome, work_dir: Path
) -> None:
    forked_runner(forked.run_dir, change=_older_shims)
    client = forked.client()
    start(client, work_dir, work_dir)
    answer = send_notice(client, name=WARNING, text="!", wall="hear")
    assert answer == {
        "shown": False, "kept": True,
        "trouble": ["its terminal did not accept it; a terminal of an older odc cannot"],
    }  # fmt: skip
