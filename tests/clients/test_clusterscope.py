"""clusterscope: facts about cluster and partitions, and about the job that asks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.slurm_commands import Commands, needs

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default"), needs("clusterscope")]


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    """It keeps what it learned in one file of the machine."""
    from clusterscope.cache import CACHE_PATH

    Path(CACHE_PATH).unlink(missing_ok=True)
    yield
    Path(CACHE_PATH).unlink(missing_ok=True)


def test_it_finds_partitions_and_their_nodes(slurm: Commands) -> None:
    from clusterscope.cluster_info import UnifiedInfo
    from clusterscope.slurm.partition import get_partition_info

    partition = slurm.out("sinfo", "-h", "-o", "%P").split()[0].rstrip("*")
    found = {one.name: one for one in get_partition_info()}
    assert found[partition].max_gpus_per_node == 8
    assert found[partition].max_cpus_per_node > 0
    info: Any = UnifiedInfo(partition=partition)
    config = slurm.out("scontrol", "show", "config")
    assert f"= {info.get_cluster_name()}\n" in config
    assert info.get_slurm_version() == slurm.out("sinfo", "-V").split()[1]
    assert {one.partition for one in info.get_cpus_per_node()} == {partition}
    assert all(one.mem_total_MB > 0 for one in info.get_mem_per_node_MB())
    [gpus] = info.get_gpu_generation_and_count()
    assert (gpus.gpu_gen, gpus.gpu_count, gpus.vendor) == ("h100", 8, "nvidia")


def test_it_computes_what_a_task_gets(slurm: Commands) -> None:
    partition = slurm.out("sinfo", "-h", "-o", "%P").split()[0].rstrip("*")
    import clusterscope

    shape = clusterscope.job_gen_task_slurm(partition=partition, gpus_per_task=4)
    assert (shape["gpus_per_task"], shape["slurm_partition"]) == (4, partition)
    assert shape["cpus_per_task"] > 0


def test_a_task_learns_its_place(slurm: Commands) -> None:
    script = (
        "import clusterscope; j = clusterscope.get_job(); print(j.get_job_id(), j.get_job_name(), "
        "j.get_global_rank(), j.get_world_size(), j.get_master_addr())"
    )
    done = slurm.run("srun", "-n2", "-N2", "-J", "place", sys.executable, "-c", script)
    lines = sorted(line.split() for line in done.stdout.splitlines())
    job = lines[0][0]
    assert [line[:4] for line in lines] == [[job, "place", str(rank), "2"] for rank in range(2)]
    # The address is that of odc: MASTER_ADDR is set in each job.
    assert len({line[4] for line in lines}) == 1
