"""What happens to jobs when parts of a real node fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.harness.controlplane.children import wait_until
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.realnode.node import RealNodes
from tests.support.harness.daemon import wait
from tests.support.harness.stacks import Stack

pytestmark = pytest.mark.long

LATE_S = 150
"""Kubernetes must notice that a node is silent, and odc waits for its grace."""


def state_of(stack: Stack, node: str) -> str:
    return next(one["state"] for one in stack.json("nodes")["nodes"] if one["name"] == node)


def used_gpus(stack: Stack, node: str) -> int:
    return next(one["gpus_used"] for one in stack.json("nodes")["nodes"] if one["name"] == node)


def running(stack: Stack, *options: str, script: str) -> tuple[int, str]:
    """A job that has begun, and its node."""
    job = stack.submit(*options, script=f"echo up\n{script}")
    stack.wait_for_output(job, "up\n")
    return job, stack.job(job)["node_names"][0]


def test_jobs_continue_while_kubelet_and_containerd_restart(
    stack: Stack, real_nodes: RealNodes
) -> None:
    job, name = running(stack, "--gpus", "1", script="exec sleep 600")
    node = real_nodes[name]
    node.restart_kubelet()
    node.until_ready()
    node.restart_containerd()
    node.until_ready()
    # Starts, exits, output and exec work again.
    after = stack.submit("-w", name, "--gpus", "1", script="echo out; exit 3")
    assert stack.end(after)["exit_code"] == 3
    wait(lambda: stack("logs", str(after)) == "out\n", stack.log)
    stack("cancel", "--signal", "USR1", str(job))
    ended = stack.end(job)
    assert (ended["state"], ended["signal"], ended["restarts"]) == ("FAILED", 10, 0)


def test_a_node_whose_devices_are_not_offered_after_a_kubelet_restart_takes_no_jobs(
    stack: Stack, real_nodes: RealNodes
) -> None:
    node = real_nodes.nodes[0]
    node.plugin.kill()
    try:
        node.kubelet.restart()
        wait(lambda: "DRAIN" in state_of(stack, node.name), stack.log)
        assert "offers no GPUs" in stack("nodes", node.name)
        job = stack.submit("--gpus", "8", script="true")
        assert stack.end(job)["node_names"] == [real_nodes.names[1]]
    finally:
        node.plugin.start()
    wait(lambda: state_of(stack, node.name) == "IDLE", stack.log)


def test_a_gpu_that_becomes_unhealthy_is_not_allocated(stack: Stack, real_nodes: RealNodes) -> None:
    job, name = running(stack, "--gpus", "4", script="sleep 600")
    node = real_nodes[name]
    node.break_devices("gpu-7", "gpu-6")
    try:
        # Kubelet and the inventory need a moment to report it.
        wait(lambda: used_gpus(stack, name) == 6, stack.log)
        whole = stack.submit("-w", name, "--gpus", "4", script="true")
        part = stack.submit("-w", name, "--gpus", "2", script="true")
        assert stack.end(part)["state"] == "COMPLETED"
        assert stack.job(whole)["state"] == "PENDING"
    finally:
        node.break_devices()
    assert stack.end(whole)["state"] == "COMPLETED"
    assert stack.job(job)["state"] == "RUNNING"


def test_a_job_on_a_node_that_reboots_runs_again(stack: Stack, real_nodes: RealNodes) -> None:
    script = '[ "$ODC_ATTEMPT" = 2 ] || sleep 600'
    job, name = running(stack, "--gpus", "1", script=script)
    never, _ = running(stack, "-w", name, "--gpus", "1", "--no-requeue", script="sleep 600")
    real_nodes[name].reboot()
    ended = stack.end(job)
    assert (ended["state"], ended["restarts"]) == ("COMPLETED", 1), stack("show", str(job))
    assert stack.end(never)["state"] == "NODE_FAIL", stack("show", str(never))
    real_nodes.until_ready()


def test_a_job_on_a_node_without_power_runs_again_elsewhere(
    stack: Stack, plane: ControlPlane, real_nodes: RealNodes
) -> None:
    script = '[ "$ODC_ATTEMPT" = 2 ] || sleep 600'
    job, name = running(stack, "--gpus", "8", script=script)
    with off(real_nodes, name):
        wait_until(lambda: stack.job(job)["restarts"] == 1, "the job to be lost", LATE_S)
        ended = stack.end(job)
        assert ended["state"] == "COMPLETED", stack("show", str(job))
        assert ended["node_names"] != [name]
        assert state_of(stack, name) == "DOWN"
    wait(lambda: state_of(stack, name) == "IDLE", stack.log)
    after = stack.submit("-w", name, "--gpus", "8", script="true")
    assert stack.end(after)["state"] == "COMPLETED"


@contextmanager
def off(real_nodes: RealNodes, name: str) -> Iterator[None]:
    real_nodes[name].power_off()
    try:
        yield
    finally:
        real_nodes[name].start()
        real_nodes.until_ready()
