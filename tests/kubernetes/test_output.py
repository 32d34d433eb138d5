"""Output on Kubernetes: nothing is lost when kubelet rotates a log."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.controlplane.children import free_port
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes
from tests.support.harness.daemon import wait
from tests.support.harness.stacks import Stack, on_kubernetes

TEXT, LINES = "x" * 500, 25_000
"""More than one file of kubelet."""

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("installed")]


@pytest.fixture
def stack(plane: ControlPlane, real_nodes: ProcessNodes, database_url: str) -> Iterator[Stack]:
    account: Path = plane.account_kubeconfig("gpu-controlplane", "odcd")
    with on_kubernetes(database_url, account, real_nodes.names) as made:
        yield made


def test_output_of_several_files_of_kubelet_is_kept(stack: Stack) -> None:
    """Before: only what was written since kubelet had last rotated the log."""
    gate = free_port()
    wait_for = f"until bash -c ': 3<>/dev/tcp/127.0.0.1/{gate}' 2>/dev/null; do sleep 0.1; done"
    job = stack.submit(script=f"echo first\nseq -f '%07.0f {TEXT}' {LINES}\n{wait_for}\necho last")
    stack.until(job, "RUNNING")
    last = f"{LINES:07} {TEXT}"
    wait(lambda: last in stack("logs", str(job)), stack.log)
    assert stack("logs", str(job)).startswith("first\n"), "also while it runs"
    with socket.create_server(("127.0.0.1", gate)):
        assert stack.end(job)["state"] == "COMPLETED"
    kept = stack("logs", str(job))
    assert kept.startswith(f"first\n0000001 {TEXT}\n")
    assert kept.endswith(f"{last}\nlast\n")
    size = len("first\nlast\n") + LINES * len(f"{last}\n")
    [missing] = re.findall(r"\[odc: (\d+) bytes are not kept here\]", kept)
    mark = f"\n[odc: {missing} bytes are not kept here]\n"
    assert len(kept) - len(mark) + int(missing) == size, "it says exactly how much is missing"


def test_another_leader_continues_with_output_that_was_rotated_away(stack: Stack) -> None:
    """The first file is gone when the leader is killed."""
    gate = free_port()
    wait_for = f"until bash -c ': 3<>/dev/tcp/127.0.0.1/{gate}' 2>/dev/null; do sleep 0.1; done"
    job = stack.submit(script=f"echo first\nseq -f '%07.0f {TEXT}' {LINES}\n{wait_for}\necho last")
    stack.until(job, "RUNNING")
    query = f"select written > 12_400_000 from odc.kept_output where job_id = {job}"
    wait(lambda: stack.value(query), stack.log)
    stack.kill()
    stack.start()
    with socket.create_server(("127.0.0.1", gate)):
        assert stack.end(job)["state"] == "COMPLETED"
    kept = stack("logs", str(job))
    assert kept.startswith(f"first\n0000001 {TEXT}\n")
    assert kept.endswith(f"{LINES:07} {TEXT}\nlast\n")
    assert "may be missing" not in kept
