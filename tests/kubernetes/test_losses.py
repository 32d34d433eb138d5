"""What the cluster does to a job is never reported as the job's own failure."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.test_faults import check
from tests.support.harness.controlplane.children import free_port
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes
from tests.support.harness.daemon import wait
from tests.support.harness.stacks import Stack, on_kubernetes

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("installed")]


@pytest.fixture
def stack(plane: ControlPlane, real_nodes: ProcessNodes, database_url: str) -> Iterator[Stack]:
    account: Path = plane.account_kubeconfig("gpu-controlplane", "odcd")
    with on_kubernetes(database_url, account, real_nodes.names, ODC_SCHEDULE_S="3") as made:
        yield made


def test_a_gang_that_loses_a_member_runs_again_even_if_another_member_fails_first(
    stack: Stack, plane: ControlPlane
) -> None:
    """Rank 1 is being ended by something other than odc and takes its time; rank 0 fails without
    it. Before: the gang had failed."""
    gate = free_port()
    script = (
        '[ "$ODC_ATTEMPT" = 1 ] || exit 0\n'
        "trap '' TERM\n"
        f"until [ \"$SLURM_NODEID\" = 0 ] && bash -c ': 3<>/dev/tcp/127.0.0.1/{gate}' 2>/dev/null\n"
        "do sleep 0.1; done\nexit 1"
    )
    job = stack.submit("-N", "2", "--launch=all", "--gpus-per-node", "1", script=script)
    stack.until(job, "RUNNING")
    path = f"/api/v1/namespaces/gpu-batch/pods/odc-{job}-1-1"
    plane.api.until(path, lambda pod: pod["status"]["phase"] == "Running")
    plane.api.delete(path, grace_s=15)
    query = f"select doomed_detail from odc.running where job_id = {job}"
    assert "other than odc" in wait(lambda: stack.value(query), stack.log)
    with socket.create_server(("127.0.0.1", gate)):
        ended = stack.end(job)
    assert (ended["state"], ended["restarts"]) == ("COMPLETED", 1), stack("show", str(job))
    assert "NODE_FAIL" in stack("events", "-j", str(job))
    check(stack, plane)


def test_a_node_that_does_not_accept_a_pod_is_left_out_for_a_while(
    stack: Stack, plane: ControlPlane, real_nodes: ProcessNodes
) -> None:
    """The scheduler counts pods, which odc does not."""
    first, second = real_nodes.names
    status = f"/api/v1/nodes/{first}/status"
    plane.api.patch(status, {"status": {"allocatable": {"pods": "0"}}})
    try:
        job = stack.submit("-w", first, "--gpus", "1", script="true")
        message = "Kubernetes did not schedule a pod there"
        # First it shows that the job waits for the inventory without the node.
        wait(lambda: message in stack("why", str(job)), lambda: stack("why", str(job)))
        assert "Too many pods" in stack("why", str(job))
        query = f"select state || ' ' || requeued from odc.attempt where job_id = {job}"
        assert stack.value(query) == "BOOT_FAIL true"
        other = stack.submit("--gpus", "8", script="true")
        assert stack.end(other)["node_names"] == [second]
    finally:
        plane.api.patch(status, {"status": {"allocatable": {"pods": "110"}}})
    stack("cancel", str(job))
    check(stack, plane)
