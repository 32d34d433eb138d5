"""No srun makes the order for its tasks large: the runner, which has one thread, reads it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from odcd.errors import BadRequest
from odcd.executor.kubernetes.steps.order import text_of
from odcd.executor.step_tasks import StepOrder
from odcd.executor.steps import MAX_CHARS, encode_step
from odcd.records.dispatch import Member
from odcd.records.step import PlacedNode, Placement
from odcd.runner import protocol
from odcd.slurm.commands.srun import parse_srun
from tests.support.builders.dispatches import a_dispatch_of, a_member

MIB = 1024 * 1024


def _ids(member: Member) -> tuple[int, ...]:
    return member.gpu_indexes


def encoded(
    *argv: str, tasks: tuple[int, ...], environment: dict[str, str] | None = None, **changes: Any
) -> dict[str, Any]:
    """The order of a step with so many tasks on each node of its job."""
    environment = environment or {}
    members = tuple(a_member(rank) for rank in range(len(tasks)))
    dispatch, _ = a_dispatch_of(members=members, **changes)
    nodes = tuple(
        PlacedNode(rank=m.rank, node=m.node, tasks=n, cpus=4, gpu_indexes=())
        for m, n in zip(members, tasks, strict=True)
    )
    placement = Placement(
        job_id=dispatch.job_id, attempt=1, step=0, state="RUNNING", exit_code=None, nodes=nodes
    )
    order = StepOrder(
        dispatch=dispatch, placement=placement, environment=environment, work_dir="/tmp",
        call=parse_srun(argv, {"SLURM_JOB_ID": "1", **environment}, lambda _: ""), umask=0o022,
    )  # fmt: skip
    return encode_step(order, cluster="odc", master_addr="127.0.0.1", gpu_ids_of=_ids, cpus=())


def test_a_pattern_of_an_output_file_is_expanded_no_further_than_a_path() -> None:
    """Before: one call of srun with 200 KB of patterns took 2 GB of the daemon's memory."""
    tracemalloc.start()
    try:
        with pytest.raises(BadRequest, match="too long"):
            encoded("--output=" + "%x" * 20_000, "-J", "y" * 5_000, "true", tasks=(1,))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB


def test_variables_of_components_are_sent_once_for_each_node() -> None:
    """Before: once for each task. One call of srun with 200 KB of variables and 1,000 tasks stopped
    all requests for twelve seconds."""
    environment = {f"V{n}": "x" * 1000 for n in range(200)}
    order = encoded(
        "--export=NONE", "-n1", "true", ":", "--export=ALL", "-n1000", "true",
        tasks=(1, 1000), environment=environment, component_nodes=(1, 1),
    )  # fmt: skip
    assert order["node_env"]["1"]["V7"] == "x" * 1000
    assert "V7" not in order["node_env"]["0"]
    assert len(protocol.encode_part(order)) < MIB


def test_variables_of_components_on_many_nodes_are_limited() -> None:
    environment = {"V": "x" * (MAX_CHARS // 20)}
    with pytest.raises(BadRequest, match="on all nodes together"):
        encoded(
            "--export=NONE", "-n1", "true", ":", "--export=ALL", "-n30", "true",
            tasks=(1,) * 31, environment=environment, component_nodes=(1, 30),
        )  # fmt: skip


def test_many_small_variables_of_components_are_limited_before_they_take_memory() -> None:
    """Before: only their characters counted, after all were made. One call of srun with 20,000
    empty variables and 128 components stopped all requests for almost six seconds, and one with
    90,000 took half a gigabyte of the daemon's memory."""
    environment = {f"{n:x}": "" for n in range(20_000)}
    tracemalloc.start()
    try:
        with pytest.raises(BadRequest, match="on all nodes together"):
            encoded(
                "--het-group=0", "--export=NONE", "true", ":",
                "--het-group=1-127", "--export=ALL", "true",
                tasks=(1,) * 128, environment=environment, component_nodes=(1,) * 128,
            )  # fmt: skip
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * MIB


def test_the_order_for_ten_thousand_tasks_is_small() -> None:
    """Before: 7 MB. Six such calls of srun delayed the jobs of others by nine seconds."""
    order = encoded("-n10000", "true", tasks=(10_000,))
    assert len(protocol.encode_part(order)) < 2 * MIB


def test_the_paths_of_tasks_are_limited_together() -> None:
    folder = "/".join(["d" * 200] * 19)
    with pytest.raises(BadRequest, match="characters together"):
        encoded("-n10000", f"--output={folder}/%t", "true", tasks=(10_000,))


def test_a_pod_gets_each_program_once() -> None:
    """Before: once for each task."""
    order = encoded("-n2000", "echo", "x" * 10_000, tasks=(2000,))
    text = text_of(order, (1, 1, 0), 0, other_dir="/", old=())
    assert text.count("x" * 10_000) == 1
