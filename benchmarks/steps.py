"""Job steps, whole processes of srun on an idle allocation: python -m benchmarks.steps [--write].

The calls run as in a batch script: one process after the other, which finds its job by its id.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from benchmarks.daemon import Daemon, job, running
from benchmarks.figures import Figure, times_ms
from benchmarks.report import report
from benchmarks.results import STEPS

RUNS = 50
SEQUENCE = 100
TASKS = 200


def measure() -> list[Figure]:
    with running("gpu1=h100:8x192") as daemon, daemon.client() as client:
        holds = job(daemon, name="holds", script="#!/bin/sh\nexec sleep 100000\n", gpus=8)
        job_id = client.call("POST", "/v1/jobs", holds | {"cpus_per_task": 192})["id"]
        daemon.wait_for(client, RUNNING=1)
        one = times_ms(lambda: run(daemon, job_id, "srun", "-n1", "true"), RUNS)
        begun = time.monotonic()
        srun = daemon.home / "slurm" / "srun"
        loop = f"i=0; while [ $i -lt {SEQUENCE} ]; do {srun} -n1 true; i=$((i+1)); done"
        run(daemon, job_id, "/bin/sh", "-c", loop)
        rate = SEQUENCE / (time.monotonic() - begun)
        many = times_ms(lambda: run(daemon, job_id, "srun", "-O", f"-n{TASKS}", "true"), 10)
    return [
        Figure("`srun -n1 true` on an idle allocation, whole process", one, "ms", 60,
               note="two transactions, and three processes: srun, the supervisor, the task"),
        Figure(f"one of {SEQUENCE} steps in sequence from one job", [1000 / rate], "ms", 20,
               note="a loop of the shell; the target is 50 steps per second"),
        Figure(f"`srun -n{TASKS} true`, whole process", many, "ms", 1000,
               note="until all tasks have ended"),
    ]  # fmt: skip


def run(daemon: Daemon, job_id: int, name: str, *arguments: str) -> None:
    program = name if name.startswith("/") else daemon.home / "slurm" / name
    done = subprocess.run(
        [program, *arguments], env=daemon.environment | {"SLURM_JOB_ID": str(job_id)},
        cwd=daemon.work, capture_output=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{name} {arguments} failed: {done.stderr.decode()}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps", description=__doc__)
    setting = "srun's whole process is measured."
    return report(parser, STEPS, setting, lambda _: measure())


if __name__ == "__main__":
    sys.exit(main())
