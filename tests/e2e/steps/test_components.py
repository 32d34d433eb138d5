"""Heterogeneous jobs with a real daemon: one script, its components, and steps in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.slurm import HOLD, Slurm

pytestmark = pytest.mark.long
SCRIPT = """#!/bin/sh
#SBATCH --job-name=first --ntasks=1 --cpus-per-task=2 --gpus=1 --mem=100 --time=5
#SBATCH hetjob
#SBATCH --job-name=second --nodes=2 --ntasks-per-node=1 --gpus-per-node=4 --mem=100
echo "$SLURM_HET_SIZE $SLURM_JOB_ID $SLURM_JOB_NUM_NODES $SLURM_JOB_NODELIST $SLURM_NTASKS"
echo "$SLURM_JOB_NODELIST_HET_GROUP_1 $SLURM_JOB_NUM_NODES_HET_GROUP_1 $SLURM_NTASKS_HET_GROUP_1"
echo $((SLURM_JOB_ID_HET_GROUP_1 - SLURM_JOB_ID_HET_GROUP_0)) $SLURM_JOB_NAME_HET_GROUP_1
srun -l --het-group=0,1 sh -c 'echo $SLURM_PROCID $SLURM_NTASKS $SLURM_JOB_NAME $SLURM_GPUS_ON_NODE'
srun -l echo only
srun --output=a.out echo A : --output=b.%t.out --export=ALL,K=V sh -c 'echo $K'
"""


def submitted(slurm: Slurm, *argv: str) -> int:
    done = slurm.run("sbatch", "--parsable", *argv)
    assert done.returncode == 0, done.stderr
    slurm.job_id = int(done.stdout)
    return slurm.job_id


def rows(slurm: Slurm, *argv: str) -> list[str]:
    done = slurm.run(*argv)
    assert done.returncode == 0, done.stderr
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def test_a_script_sees_its_components_and_steps_run_in_them(slurm: Slurm, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(SCRIPT)
    job = submitted(slurm, f"--output={tmp_path}/out", f"--chdir={tmp_path}", str(script))
    slurm.odc.wait_for(job, "COMPLETED", "FAILED")
    lines = (tmp_path / "out").read_text().splitlines()
    node = lines[0].split()[3]
    assert lines[:3] == [f"2 {job} 1 {node} 1", "gpu[1-2] 2 2", "1 second"]
    assert sorted(lines[3:6]) == ["0: 0 3 first 1", "1: 1 3 second 4", "2: 2 3 second 4"]
    assert lines[6:] == ["0: only"]
    assert (tmp_path / "a.out").read_text() == "A\n"
    assert [(tmp_path / f"b.{task}.out").read_text() for task in (1, 2)] == ["V\n", "V\n"]
    found = rows(slurm, "sacct", "-n", "-j", str(job), "-o", "JobID,JobIDRaw,JobName,State,NNodes")
    assert found[0] == f"{job}+0 {job} first COMPLETED 1"
    assert found[-1] == f"{job}+1 {job + 1} second COMPLETED 2"
    assert f"{job}+0.0 {job}.0 sh COMPLETED 3" in found


@pytest.fixture
def held(slurm: Slurm) -> int:
    job = submitted(
        slurm, "--output=/dev/null", "-Jone", "-n1", "--mem=100", "--gpus=1", ":", "-n1", "-c4",
        "--mem=100", "--wrap", HOLD,
    )  # fmt: skip
    slurm.odc.wait_for(job, "RUNNING")
    return job


def test_tasks_see_the_gpus_of_their_own_component(slurm: Slurm, tmp_path: Path) -> None:
    """They got those of the script, which runs in the first component."""
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/sh\n#SBATCH --gpus-per-node=2 --mem=100\n#SBATCH hetjob\n"
        "#SBATCH --nodes=2 --gpus-per-node=3 --mem=100\n"
        "show='echo $CUDA_VISIBLE_DEVICES = $SLURM_STEP_GPUS'\n"
        'srun --het-group=0,1 sh -c "$show"\n'
        'CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES#*,} srun sh -c "$show"\n'
    )
    job = submitted(slurm, f"--output={tmp_path}/out", f"--chdir={tmp_path}", str(script))
    slurm.odc.wait_for(job, "COMPLETED", "FAILED")
    seen = [line.split(" = ") for line in (tmp_path / "out").read_text().splitlines()]
    assert [len(ids.split(",")) for ids, _ in seen[:3]].count(3) == 2
    assert all(ids == gpus for ids, gpus in seen[:3])
    # The script made them fewer.
    assert [gpus.split(",")[1:] == ids.split(",") for ids, gpus in seen[3:]] == [True]


def test_the_commands_show_each_component(slurm: Slurm, held: int) -> None:
    both = [f"{held}+0 R one 8", f"{held}+1 R one 4"]
    for named in ([], ["-j", str(held)]):
        assert sorted(rows(slurm, "squeue", "-h", "-o", "%i %t %j %C", *named)) == both
    assert rows(slurm, "squeue", "-h", "-o", "%i %A", "-j", f"{held}+1") == [
        f"{held}+1 {held + 1}"
    ]  # fmt: skip
    shown = slurm.run("scontrol", "show", "job", "-o", str(held)).stdout.splitlines()
    assert [line.split()[:4] for line in shown] == [
        [f"JobId={held + n}", f"HetJobId={held}", f"HetJobOffset={n}",
         f"HetJobIdSet={held}-{held + 1}"] for n in (0, 1)
    ]  # fmt: skip


def test_the_job_is_cancelled_as_a_whole(slurm: Slurm, held: int) -> None:
    done = slurm.run("scancel", f"{held}+1")
    assert (done.returncode, "cannot be cancelled alone" in done.stderr) == (1, True)
    assert slurm.run("scancel", str(held)).returncode == 0
    slurm.odc.wait_for(held, "CANCELLED")
    slurm.job_id = None
    states = rows(slurm, "squeue", "-h", "-t", "all", "-o", "%i %t", "-j", str(held))
    assert states == [f"{held}+0 CA", f"{held}+1 CA"]


def test_a_component_is_not_changed_alone(slurm: Slurm, held: int) -> None:
    """Before: `update jobid=123+1` changed the whole job, and 124 was an unknown job."""
    refused = (
        f"Operation not permitted on individual component of heterogeneous job for job {held}+1\n"
        f"scontrol: error: odc: the components of a job are changed together: name job {held}\n"
    )
    for argv in (
        ("update", f"jobid={held}+1", "comment=x"), ("update", f"JobId={held + 1}", "comment=x"),
        ("hold", f"{held + 1}"), ("requeue", f"{held}+1"),
    ):  # fmt: skip
        done = slurm.run("scontrol", *argv)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", refused)
    assert slurm.odc.job(held)["comment"] is None
    assert slurm.run("scontrol", "update", f"jobid={held}", "comment=x").returncode == 0
    assert slurm.odc.job(held)["comment"] == "x"


def test_steps_are_refused_in_components_that_do_not_exist(slurm: Slurm, held: int) -> None:
    done = slurm.run("srun", "--het-group=2", "true")
    assert done.returncode == 1
    assert "het group value of 2, but the job allocation has maximum value of 1" in done.stderr
    done = slurm.run("srun", "-n2", ":", "-n9", "true")
    assert (done.returncode, "More processors requested" in done.stderr) == (1, True)


def test_salloc_and_srun_make_allocations_of_several_components(slurm: Slurm) -> None:
    slurm.job_id = None
    done = slurm.run(
        "salloc", "-n1", "--mem=100", ":", "-n2", "--mem=100", "sh", "-c",
        "echo $SLURM_HET_SIZE; srun -l --het-group=0-1 echo task",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert (lines[0], sorted(lines[1:])) == ("2", ["0: task", "1: task", "2: task"])
    done = slurm.run(
        "srun", "-l", "-n1", "--mem=100", "echo", "a", ":", "-n2", "--mem=100", "echo", "b"
    )  # fmt: skip
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["0: a", "1: b", "2: b"])


@pytest.mark.parametrize(
    ("argv", "words"),
    [(["-n1", ":", "-n1", "--array=0-2", "--wrap=true"], "Invalid job array specification"),
     (["-n1", ":", "--gpus-per-node=99", "--wrap=true"], "Requested node configuration"),
     (["-n1", "--no-such", ":", "-n1", "--wrap=true"], "unrecognized option '--no-such'"),
     (["-n1", *[":", "-n1"] * 128, "--wrap=true"], "at most 128 components")],
)  # fmt: skip
def test_bad_requests_are_refused_as_a_whole(slurm: Slurm, argv: list[str], words: str) -> None:
    before = count(slurm)
    done = slurm.run("sbatch", *argv)
    assert done.returncode != 0
    assert words in done.stderr
    assert count(slurm) == before


def count(slurm: Slurm) -> Any:
    return slurm.odc.rows("select count(*) as n from odc.job")[0]["n"]


def test_a_preview_answers_for_all_components(slurm: Slurm) -> None:
    argv = ["--test-only", "-n1", "--gpus=8", "--mem=100", ":", "-n1", "--gpus=8", "--mem=100"]
    done = slurm.run("sbatch", *argv, "--wrap=true")
    assert done.returncode == 0
    job = slurm.odc.rows("select last_value from odc.job_id_seq")[0]["last_value"] + 1
    start = rf"sbatch: Job {job} to start at \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d"
    assert re.fullmatch(rf"{start} using \d+ processors on gpu\[1-2\]\n", done.stderr)


def test_the_id_of_a_component_names_it(slurm: Slurm, held: int) -> None:
    second = str(held + 1)
    assert rows(slurm, "squeue", "-h", "-o", "%i", "-j", second) == [f"{held}+1"]
    assert rows(slurm, "sacct", "-X", "-n", "-o", "JobID", "-j", second) == [f"{held}+1"]
    assert "HetJobOffset=1 " in slurm.run("scontrol", "show", "job", "-o", second).stdout
    done = slurm.run("scancel", second)
    assert (done.returncode, done.stderr) == (
        1,
        f"scancel: error: Kill job error on job id {held}+1: a component cannot be cancelled "
        f"alone; to cancel all of them: scancel {held}\n",
    )
    shown = slurm.odc.odcctl("show", second, check=False)
    assert (shown.returncode, f"name job {held}." in shown.stderr) == (1, True)
