"""A dev server on a real node, and its storage."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.kubernetes.test_dev_servers import DevServerSite
from tests.support.harness.controlplane.children import wait_until
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.realnode import images
from tests.support.harness.controlplane.realnode.node import RealNodes
from tests.support.harness.stacks import Stack

pytestmark = pytest.mark.long

EVICTION_S = 120
"""kubelet measures pods every 10 s."""


@pytest.fixture
def site(stack: Stack, plane: ControlPlane, real_nodes: RealNodes) -> DevServerSite:
    if why := images.why_no_dev():
        pytest.skip(why)
    real_nodes.load(images.DEV, images.dev)
    return DevServerSite(stack, plane.api)


def ssh(site: DevServerSite, job_id: int, key: Path, command: str) -> str:
    """As users have it: through odcd and the API server. Its output and its exit code."""
    conf = site.stack("config", "ssh", str(job_id)).strip()
    done = subprocess.run(
        ["ssh", "-F", conf, "-i", key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
         f"odc-{job_id}", command],
        env=site.stack.odc.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    return f"{done.stdout}{done.returncode}" + (done.stderr if done.returncode == 255 else "")


def test_a_dev_server_is_used_over_ssh_until_it_exceeds_its_workspace(
    site: DevServerSite, ssh_key: Path
) -> None:
    """Everything here is real: the container, sshd, the port that kubelet forwards, the probe."""
    job_id = site.reserve(hours=1, gpus=2)
    site.until(job_id, "active")
    assert ssh(site, job_id, ssh_key, "id -un; pwd") == "dev\n/home/dev\n0"
    devices = ssh(site, job_id, ssh_key, "echo $NVIDIA_VISIBLE_DEVICES; exit 3")
    assert devices.count("gpu-") == 2
    assert devices.endswith("\n3")
    large = ssh(site, job_id, ssh_key, "head -c 3000000 /dev/zero | tr '\\0' x")
    assert large == "x" * 3_000_000 + "0"
    assert ssh(site, job_id, ssh_key, "fallocate -l 1100M /workspace/large") == "0"
    ended = ("failed", "FAILED")
    wait_until(
        lambda: site.show(job_id)["status"] in ended, "the dev server to be evicted", EVICTION_S
    )
    assert site.stack.job(job_id)["state"] == "FAILED"
    assert "exceeds the limit" in site.stack("show", str(job_id))
