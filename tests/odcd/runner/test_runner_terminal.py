"""A job that requested a terminal has one, to which clients attach and from which they detach."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odcd.runner.terminal import give_terminal
from tests.support.harness.runner import RequestRefused, RunnerHome, a_dispatch
from tests.support.harness.screen import Screen

SHELL = "#!/bin/sh\nPS1='$ ' exec sh -i\n"


def test_a_shell_reads_input_and_answers(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, SHELL, work_dir, pty=True))
    with Screen(client) as screen:
        screen.type("tty -s && echo is$((40+2))tty\n")
        screen.read_until("is42tty")
        screen.resize(33, 101)
        screen.type("stty size\n")
        screen.read_until("33 101")
        screen.type("exit 6\n")
        screen.read_to_end()
        assert screen.end == {"exit_code": 6, "signal": None}
    assert client.wait_end(1)["exit_code"] == 6


def test_control_c_interrupts(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\necho up\nexec sleep 1000\n", work_dir, pty=True))
    with Screen(client) as screen:
        screen.read_until("up")
        screen.type("\x03")
        screen.read_to_end()
    assert client.wait_end(1)["signal"] == 2


def test_a_later_client_sees_the_earlier_output(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, SHELL, work_dir, pty=True))
    with Screen(client) as first:
        first.type("echo a$((1+1))b\n")
        first.read_until("a2b")
    with Screen(client) as second, Screen(client) as third:
        second.read_until("a2b")
        second.type("echo c$((1+1))d; exit 0\n")
        third.read_until("c2d")
        third.read_to_end()


def test_unread_terminal_output_is_kept_and_blocks_nothing(
    home: RunnerHome, work_dir: Path
) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nseq 100000\n", work_dir, pty=True))
    assert client.wait_end(1)["exit_code"] == 0
    kept = (home.run_dir / "output" / "1-1-0.out").read_text().split()
    assert kept == [str(n) for n in range(1, 100001)]


def test_a_terminal_outlives_the_runner(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, SHELL, work_dir, pty=True))
    with Screen(client) as screen:
        screen.type("echo a$((1+1))b\n")
        screen.read_until("a2b")
        home.kill()
        home.launch()
        client = home.client()
        with Screen(client) as again:
            again.type("exit 4\n")
            again.read_to_end()
            assert again.end == {"exit_code": 4, "signal": None}
        screen.read_to_end()
    assert client.wait_end(1)["exit_code"] == 4


def test_attaching_to_a_job_without_a_terminal_is_refused(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nexec sleep 1000\n", work_dir))
    client.wait_for(1, "started")
    with pytest.raises(RequestRefused) as refused:
        client.ask("attach", job=1, attempt=1, rank=0)
    assert refused.value.code == "not_found"


def test_detaching_one_client_keeps_the_others_and_the_job(
    home: RunnerHome, work_dir: Path
) -> None:
    client = home.client()
    client.start(a_dispatch(1, SHELL, work_dir, pty=True))
    with Screen(client) as stays:
        with Screen(client) as goes:
            goes.type("echo a$((1+1))b\n")
            stays.read_until("a2b")
            goes.read_until("a2b")
        stays.type("echo c$((1+1))d\n")
        stays.read_until("c2d")
    with Screen(client) as back:
        back.read_until("c2d")
        back.type("exit 3\n")
        back.read_to_end()
    assert client.wait_end(1)["exit_code"] == 3


def test_the_window_size_is_that_of_the_client_active_last(
    home: RunnerHome, work_dir: Path
) -> None:
    script = "#!/bin/sh\nwhile read line; do echo $line is $(stty size); done\n"
    client = home.client()
    client.start(a_dispatch(1, script, work_dir, pty=True))
    with Screen(client) as one, Screen(client) as other, Screen(client) as sizeless:
        one.resize(20, 60)
        one.type("a\n")
        one.read_until("a is 20 60")
        other.resize(30, 90)
        # Only a client with a window changes the size by typing.
        sizeless.type("b\n")
        one.read_until("b is")
        other.type("c\n")
        one.read_until("c is 30 90")
        other.resize(31, 91)
        one.resize(21, 61)
        other.type("d\n")
        one.read_until("d is 31 91")
        one.type("e\n")
        one.read_until("e is 21 61")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives terminals to others")
def test_a_terminal_belongs_to_a_user_that_the_machine_does_not_know() -> None:
    """Before: that of a step stayed root's, so its program could not open it by its name."""
    master, slave = os.openpty()
    try:
        give_terminal(slave, {"uid": 64321, "gid": 64322}, switch_user=True)
        status = os.fstat(slave)
        assert (status.st_uid, status.st_mode & 0o777) == (64321, 0o600)
    finally:
        os.close(master)
        os.close(slave)
