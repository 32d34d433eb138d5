"""dask-jobqueue: a SLURMCluster that grows and shrinks, and a SLURMRunner in one srun."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support.harness.slurm_commands import Commands, needs

pytestmark = [pytest.mark.long, needs("dask-jobqueue")]

CLUSTER = """
import json, subprocess
from dask.distributed import Client
from dask_jobqueue import SLURMCluster

def states():
    return subprocess.check_output(["squeue", "-h", "-n", "grows", "-o", "%T"], text=True).split()

with SLURMCluster(
    cores=1, processes=1, memory="300MB", walltime="00:05:00", job_name="grows",
    log_directory="dask", scheduler_options={"host": "127.0.0.1", "dashboard_address": None},
    nanny=False,
) as cluster, Client(cluster) as client:
    cluster.scale(2)
    client.wait_for_workers(2, timeout=90)
    grown = len(client.scheduler_info()["workers"])
    total = client.submit(sum, client.map(lambda x: x * x, range(10))).result(timeout=60)
    jobs = [job.job_id for job in cluster.workers.values()]
    cluster.scale(0)
    while states():
        pass
print(json.dumps({"grown": grown, "total": total, "jobs": jobs}))
"""
RUNNER = """
from dask.distributed import Client
from dask_jobqueue.slurm import SLURMRunner

with SLURMRunner(scheduler_file="scheduler-{job_id}.json", worker_options={"host": "127.0.0.1"},
                 scheduler_options={"host": "127.0.0.1", "dashboard": False}) as runner:
    with Client(runner) as client:
        client.wait_for_workers(runner.n_workers, timeout=90)
        print("workers", runner.n_workers, client.submit(sum, range(5)).result())
"""


def test_a_cluster_grows_by_jobs_and_shrinks(slurm: Commands) -> None:
    found = json.loads(slurm.run(sys.executable, "-c", CLUSTER).stdout)
    assert (found["grown"], found["total"]) == (2, 285)
    assert len(found["jobs"]) == 2
    for job in found["jobs"]:
        assert slurm.wait(job, "CANCELLED", "COMPLETED", "FAILED") != "FAILED"
        # The name of the log holds %J, the id of the job.
        assert (slurm.odc.work / "dask" / f"grows-{job}.err").exists()


def test_a_runner_makes_a_cluster_of_one_step(slurm: Commands) -> None:
    (slurm.odc.work / "runner.py").write_text(RUNNER)
    done = slurm.run(
        "srun", "-n4", "-N2", "--mem=1G", "-t5", sys.executable, "runner.py", code=None
    )
    assert done.stdout == "workers 2 10\n", done.stderr
