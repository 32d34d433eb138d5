"""srun --pty with a real daemon: keys, sizes, signals, and the user's terminal afterwards."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odcd.home.lock import holder
from tests.support.harness.daemon import gone, kill, wait
from tests.support.harness.slurm import NODES, Slurm, written
from tests.support.harness.terminals import OwnTerminal

Open = Callable[..., OwnTerminal]


@pytest.fixture
def window(two: Slurm) -> Iterator[Open]:
    opened: list[OwnTerminal] = []

    def open_window(*argv: str, rows: int = 24, columns: int = 100, **more: str) -> OwnTerminal:
        opened.append(OwnTerminal(
            ["srun", "-n1", "--pty", *argv], two.environment(**more), two.odc.work, rows=rows,
            columns=columns,
        ))  # fmt: skip
        return opened[-1]

    yield open_window
    for one in opened:
        one.close()


def test_keys_that_signal_go_to_the_program_and_its_exit_code_comes_back(window: Open) -> None:
    """Ctrl-C, Ctrl-Z and Ctrl-\\ are keys for a program that wants them."""
    shell = window(
        "sh", "-c", "stty raw -echo; echo up; dd bs=1 count=3 2>&- | od -An -tx1; exit 5"
    )
    shell.until(b"up")
    assert shell.is_raw
    shell.type(b"\x03\x1a\x1c")
    shown = shell.until(b" 03 1a 1c")
    code, rest = shell.end()
    assert code == 5
    # Lines of srun itself begin at the left in a raw terminal, too.
    assert b"task 0: Exited with exit code 5\r\n" in shown + rest


def test_an_interrupt_key_signals_the_program(window: Open) -> None:
    shell = window(
        "sh", "-c", "trap 'echo got it; exit 6' INT; echo up; while :; do sleep 0.1; done"
    )
    shell.until(b"up\r\n")
    shell.type(b"\x03")
    shell.until(b"got it\r\n")
    assert shell.end()[0] == 6


def test_the_program_has_the_size_of_the_window_from_its_start(window: Open) -> None:
    loop = "trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.1; done"
    shell = window("sh", "-c", loop, rows=31, columns=91)
    shell.until(b"31 91\r\n")
    shell.resize(40, 120)
    shell.until(b"40 120\r\n")
    assert shell.end()[0] == 0


def test_only_task_0_has_the_terminal(window: Open, tmp_path: Path) -> None:
    """As in Slurm: the others write to /dev/null."""
    shell = window("-n2", "sh", "-c", "test -t 0 && echo out $SLURM_PROCID; echo err $SLURM_PROCID "
                   f">&2; cat >{tmp_path}/$SLURM_PROCID")  # fmt: skip
    shown = shell.until(b"err 0\r\n")
    wait((tmp_path / "1").exists, lambda: "task 1 did not start")
    shell.type(b"typed\n\x04")
    code, rest = shell.end()
    assert code == 0
    assert b" 1" not in shown + rest
    assert (tmp_path / "1").read_text() == ""
    assert (tmp_path / "0").read_text() == "typed\n"


def test_the_end_of_the_input_reaches_the_program(two: Slurm) -> None:
    """Before: a program that reads all of its input never ended if srun had no terminal."""
    done = two.run("srun", "-n1", "--pty", "cat", stdin="a line\nand a part")
    assert done.returncode == 0
    assert done.stdout.replace("\r", "").endswith("a line\nand a part")
    assert two.run("srun", "-n1", "--pty", "cat").returncode == 0


def test_a_program_that_closes_its_terminal_before_it_exits_keeps_its_exit_code(two: Slurm) -> None:
    """Before: it was hung up on, like cat now and then, which closes its output first."""
    closes = "exec 0<&- 1>&- 2>&-; sleep 0.3; exit 7"
    assert two.run("srun", "-n1", "--pty", "sh", "-c", closes).returncode == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_program_and_the_terminal_is_restored(
    window: Open, number: signal.Signals
) -> None:
    shell = window("sh", "-c", "echo up; exec sleep 1000")
    shell.until(b"up\r\n")
    shell.process.send_signal(number)
    assert shell.end()[0] == 128 + number


def test_a_closed_window_ends_the_program(window: Open, tmp_path: Path) -> None:
    shell = window(
        "sh", "-c", f"trap 'exit' HUP; echo $$ >{tmp_path}/pid; while :; do sleep 0.1; done"
    )
    pid = int(written(tmp_path / "pid"))
    wait(lambda: shell.is_raw, lambda: "srun did not begin")
    shell.hang_up()
    wait(lambda: gone(pid), lambda: "the program lives on")


def test_outside_of_a_job_it_makes_its_own(slurm: Slurm) -> None:
    shell = OwnTerminal(
        ["srun", "-n1", "-J", "window", "--pty", "sh", "-c", "echo job $SLURM_JOB_ID; exit 3"],
        slurm.environment(), slurm.odc.work,
    )  # fmt: skip
    try:
        shell.until(b"job ")
        assert shell.end()[0] == 3
    finally:
        shell.close()
    [row] = slurm.odc.rows("select id from odc.job where name = 'window'")
    slurm.odc.wait_for(row["id"], "FAILED")


# -- a daemon that is away --------------------------------------------------------------------


def end_daemon(two: Slurm) -> None:
    pid = two.odc.pid
    assert kill(pid)
    wait(lambda: gone(pid) and holder(two.odc.home / "odcd.lock") is None, lambda: "it lives on")


def test_while_the_daemon_is_away_the_terminal_is_the_users(window: Open, two: Slurm) -> None:
    """And the program continues when the daemon is back."""
    shell = window("sh", "-c", "echo up; read line; echo got $line; exit 7")
    shell.until(b"up\r\n")
    assert shell.is_raw
    end_daemon(two)
    shell.until(b"srun: error: The connection to the server is lost")
    wait(lambda: not shell.is_raw, lambda: "it is still raw")
    two.odc.up(*NODES)
    wait(lambda: shell.is_raw, lambda: "srun does not continue")
    shell.type(b"it\r")
    shell.until(b"got it\r\n")
    assert shell.end()[0] == 7


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_while_the_daemon_is_away_a_signal_ends_srun(
    window: Open, two: Slurm, number: signal.Signals
) -> None:
    shell = window("sh", "-c", "echo up; exec sleep 1000")
    shell.until(b"up\r\n")
    end_daemon(two)
    try:
        shell.until(b"is lost")
        if number == signal.SIGINT:
            shell.type(b"\x03")
        else:
            shell.process.send_signal(number)
        assert shell.end()[0] == 128 + number
    finally:
        two.odc.up(*NODES)
