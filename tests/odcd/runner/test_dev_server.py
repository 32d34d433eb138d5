"""The processes of a reservation: shells in one terminal, one after the other, until it is
ended."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odcd.jobs import login_shell
from tests.support.harness.runner import PATIENCE_S, Client, RunnerHome, a_dispatch, until
from tests.support.harness.screen import Screen

Start = Callable[..., Client]
ENDED = "The shell has exited. Reservation 1 continues; to end it: odcctl cancel 1"
FOUND = [path for name in ("sh", "dash", "bash", "busybox") if (path := shutil.which(name))]
# A shell with two names is tested once.
SHELLS = list({str(Path(path).resolve()): path for path in FOUND}.values())
LOGIN_SHELLS = [path for path in SHELLS if not path.endswith("busybox")]
# Every image has a /bin/sh, which comes first; other shells are tested in long runs.
OTHERS = [pytest.param(path, marks=pytest.mark.long) for path in SHELLS[1:]]


@pytest.fixture(params=[*SHELLS[:1], *OTHERS], ids=lambda path: Path(path).name)
def start(request: pytest.FixtureRequest, home: RunnerHome, work_dir: Path) -> Start:
    """Job 1, a dev server, in each sh of this machine; its home is work_dir."""
    interpreter = request.param + (" sh" if request.param.endswith("busybox") else "")
    script = login_shell.script()
    for use in ("#!/bin/sh\n", "/bin/sh -c"):
        assert use in script
        script = script.replace(use, use.replace("/bin/sh", interpreter))
    # A busy machine may take more than a second for a shell that ends at once.
    assert "QUICK_S=1\n" in script
    script = script.replace("QUICK_S=1\n", "QUICK_S=60\n")

    def begin(*, pty: bool = True, ended_at_once: int = 0, **env: str) -> Client:
        """ended_at_once: number of shells that ended before."""
        client = home.client()
        env = {
            "HOME": str(work_dir), "SHELL": "/bin/sh", "ODC_JOB_ID": "1", "SLURM_JOB_NAME": "dev",
            "ODC_GPUS": "0", "CUDA_VISIBLE_DEVICES": "", "ODC_NODE_COUNT": "1",
            "ODC_NODELIST": "gpu-01", "PS1": "$ ",
        } | env  # fmt: skip
        assert "\nquick=0\n" in script
        whole = script.replace("\nquick=0\n", f"\nquick={ended_at_once}\n")
        client.start(a_dispatch(1, whole, work_dir, pty=pty, env=env))
        client.wait_for(1, "started")
        return client

    return begin


def a_shell(work_dir: Path, script: str) -> str:
    path = work_dir / "shell"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def end(client: Client) -> dict[str, Any]:
    """Without KILL, which would come only after the test's timeout."""
    client.ask("stop", job=1, attempt=1, signal=15, grace_s=2 * PATIENCE_S)
    return client.wait_end(1)


def asleep(folder: Path, seconds: int) -> bool:
    """True if a `sleep` of this time runs in the folder and receives the terminal's keys."""
    arguments = b"sleep\0%d\0" % seconds
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if not command.endswith(arguments):
                continue
            parent, group, foreground = terminal_of(process)
            # Busybox runs sleep in a fork of the shell, which keeps the shell's arguments.
            copied = Path(f"/proc/{parent}/cmdline").read_bytes() == command
            itself = command.startswith(b"sleep") or (b"busybox" in command and copied)
            if itself and group == foreground and (process / "cwd").samefile(folder):
                return True
    return False


def terminal_of(process: Path) -> tuple[int, int, int]:
    """Its parent, its process group, and the group that receives its terminal's keys."""
    _, parent, group, _, _, foreground, *_ = (
        (process / "stat").read_text().rpartition(")")[2].split()
    )
    return int(parent), int(group), int(foreground)


def test_a_dev_server_greets_once_with_its_gpus_and_its_end(start: Start) -> None:
    client = start(
        ODC_GPUS="2", ODC_GPU_TYPE="h100", CUDA_VISIBLE_DEVICES="4,5", TZ="UTC",
        SLURM_JOB_END_TIME="1795000000",
    )  # fmt: skip
    with Screen(client) as screen:
        # Input that is typed earlier is echoed in the middle of it.
        screen.read_until("To end it:")
        for _ in range(2):
            screen.type("exit\n")
            screen.read_past(ENDED)
        screen.type("echo a$((1+1))b\n")
        screen.read_until("a2b")
    with Screen(client) as later:
        later.read_until("a2b")
        assert later.shown.count("odc reservation 1 (dev)\r\n") == 1
        assert "  GPUs   2 h100 (4,5)\r\n  nodes  gpu-01\r\n" in later.shown
        assert "  until  2026-11-18 11:06 UTC, unless it is extended\r\n" in later.shown


def test_the_greeting_names_all_nodes_and_the_absence_of_gpus(start: Start) -> None:
    client = start(ODC_NODE_COUNT="2", ODC_NODELIST="cpu-[01-02]")
    with Screen(client) as screen:
        screen.read_until("  GPUs   none\r\n  nodes  cpu-[01-02]\r\n")
        screen.read_until("To add hours: odcctl extend 1. To end it: odcctl cancel 1.")
        assert "until" not in screen.shown


def test_a_dev_server_runs_the_users_login_shell_in_the_home_folder(
    start: Start, work_dir: Path
) -> None:
    shell = a_shell(work_dir, 'echo "args: $*, in $(pwd)"; exec sh -i')
    with Screen(start(SHELL=shell)) as screen:
        screen.read_until(f"args: -l, in {work_dir}")
        screen.type("cd /; exit\n")
        screen.read_past(ENDED)
        screen.read_until(f"args: -l, in {work_dir}")


def test_the_shell_has_the_variables_that_odcctl_needs(start: Start) -> None:
    with Screen(start(ODC_HOME="/srv/odc", ODC_SERVER="http://odc:8642", TERM="")) as screen:
        screen.type('echo "with $ODC_HOME $ODC_SERVER $ODC_JOB_ID $TERM"\n')
        screen.read_until("with /srv/odc http://odc:8642 1 xterm-256color")


def test_a_missing_shell_or_home_is_replaced_by_a_default(start: Start, work_dir: Path) -> None:
    with Screen(start(SHELL="/no/such", HOME=str(work_dir / "gone"))) as screen:
        screen.read_until("cannot be entered; the shell starts in /.")
        screen.type("echo in=$(pwd)\n")
        screen.read_until("in=/\r\n")


@pytest.mark.long
@pytest.mark.parametrize("shell", LOGIN_SHELLS)
def test_term_ends_a_dev_server_whose_shell_ignores_it(
    start: Start, work_dir: Path, shell: str
) -> None:
    client = start(SHELL=shell)
    with Screen(client) as screen:
        screen.type("(trap '' HUP TERM; echo $$ > stubborn; sleep 1000) & echo a$((1+1))b\n")
        screen.read_until("a2b")
        until((work_dir / "stubborn").exists)
        ended = end(client)
        assert (ended["kind"], ended["signal"]) == ("exited", 15)


def test_term_ends_a_pause_too(start: Start) -> None:
    client = start(SHELL="/bin/false")
    with Screen(client) as screen:
        screen.read_until("the next one starts in 2 s.")
        assert end(client)["signal"] == 15


@pytest.mark.parametrize("shell", LOGIN_SHELLS)
def test_control_c_interrupts_the_command_and_not_the_dev_server(
    start: Start, work_dir: Path, shell: str
) -> None:
    with Screen(start(SHELL=shell)) as screen:
        screen.type("echo up; sleep 1000\n")
        screen.read_until("up\r\n")
        until(lambda: asleep(work_dir, 1000))
        screen.type("\x03")
        screen.type("echo a$((1+1))b\n")
        screen.read_until("a2b")
        assert ENDED not in screen.shown


@pytest.mark.parametrize("shell", LOGIN_SHELLS)
def test_a_killed_shell_is_replaced(start: Start, work_dir: Path, shell: str) -> None:
    with Screen(start(SHELL=shell)) as screen:
        for _ in range(2):
            screen.type("stty raw -echo; kill -9 $$\n")
            screen.read_past(ENDED)
        screen.type("echo up; sleep 1000\n")
        screen.read_until("up\r\n")
        until(lambda: asleep(work_dir, 1000))
        screen.type("\x03")
        screen.type("echo a$((1+1))b; tty -s && echo is$((40+2))tty\n")
        screen.read_until("a2b")
        screen.read_until("is42tty")


@pytest.mark.long
def test_shells_that_exit_at_once_are_restarted_with_a_pause(start: Start) -> None:
    with Screen(start(SHELL="/bin/false")) as screen:
        screen.read_until("the next one starts in 3 s.")
        pauses = re.findall(
            r"(\d+) shells exited at once; the next one starts in (\d) s", screen.shown
        )
        assert pauses == [("10", "1"), ("11", "2"), ("12", "3")]
        assert screen.shown.count(ENDED) == 12


def test_a_pause_is_cut_short_by_control_c(start: Start, work_dir: Path) -> None:
    with Screen(start(SHELL="/bin/false", ended_at_once=48)) as screen:
        screen.read_until("the next one starts in 40 s.")
        for pause in range(40, 45):
            before = time.monotonic()
            until(lambda seconds=pause: asleep(work_dir, seconds))
            screen.type("\x03")
            screen.read_until(f"the next one starts in {pause + 1} s.")
            assert time.monotonic() - before < pause


def test_a_member_without_a_terminal_waits_until_it_is_ended(start: Start, work_dir: Path) -> None:
    client = start(pty=False)
    time.sleep(0.3)
    ended = end(client)
    assert (ended["kind"], ended["signal"]) == ("exited", 15)
    assert (work_dir / "out").read_text() == ""


def test_a_program_in_place_of_the_shell_leads_back_to_a_shell(
    start: Start, work_dir: Path
) -> None:
    with Screen(start()) as screen:
        for seconds, key in ((1001, "\x03"), (1002, "\x1a"), (1003, "\x1c")):
            screen.type(f"exec sleep {seconds}\n")
            until(lambda s=seconds: asleep(work_dir, s))
            screen.type(key)
            screen.read_past(ENDED)
        screen.type("echo c$((1+1))d\n")
        screen.read_until("c2d")
