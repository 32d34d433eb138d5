"""Job steps with a real daemon and the local executor: tasks, files, input, allocations."""

from __future__ import annotations

import os
import pty
import select
import time
from pathlib import Path

from tests.support.harness.daemon import wait
from tests.support.harness.slurm import TIMEOUT_S, Slurm

# -- tasks ------------------------------------------------------------------------------------


def test_each_task_gets_its_place_its_gpus_and_its_label(two: Slurm) -> None:
    done = two.run(
        "srun", "-n4", "--gpus-per-task=2", "-l", "sh", "-c",
        "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME $SLURM_JOB_ID "
        "$SLURM_STEP_ID $SLURM_NTASKS $SLURM_STEP_NUM_NODES $SLURM_STEP_NODELIST "
        "$CUDA_VISIBLE_DEVICES",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    job = two.job_id
    assert sorted(done.stdout.splitlines()) == [
        f"0: 0 0 0 gpu1 {job} 0 4 2 gpu[1-2] 0,1",
        f"1: 1 1 0 gpu1 {job} 0 4 2 gpu[1-2] 2,3",
        f"2: 2 0 1 gpu2 {job} 0 4 2 gpu[1-2] 0,1",
        f"3: 3 1 1 gpu2 {job} 0 4 2 gpu[1-2] 2,3",
    ]


def test_the_highest_exit_code_is_that_of_srun_and_failures_are_named(two: Slurm) -> None:
    done = two.run("srun", "-n4", "sh", "-c", "exit $((SLURM_PROCID * 2))")
    assert done.returncode == 6
    lines = sorted(done.stderr.splitlines())
    assert lines == [
        "srun: error: gpu1: task 1: Exited with exit code 2",
        "srun: error: gpu2: task 2: Exited with exit code 4",
        "srun: error: gpu2: task 3: Exited with exit code 6",
    ]
    [step] = two.steps()
    assert (step["state"], step["exit_code"], step["tasks"]) == ("FAILED", 6, [2, 2])


def test_a_signal_counts_128_more(two: Slurm) -> None:
    done = two.run("srun", "-n1", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137
    assert done.stderr == "srun: error: gpu1: task 0: Killed\n"


def test_fewer_tasks_than_nodes_use_fewer_nodes(two: Slurm) -> None:
    done = two.run("srun", "-n1", "-N2", "sh", "-c", "echo $SLURM_STEP_NUM_NODES")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr == ("srun: warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n")
    assert two.run("srun", "-Q", "-n1", "-N2", "true").stderr == ""


def test_an_unknown_program_is_reported_as_slurm_does(two: Slurm) -> None:
    done = two.run("srun", "-n1", "no-such-program")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "slurmstepd-gpu1: error: execve(): no-such-program: No such file or directory",
        "srun: error: gpu1: task 0: Exited with exit code 2",
    ]


def test_only_the_job_id_is_needed(two: Slurm) -> None:
    """As a jobstep that removes all variables of Slurm but a few runs it."""
    done = two.run("srun", "-n1", "--cpu-bind=q", "--cpus-per-task=2", "--nodes=1", "sh", "-c",
                   "echo $SLURM_JOB_NODELIST $SLURM_CPUS_PER_TASK $SLURM_CPUS_ON_NODE")  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "gpu[1-2] 2 2\n", "")


def test_export_and_chdir(two: Slurm, tmp_path: Path) -> None:
    show = 'echo "${KEPT-none} ${ADDED-none} $PWD"'
    for options, line in (
        ((), "kept none"), (("--export=ALL,ADDED=x",), "kept x"), (("--export=ADDED=x",), "none x"),
    ):  # fmt: skip
        done = two.run("srun", "-n1", *options, "-D", str(tmp_path), "sh", "-c", show, KEPT="kept")
        assert done.stdout == f"{line} {tmp_path}\n", done.stderr


def test_multi_prog_gives_each_task_its_program(two: Slurm) -> None:
    (two.odc.work / "programs").write_text("# roles\n0 echo leads %t\n1-2 echo follows %t %o\n")
    done = two.run("srun", "-n3", "-l", "--multi-prog", "programs")
    assert sorted(done.stdout.splitlines()) == ["0: leads 0", "1: follows 1 0", "2: follows 2 1"]


def test_cpu_bind_binds_only_where_it_is_asked_for(two: Slurm) -> None:
    cpu = min(os.sched_getaffinity(0))
    show = ["python3", "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
    assert two.run("srun", "-n1", f"--cpu-bind=map_cpu:{cpu}", *show).stdout == f"[{cpu}]\n"
    assert two.run("srun", "-n1", *show).stdout == f"{sorted(os.sched_getaffinity(0))}\n"


# -- files and input --------------------------------------------------------------------------


def test_output_goes_to_the_named_files(two: Slurm) -> None:
    done = two.run("srun", "-n2", "-o", "%j.%s-%t-%n.out", "-e", "%A_all.err", "sh", "-c",
                   "echo out $SLURM_PROCID; echo err >&2")  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    job = two.job_id
    assert (two.odc.work / f"{job}.0-0-0.out").read_text() == "out 0\n"
    assert (two.odc.work / f"{job}.0-1-1.out").read_text() == "out 1\n"
    assert (two.odc.work / f"{job}_all.err").read_text() == "err\nerr\n"


def test_input_reaches_all_tasks_or_one(two: Slurm) -> None:
    text = "".join(f"line {n}\n" for n in range(50_000))
    done = two.run("srun", "-n2", "-l", "wc", "-lc", stdin=text)
    assert [line.split() for line in sorted(done.stdout.splitlines())] == [
        ["0:", "50000", str(len(text))], ["1:", "50000", str(len(text))],
    ]  # fmt: skip
    done = two.run("srun", "-n2", "-l", "-i1", "wc", "-c", stdin="abc")
    assert sorted(done.stdout.split()) == ["0", "0:", "1:", "3"]


def test_large_output_is_complete(two: Slurm) -> None:
    done = two.run("srun", "-n2", "sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' a")
    assert (done.returncode, len(done.stdout)) == (0, 40_000_000)
    assert set(done.stdout) == {"a"}


def test_a_terminal_is_given_where_asked_for(two: Slurm) -> None:
    pid, screen = pty.fork()
    if pid == 0:
        os.execvpe("srun", ["srun", "--pty", "sh"], two.environment())
    shown = b""

    def until(text: bytes) -> None:
        nonlocal shown
        deadline = time.monotonic() + TIMEOUT_S
        while text not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([screen], [], [], 1.0)[0]:
                shown += os.read(screen, 65536)

    until(b"# " if os.geteuid() == 0 else b"$ ")
    os.write(screen, b"test -t 0 && echo has a $((40 + 2)); exit 6\n")
    until(b"has a 42")
    while select.select([screen], [], [], 10.0)[0]:
        try:
            os.read(screen, 65536)
        except OSError:
            break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 6
    os.close(screen)


# -- outside of a job -------------------------------------------------------------------------


def test_srun_makes_its_own_allocation(slurm: Slurm) -> None:
    done = slurm.run("srun", "-n2", "-N2", "-l", "sh", "-c", "echo $SLURM_JOB_NODELIST")
    assert sorted(done.stdout.splitlines()) == ["0: gpu[1-2]", "1: gpu[1-2]"], done.stderr
    failed = slurm.run("srun", "-n1", "-J", "failing", "sh", "-c", "exit 3")
    assert failed.returncode == 3
    [row] = slurm.odc.rows("select id from odc.job where name = 'failing'")
    job = slurm.odc.wait_for(row["id"], "FAILED")
    assert job["exit_code"] == 3


def test_an_allocation_has_at_most_a_node_for_each_task(slurm: Slurm) -> None:
    warning = "warning: can't run 1 processes on 5 nodes, setting nnodes to 1"
    done = slurm.run("srun", "-n1", "-N5", "sh", "-c", "echo $SLURM_JOB_NUM_NODES")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert f"srun: {warning}" in done.stderr.splitlines()
    made = slurm.run("salloc", "-n1", "-N5", "sh", "-c", "echo $SLURM_JOB_NUM_NODES")
    assert (made.returncode, made.stdout) == (0, "1\n"), made.stderr
    assert f"salloc: {warning}" in made.stderr.splitlines()


def test_srun_outside_waits_for_resources_and_says_so(slurm: Slurm) -> None:
    slurm.hold("-N2", "--exclusive")
    holder_id, slurm.job_id = slurm.job_id, None
    waits = slurm.start("srun", "-n1", "echo", "ran")
    assert "queued and waiting for resources" in waits.stderr.readline()
    slurm.odc.odcctl("cancel", str(holder_id))
    out, err = waits.communicate(timeout=TIMEOUT_S)
    assert (out, waits.returncode) == ("ran\n", 0)
    assert "has been allocated resources" in err


def test_salloc_runs_a_command_on_its_nodes_and_releases_them(slurm: Slurm) -> None:
    done = slurm.run("salloc", "-N2", "-J", "alloc", "sh", "-c",
                     "echo $SLURM_JOB_NODELIST; srun -l true; exit 4")  # fmt: skip
    assert done.returncode == 4
    assert done.stdout == "gpu[1-2]\n"
    lines = done.stderr.splitlines()
    [row] = slurm.odc.rows("select id from odc.job where name = 'alloc'")
    assert f"salloc: Granted job allocation {row['id']}" in lines
    assert lines[-1] == f"salloc: Relinquishing job allocation {row['id']}"
    slurm.odc.wait_for(row["id"], "FAILED")


def test_salloc_without_a_shell_leaves_the_job(slurm: Slurm) -> None:
    done = slurm.run("salloc", "-n1", "--no-shell", "-J", "kept")
    assert done.returncode == 0, done.stderr
    [row] = slurm.odc.rows("select id from odc.job where name = 'kept'")
    slurm.job_id = row["id"]
    assert slurm.run("srun", "-n1", "echo", "in it").stdout == "in it\n"


def test_sattach_shows_the_output_of_a_running_step(two: Slurm, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    step = two.start("srun", "-n2", "sh", "-c", f"echo up; echo > {tmp_path}/$SLURM_PROCID; "
                     f"until [ -e {flag} ]; do sleep 0.02; done; echo end")  # fmt: skip
    for number in range(2):
        wait((tmp_path / str(number)).exists, lambda: "a task did not start")
    other = two.start("sattach", "-l", f"{two.job_id}.0")
    seen = sorted([other.stdout.readline(), other.stdout.readline()])
    assert seen == ["0: up\n", "1: up\n"]
    flag.touch()
    out, _ = other.communicate(timeout=TIMEOUT_S)
    assert sorted(out.splitlines()) == ["0: end", "1: end"]
    assert step.communicate(timeout=TIMEOUT_S)[0].count("end") == 2
    over = two.run("sattach", f"{two.job_id}.0")
    assert over.returncode == 1
