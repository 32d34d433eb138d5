"""Snakemake with its Slurm executor; inside the jobs its jobstep plugin, which runs srun."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.harness.slurm_commands import Commands, needs

pytestmark = [pytest.mark.long, needs("snakemake", "snakemake-executor-plugin-slurm")]

WORKFLOW = """
rule all:
    input: "all.txt"

rule part:
    output: "part-{n}.txt"
    threads: 2
    resources: runtime=5, mem_mb=300
    shell: "echo {wildcards.n} > {output}"

rule join:
    input: expand("part-{n}.txt", n=[1, 2])
    output: "all.txt"
    threads: 2
    resources: runtime=5, mem_mb=300
    shell: "cat {input} > {output}; echo step $SLURM_STEP_ID $SLURM_CPUS_PER_TASK >> {output}"
"""
FAILS = """
rule fails:
    output: "never.txt"
    resources: runtime=5, mem_mb=300
    shell: "exit 3"
"""


def snakemake(slurm: Commands, folder: Path, workflow: str, *options: str, code: int) -> str:
    """Standard error. Each job starts Snakemake twice, so it takes a while."""
    folder.mkdir()
    (folder / "Snakefile").write_text(workflow)
    done = slurm.run(
        sys.executable, "-m", "snakemake", "--executor", "slurm", "--jobs", "4",
        "--directory", str(folder), "--snakefile", str(folder / "Snakefile"),
        "--slurm-init-seconds-before-status-checks", "2", *options, code=code, timeout_s=240,
    )  # fmt: skip
    return done.stderr


def test_a_workflow_of_an_array_and_a_job_makes_its_files(slurm: Commands) -> None:
    folder = slurm.odc.work / "workflow"
    snakemake(slurm, folder, WORKFLOW, "--slurm-array-jobs=part", code=0)
    assert (folder / "all.txt").read_text() == "1\n2\nstep 0 2\n"
    ids = slurm.out("sacct", "-X", "-n", "-P", "-o", "JobID,Comment").splitlines()
    arrays = [line for line in ids if "part" in line]
    assert len(arrays) == 2, ids
    assert all("_" in line.partition("|")[0] for line in arrays)


def test_a_failed_job_fails_the_workflow(slurm: Commands) -> None:
    folder = slurm.odc.work / "fails"
    stderr = snakemake(slurm, folder, FAILS, code=1)
    assert "FAILED" in stderr
    assert not (folder / "never.txt").exists()
