"""Every verb against the real daemon, PostgreSQL and runner: the contract of peer.py is kept."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.odcctl.conftest import Odcctl
from tests.odcctl.peer import Run
from tests.odcctl.test_terminal import Terminal
from tests.support.harness.daemon import Odc, gone, new_odc, wait

WAITS = re.compile(r"odcctl: job \d+ waits")
LOOKS = re.compile(r'^odcd_http_requests_total{(?=.*route="/v1/jobs/{id}").*} (\S+)$', re.M)


@pytest.fixture(scope="module")
def daemon(seed: Path) -> Iterator[Odc]:
    with new_odc(seed=seed) as odc:
        if os.geteuid() == 0:
            odc.work.chmod(0o777)
        odc.up("--node", "gpu-01=h100:8", "--node", "gpu-02=h100:8", "--node", "self")
        yield odc


@pytest.fixture
def environment(daemon: Odc, environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "ODC_HOME": str(daemon.home)}


@pytest.fixture
def home(daemon: Odc) -> Path:
    return daemon.work


@pytest.fixture(autouse=True)
def _clean_work(home: Path) -> Iterator[None]:
    yield
    for path in home.iterdir():
        path.unlink()


@pytest.fixture
def submit(odcctl: Odcctl) -> Callable[..., str]:
    def submit_one(*argv: str) -> str:
        done = odcctl("submit", "--parsable", *argv)
        assert done.code == 0, done.err
        return done.out.strip()

    return submit_one


def _ok(done: Run) -> str:
    assert (done.code, done.err) == (0, "")
    return done.out


def test_a_job_is_submitted_waited_for_read_and_remembered(odcctl: Odcctl, home: Path) -> None:
    (home / "x.sh").write_text("#!/bin/sh\n#SBATCH -J golem\necho out $1; echo err >&2; exit 3\n")
    output = _ok(odcctl("submit", "x.sh", "an argument"))
    assert output.startswith("Submitted batch job ")
    job = output.split()[-1]
    assert odcctl("wait", job).code == 3
    assert _ok(odcctl("logs", job)) == "out an argument\nerr\n"
    assert (home / f"slurm-{job}.out").exists()
    shown = _ok(odcctl("show", job))
    assert "  name:       golem\n" in shown
    assert "  state:      FAILED (NonZeroExitCode)\n" in shown
    assert "  exit code:  3:0\n" in shown
    assert _ok(odcctl("show", job, "--script")) == (home / "x.sh").read_text()
    row = next(
        line for line in _ok(odcctl("history", "--since", "1h")).splitlines() if "golem" in line
    )
    assert row.split()[:2] == [job, "golem"]
    assert " 3:0 " in row
    kinds = [line.split("  ")[1] for line in _ok(odcctl("events", "--job", job)).splitlines()]
    assert kinds == ["submitted", "started", "ended"]


def test_a_job_that_could_not_start_says_why_in_every_command(
    odcctl: Odcctl, submit: Callable[..., str], home: Path
) -> None:
    job = submit("--output", "missing/out.txt", "--wrap", "echo never")
    warned = odcctl("submit", "--hold", "-e", "missing/%j/e", "-o", "gone/%j", "--wrap", "true")
    assert warned.err == (
        f"odcctl: warning: folder {home}/gone does not exist; the job fails if it does not exist "
        "when the job starts\n"
    )
    assert odcctl("cancel", warned.out.split()[-1]).code == 0
    waited = odcctl("wait", job)
    cause = f"cannot open the output file {home}/missing/out.txt: No such file or directory"
    assert (waited.code, waited.err) == (4, f"odcctl: job {job} is FAILED: {cause}\n")
    logs = odcctl("logs", job)
    assert logs.out == ""
    assert logs.err == (
        f"odcctl: job {job} is FAILED and wrote nothing to standard output: {cause}\n"
    )
    assert _ok(odcctl("why", job)) == f"job {job} is FAILED (JobLaunchFailure)\n  {cause}\n"
    array = submit("--array", "1-3", "--output", "missing/out.txt", "--wrap", "echo never")
    assert odcctl("wait", array).code == 4
    [_, *causes] = _ok(odcctl("why", array)).splitlines()
    assert causes == [f"  {array}_1 and 2 more: {cause}"]
    [row] = _ok(odcctl("history", "-j", job, "--no-header", "-o", "job,why")).splitlines()
    assert row.split(maxsplit=1) == [job, cause]
    ran = odcctl("run", "--quiet", "--chdir", "/nowhere", "true")
    assert ran.code == 4
    assert "is FAILED: " in ran.err
    assert "/nowhere" in ran.err


def test_logs_names_the_separate_file_of_standard_error(
    odcctl: Odcctl, submit: Callable[..., str], home: Path
) -> None:
    job = submit("--error", "err.txt", "--wrap", "echo oops >&2")
    assert odcctl("wait", job).code == 0
    assert odcctl("logs", job).err == (
        f"odcctl: job {job} is COMPLETED and wrote nothing to standard output\n"
        f"  Its standard error is in {home}/err.txt: odcctl logs {job} --stderr\n"
    )
    assert _ok(odcctl("logs", job, "--stderr")) == "oops\n"


def test_a_job_that_waits_says_why_and_can_be_changed(
    odcctl: Odcctl, submit: Callable[..., str]
) -> None:
    job = submit("--hold", "--gpus-per-node", "8", "-N", "2", "--wrap", "true")
    assert "JobHeldUser" in _ok(odcctl("queue", "-j", job, "--no-header"))
    assert "is PENDING (JobHeldUser)" in _ok(odcctl("why", job))
    _ok(odcctl("update", job, "--time", "1-00:30:00", "--begin", "now+1hour", "--comment", "later"))
    shown = json.loads(_ok(odcctl("show", job, "--json")))["jobs"][0]
    assert (shown["time_limit_s"], shown["comment"]) == (88200, "later")
    assert shown["begin_at"]
    _ok(odcctl("release", job))
    assert "(BeginTime)" in _ok(odcctl("show", job))
    assert odcctl("update", job, "--time", "soon").code == 1
    assert _ok(odcctl("hold", job)) == f"job {job} held\n"
    assert job in _ok(odcctl("queue", "--start", "--output", "quiet")).split()
    assert _ok(odcctl("cancel", job)) == f"job {job} cancelled\n"
    assert odcctl("wait", job).code == 4
    assert odcctl("release", job).code == 1


def test_an_array_is_one_row_while_it_waits_and_its_tasks_are_named(
    odcctl: Odcctl, submit: Callable[..., str]
) -> None:
    job = submit("--hold", "--array", "0-5%2", "--wrap", "exit $SLURM_ARRAY_TASK_ID")
    assert _ok(odcctl("queue", "-j", job, "--output", "quiet")) == f"{job}_[0-5%2]\n"
    assert odcctl("cancel", f"{job}_[3-5]").code == 0
    assert _ok(odcctl("queue", "-j", job, "--output", "quiet")) == f"{job}_[0-2%2]\n"
    _ok(odcctl("release", job))
    assert odcctl("wait", f"{job}_[0-2]").code == 2
    assert odcctl("wait", f"{job}_1").code == 1
    tasks = json.loads(_ok(odcctl("history", "-j", job, "--json")))["jobs"]
    assert {task["exit_code"] for task in tasks if task["state"] != "CANCELLED"} == {0, 1, 2}


def test_a_running_job_is_requeued_signalled_and_cancelled(
    odcctl: Odcctl, submit: Callable[..., str], daemon: Odc, home: Path
) -> None:
    # As with scancel, a signal is for what the batch shell started, not for the shell.
    trap = "trap 'exit 9' USR1; : > heeds.$SLURM_RESTART_COUNT; while :; do sleep 0.05; done"
    job = submit("--wrap", f'sh -c "{trap}"; exit $?')
    daemon.wait_for(int(job), "RUNNING")
    assert _ok(odcctl("requeue", job)) == f"job {job} requeueing\n"
    running = daemon.wait_for(int(job), "RUNNING")
    while running["restarts"] == 0:
        running = daemon.wait_for(int(job), "RUNNING")
    # It runs before its shell has begun, and the signal would end a shell without the trap.
    wait((home / "heeds.1").exists, daemon.log)
    assert _ok(odcctl("cancel", job, "--signal", "USR1")) == f"job {job} signalled\n"
    assert odcctl("wait", job).code == 9
    other = submit("--wrap", "sleep 1000")
    daemon.wait_for(int(other), "RUNNING")
    assert _ok(odcctl("cancel", "-n", "wrap", "-t", "R")) == f"job {other} cancelling\n"
    assert odcctl("wait", other).code == 143


def test_a_job_that_has_ended_is_submitted_again(
    odcctl: Odcctl, submit: Callable[..., str], environment: dict[str, str], home: Path
) -> None:
    script = home / "again.sh"
    script.write_text("#!/bin/sh\necho $COLOUR $1\nexit $(cat code)\n")
    (home / "code").write_text("5")
    environment["COLOUR"] = "red"
    job = submit("-o", "out-%j", str(script), "one")
    environment["COLOUR"] = "blue"
    assert odcctl("wait", job).code == 5
    script.unlink()
    (home / "code").write_text("0")
    refused = odcctl("requeue", job)
    assert (refused.code, "odcctl requeue --force" in refused.err) == (1, True), refused.err
    said = _ok(odcctl("requeue", "--force", job))
    new = said.split()[-1]
    assert said == f"job {job} submitted again as job {new}\n"
    why = f"job {job} is FAILED (NonZeroExitCode)\n  its script exited with code 5\n"
    assert _ok(odcctl("why", job)) == f"{why}  its output: odcctl logs {job}\n"
    assert odcctl("wait", new).code == 0
    assert (home / f"out-{new}").read_text() == "red one\n"
    [answer] = json.loads(_ok(odcctl("requeue", "--force", "--hold", job, "--json")))["jobs"]
    assert (answer["job_id"], answer["outcome"]) == (int(job), "submitted")
    held = str(answer["new_job_id"])
    refused = odcctl("requeue", "--force", held, "4000000")
    assert refused.code == 1
    assert f"job {held} not requeued" in refused.err
    assert "job 4000000 not requeued" in refused.err
    _ok(odcctl("cancel", held))


def test_a_task_keeps_the_name_that_was_typed(odcctl: Odcctl, submit: Callable[..., str]) -> None:
    array = submit("-a", "3-4", "-o", "/dev/null", "--wrap", "exit 7")
    assert odcctl("wait", array).code == 7
    assert _ok(odcctl("why", f"{array}_3")).startswith(f"job {array}_3 is FAILED")
    said = _ok(odcctl("requeue", "--force", f"{array}_3"))
    new = said.split()[-1]
    assert said == f"job {array}_3 submitted again as job {new}\n"
    assert odcctl("wait", new).code == 7


def test_run_is_the_command_itself(odcctl: Odcctl, home: Path) -> None:
    done = odcctl("run", "sh", "-c", "echo out; echo err >&2; exit 5")
    # A job that does not start within a second is reported, as on a busy machine.
    errors = [line for line in done.err.splitlines(True) if not WAITS.match(line)]
    assert (done.code, done.out, errors) == (5, "out\n", ["err\n"])
    assert odcctl("run", "sh", "-c", "kill -9 $$").code == 137
    gang = odcctl("run", "-N", "2", "--gpus-per-node", "1", "sh", "-c", "echo $SLURM_PROCID")
    assert sorted(gang.out.splitlines()) == ["0: 0", "1: 1"]
    assert list(home.glob("slurm-*.out")) == []


@pytest.mark.long
def test_run_with_a_terminal_can_be_left_and_taken_up_again(
    daemon: Odc, environment: dict[str, str], odcctl: Odcctl
) -> None:
    shell = Terminal(environment, "run", "--pty", "bash", "--norc", rows=31, cols=91)
    try:
        shell.until(b"Ctrl-] d detaches")
        shell.type(b"stty size; echo he''llo\n")
        assert b"31 91\r\n" in shell.until(b"hello\r\n")
        shell.type(b"\x1dd")
        shell.until(b"attach again with: odcctl attach ")
        assert shell.end() == 0
    finally:
        shell.close()
    job = _ok(odcctl("queue", "--output", "quiet")).strip()
    again = Terminal(environment, "attach", job)
    try:
        again.until(b"hello\r\n")  # The earlier content of the screen is shown again.
        again.type(b"exit 6\n")
        assert again.end() == 6
    finally:
        again.close()
    # Its node is its own until the daemon knows, too.
    assert odcctl("wait", job).code == 6


def test_nodes_are_shown_drained_and_resumed(odcctl: Odcctl) -> None:
    assert _ok(odcctl("nodes", "gpu-[01-02]", "--output", "quiet")) == "gpu-01\ngpu-02\n"
    _ok(odcctl("node", "drain", "gpu-[01-02]", "--reason", "new driver"))
    assert _ok(odcctl("nodes", "-t", "DRAIN", "--no-header")).count("new driver") == 2
    _ok(odcctl("node", "resume", "gpu-01,gpu-02"))
    assert _ok(odcctl("nodes", "-t", "DRAIN", "--no-header")) == ""


@pytest.mark.long
def test_a_dev_server_is_reserved_entered_extended_and_ended(
    odcctl: Odcctl, environment: dict[str, str]
) -> None:
    """CLI-17, CLI-18, CLI-23 to CLI-25, CLI-31, CLI-35, LIF-05."""
    made = odcctl("reserve", "-t", "H100", "-g", "2", "-h", "0.5", "-n", "my server", "--trace")
    assert made.code == 0, made.err
    job = made.out.split()[1]
    assert made.out.startswith(
        f"reservation {job} is active: 2 h100 GPUs\n  connect: odcctl connect"
    )
    assert job in _ok(odcctl("list", "--output", "quiet")).split()
    assert f"reservation {job}\n  status:    active\n" in _ok(odcctl("show", "my server"))
    shell = Terminal(environment, "connect", job)
    try:
        # Next comes the user's own login shell, which may take its time.
        shell.until(f"odc reservation {job} (my server)".encode())
        shell.type(b"\x1dd")
        assert b"continues until" in shell.until(b"Connect again: odcctl connect ")
        assert shell.end() == 0
    finally:
        shell.close()
    longer = odcctl("extend", job, "-h", "0.5")
    assert longer.out.startswith(f"reservation {job} extended: it expires ")
    again = odcctl("extend", job, "-h", "1")
    assert (again.code, again.out) == (1, "")
    assert "can be extended once" in again.err
    assert _ok(odcctl("edit", job, "--name", "other")) == f"reservation {job}: its name is other\n"
    assert " h100 " in _ok(odcctl("avail")).replace("\n", " ")
    assert "1 active" in _ok(odcctl("status"))
    shell = Terminal(environment, "connect", job)
    try:
        shell.until(f"odc reservation {job} (my server)".encode())
        assert odcctl("cancel", job).code == 0
        shell.until(f"odcctl: reservation {job}: ".encode())
        assert shell.end() >= 128
    finally:
        shell.close()
    odcctl("wait", job)
    over = odcctl("connect", job)
    assert (over.code, over.err.startswith("odcctl: not connected: reservation")) == (1, True)
    assert " has ended: " in over.err


def test_what_cannot_be_reserved_is_refused_with_what_can(odcctl: Odcctl) -> None:
    """CLI-12, CLI-54."""
    for options, message in (
        (["-t", "h1000"], 'GPU type "h1000" does not exist (OD005)'),
        (["-t", "h100", "-g", "12", "-d"], "not a multiple of 8"),
        (["-t", "h100", "-g", "16"], "16 h100 GPUs need 2 nodes, but --distributed was not given"),
        (["-t", "h100", "--jupyter"], "(OD016)"),
        # There is no such file, which is no matter here.
        (["--dockerfile", "/missing/Dockerfile"], "builds no images"),
    ):
        refused = odcctl("reserve", *options)
        assert (refused.code, refused.out) == (1, "")
        assert message in refused.err
    tested = odcctl("reserve", "-t", "h100", "-g", "16", "-d", "--test-only")
    assert (tested.code, tested.out) == (0, "")
    assert "would start" in tested.err


def test_the_guided_way_to_a_dev_server(environment: dict[str, str]) -> None:
    """CLI-02."""
    screen = Terminal(environment, "reserve", "--test-only")
    try:
        screen.until(b"Type [")
        screen.type(b"h100\r")
        screen.until(b"GPUs [1]: ")
        screen.type(b"\r")
        screen.until(b"[8]: ")
        screen.type(b"0.25\r")
        shown = screen.until(b"odcctl: the job would start ")
        assert screen.end() == 0
    finally:
        screen.close()
    assert b"odcctl reserve -t h100 -g 1 -h 0.25\r\n" in shown


def test_what_the_daemon_refuses_is_told_with_its_code(odcctl: Odcctl) -> None:
    refused = odcctl("submit", "-p", "h1000", "--wrap", "true")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(
        'odcctl: job not submitted: partition "h1000" does not exist (OD001)\n  '
    )
    assert odcctl("submit", "--bogus", "--wrap", "true").code == 1
    assert odcctl("show", "999999").err.startswith("odcctl: job 999999 does not exist (OD006)\n")
    assert odcctl("why", "999999").code == 1
    tested = odcctl("submit", "--test-only", "--wrap", "true")
    assert (tested.code, tested.out) == (0, "")
    assert "the job would start " in tested.err


def test_diag_help_and_completion_ask_the_daemon(odcctl: Odcctl) -> None:
    diag = _ok(odcctl("diag"))
    assert "leader\n  term: " in diag
    assert "--gpus-per-node" in _ok(odcctl("submit", "--help"))
    assert "--gpus-per-node" in _ok(odcctl("completion", "words", "--", "run", "--gpus-per-n"))


@pytest.mark.long
def test_a_followed_job_outlives_a_kill_of_the_daemon(
    daemon: Odc, environment: dict[str, str], home: Path, submit: Callable[..., str]
) -> None:
    job = submit("--wrap", "echo one; until [ -e go ]; do sleep 0.05; done; echo two; exit 4")
    daemon.wait_for(int(job), "RUNNING")

    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "odcctl", *arguments], env=environment, cwd=home, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    logs = start("logs", "-f", job)
    assert logs.stdout is not None
    assert logs.stdout.readline() == "one\n"
    looks = _looks_at_jobs(daemon)
    waiting = start("wait", job)
    # Only a daemon that was reached once is waited for.
    wait(lambda: _looks_at_jobs(daemon) > looks, daemon.log)
    pid = daemon.pid
    os.kill(pid, 9)
    wait(lambda: gone(pid), lambda: f"{pid} lives")
    daemon.up()
    (home / "go").touch()
    assert logs.communicate(timeout=60)[0] == "two\n"
    waiting.communicate(timeout=60)
    assert (logs.returncode, waiting.returncode) == (0, 4)


def _looks_at_jobs(daemon: Odc) -> float:
    """How many questions for one job were answered."""
    with daemon.asking("GET", "/metrics") as connection:
        text = connection.getresponse().read().decode()
    return sum(float(number) for number in LOOKS.findall(text))
