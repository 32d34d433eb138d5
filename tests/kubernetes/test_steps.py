"""Job steps in pods: four nodes that run their containers as processes, and a real API server."""

from __future__ import annotations

import re
import signal

import pytest

from tests.support.harness.pod_steps import TIMEOUT_S, Steps
from tests.support.harness.signals import OF_THE_C_LIBRARY
from tests.support.harness.stacks import UID

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("installed")]


def test_four_pods_get_their_places_and_labels(four: Steps) -> None:
    done = four.srun(
        "-n4", "-l", "sh", "-c",
        "echo $(hostname) $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS $SLURM_STEP_ID "
        "$SLURM_JOB_ID $SLURM_STEP_NODELIST",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done
    hosts = f"odc-{four.job}-1-[0-3]"
    assert sorted(done.stdout.splitlines()) == [
        f"{n}: {four.pod(n)} {n} 0 {n} 4 0 {four.job} {hosts}" for n in range(4)
    ]
    assert four.last("state || ' ' || exit_code") == "COMPLETED 0"


def test_gpus_and_variables_are_those_of_the_task(four: Steps) -> None:
    """The device plugin numbers a pod's GPUs from 0."""
    done = four.srun(
        "-N2", "-n4", "--gpus-per-task=1", "-l", "sh", "-c",
        'echo "$SLURM_NODEID $SLURM_LOCALID $CUDA_VISIBLE_DEVICES $KEPT $MASTER_PORT $(id -u)"',
        KEPT="it's kept", PATH_OF="x",
    )  # fmt: skip
    assert done.returncode == 0, done
    assert sorted(done.stdout.splitlines()) == [
        f"{n}: {n // 2} {n % 2} {n % 2} it's kept 29500 {UID}" for n in range(4)
    ]
    done = four.srun("-n1", "sh", "-c", 'echo "${CUDA_VISIBLE_DEVICES-unset}"')
    assert done.stdout == "unset\n"


def test_the_highest_exit_code_counts_and_failures_are_named(four: Steps) -> None:
    done = four.srun("-n4", "sh", "-c", "[ $SLURM_PROCID != 3 ] || kill -9 $$; exit $SLURM_PROCID")
    assert done.returncode == 137
    assert sorted(done.stderr.splitlines()) == [
        f"srun: error: {four.pod(1)}: task 1: Exited with exit code 1",
        f"srun: error: {four.pod(2)}: task 2: Exited with exit code 2",
        f"srun: error: {four.pod(3)}: task 3: Killed",
    ]
    done = four.srun("-n1", "no-such-program")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"slurmstepd-{four.pod(0)}: error: execve(): no-such-program: No such file or directory",
        f"srun: error: {four.pod(0)}: task 0: Exited with exit code 2",
    ]


def test_output_goes_to_files_in_the_pods(four: Steps) -> None:
    done = four.srun("-n4", "-D", "/tmp", "-o", "%j.%s-%t-%n.out", "-e", "all.err", "sh", "-c",
                     "echo out $SLURM_PROCID; echo err >&2")  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for n in range(4):
        written = four.in_pod(n, f"cat /tmp/{four.job}.0-{n}-{n}.out /tmp/all.err")
        assert written == f"out {n}\nerr\n"
    done = four.srun("-n1", "-o", "/nowhere/x", "true")
    assert done.returncode == 1
    assert "Could not open stdout file /nowhere/x" in done.stderr


def test_input_reaches_all_tasks_or_one(four: Steps) -> None:
    text = "".join(f"line {n}\n" for n in range(50_000))
    done = four.srun("-n4", "-l", "wc", "-lc", stdin=text)
    assert [line.split() for line in sorted(done.stdout.splitlines())] == [
        [f"{n}:", "50000", str(len(text))] for n in range(4)
    ]
    done = four.srun("-n4", "-l", "-i2", "wc", "-c", stdin="abc")
    assert sorted(done.stdout.split()) == sorted(["0:", "0", "1:", "0", "2:", "3", "3:", "0"])


def test_large_output_is_complete_and_in_order(four: Steps) -> None:
    done = four.srun("-n4", "sh", "-c", "seq -f '%07.0f' 1500000; echo last >&2")
    assert (done.returncode, done.stderr) == (0, "last\n" * 4)
    assert len(done.stdout) == 4 * 8 * 1_500_000
    done = four.srun("-n1", "seq", "-f", "%07.0f", "2000000")
    assert done.stdout == "".join(f"{n:07}\n" for n in range(1, 2_000_001))


def test_signals_reach_all_tasks(four: Steps) -> None:
    script = "trap 'echo got; exit 0' USR1; echo up; while :; do sleep 0.1; done"
    step = four.start("srun", "-n4", "-l", "sh", "-c", script)
    lines = [step.stdout.readline() for _ in range(4)]
    step.send_signal(signal.SIGUSR1)
    out, err = step.communicate(timeout=TIMEOUT_S)
    assert sorted(lines) == [f"{n}: up\n" for n in range(4)]
    assert sorted(out.splitlines()) == [f"{n}: got" for n in range(4)], err
    assert step.returncode == 0


def test_interrupts_are_not_ignored_by_tasks(four: Steps) -> None:
    """Shells start commands in the background with INT and QUIT ignored."""
    done = four.srun("-n1", "grep", "SigIgn", "/proc/self/status")
    assert int(done.stdout.split()[1], 16) & ~OF_THE_C_LIBRARY == 0


def test_a_step_is_cancelled_by_its_id(four: Steps) -> None:
    step = four.start("srun", "-n4", "sh", "-c", "echo up; exec sleep 1000")
    for _ in range(4):
        assert step.stdout.readline() == "up\n"
    assert f"{four.job}.0" in four.run("squeue", "-s", "-j", str(four.job)).stdout
    assert f"StepId={four.job}.0" in four.run("scontrol", "show", "step", f"{four.job}.0").stdout
    assert four.run("scancel", f"{four.job}.0").returncode == 0
    _, err = step.communicate(timeout=TIMEOUT_S)
    assert step.returncode == 143, err
    assert re.search(rf"\*\*\* STEP {four.job}\.0 ON odc-\S+ CANCELLED AT ", err)
    assert four.last("state") == "CANCELLED"
    shown = four.run("sacct", "-n", "-P", "-o", "JobID,State", "-j", f"{four.job}.0").stdout
    assert shown == f"{four.job}.0|CANCELLED\n"


def test_a_bad_exit_ends_the_others_if_asked_to(four: Steps) -> None:
    done = four.srun("-n4", "-K", "sh", "-c", "[ $SLURM_PROCID != 2 ] || exit 3; exec sleep 1000")
    assert done.returncode == 143, done
    assert f"srun: error: {four.pod(2)}: task 2: Exited with exit code 3\n" in done.stderr
    assert f"srun: Terminating StepId={four.job}.0\n" in done.stderr
    assert four.last("state") == "FAILED"


def test_a_time_limit_and_a_wait_end_the_step(four: Steps) -> None:
    done = four.srun("-n4", "--wait=1", "sh", "-c", "[ $SLURM_PROCID = 0 ] || exec sleep 1000")
    assert "srun: First task exited 1s ago\n" in done.stderr
    assert done.returncode == 143
    done = four.srun("-n2", "--time=0:02", "sleep", "1000")
    assert done.returncode == 143
    assert "DUE TO TIME LIMIT" in done.stderr
    assert four.last("state") == "TIMEOUT"


def test_nothing_of_a_step_is_left_when_it_is_over(four: Steps) -> None:
    """Also a process with a session of its own, whose parent is gone and which ignores TERM."""
    done = four.srun(
        "-n4", "sh", "-c",
        "setsid sh -c 'trap \"\" TERM; echo $$ >/tmp/left; while :; do sleep 0.1; done' & "
        "until [ -s /tmp/left ]; do sleep 0.05; done",
    )  # fmt: skip
    assert done.returncode == 0, done
    for n in range(4):
        left = four.in_pod(n, "read pid </tmp/left; cat /proc/$pid/stat || true")
        assert not left or ") Z " in left


def test_bad_requests_are_refused_in_slurms_words(four: Steps) -> None:
    for argv, words in (
        (("-n9",), "More processors requested than permitted"),
        (("-N5",), "Only allocated 4 nodes asked for 5"),
        (("-n1", "--gpus-per-task=3"), "Invalid generic resource (gres) specification"),
        (("-n1", "-w", "elsewhere"), "Requested node configuration is not available"),
        (("-n1", "--pty"), "srun --pty is not available on Kubernetes"),
    ):
        done = four.srun(*argv, "true")
        assert (done.returncode, done.stdout) == (1, "")
        assert words in done.stderr, done.stderr
    before = four.stack.value("select max(id) from odc.job")
    done = four.srun("--pty", "bash", SLURM_JOB_ID="")
    assert (done.returncode, done.stdout) == (1, "")
    assert "srun --pty is not available on Kubernetes. For a shell" in done.stderr
    assert four.stack.value("select max(id) from odc.job") == before, "it waited for nodes first"
    token = four.stack.odc.odcd("token", "bob", "--uid", "5002", "--dsn", four.stack.dsn)
    other = four.srun("-n1", "true", ODC_TOKEN=token.stdout.strip())
    assert other.returncode == 1
    assert "Access/permission denied" in other.stderr


def test_a_node_of_a_step_is_named_by_its_pod(four: Steps) -> None:
    done = four.srun("-N1", "-n1", "-w", four.pod(2), "hostname")
    assert done.stdout == f"{four.pod(2)}\n", done.stderr
