"""Two real nodes, a control plane of their own, and one odcd, for all tests of this folder."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.test_dev_servers import a_github
from tests.support.harness.controlplane.build import NoBinaries, binaries
from tests.support.harness.controlplane.nodes import many_nodes
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.realnode import cgroups, images, needs
from tests.support.harness.controlplane.realnode.node import PROGRAMS, RealNodes
from tests.support.harness.database import TestServer
from tests.support.harness.served import ACCOUNT, install
from tests.support.harness.stacks import Stack, on_kubernetes

NODE_GRACE_S = 20
"""How long a node may be silent until Kubernetes reports it. Nodes send a heartbeat every 2 s."""
LOG_SIZE = "100Ki"


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Not the one of the other tests: it reports lost nodes sooner."""
    if why := needs.why_not():
        pytest.skip(why)
    try:
        binaries(PROGRAMS)
        made = ControlPlane(tmp_path_factory.mktemp("plane"), node_grace_s=NODE_GRACE_S)
    except NoBinaries as why:
        pytest.skip(str(why))
    with made:
        install(made)
        yield made


@pytest.fixture(scope="session")
def real_nodes(plane: ControlPlane) -> Iterator[RealNodes]:
    """Two nodes of h100: kubelet, containerd and runc. A test leaves them as it found them."""
    settings = {"containerLogMaxSize": LOG_SIZE, "containerLogMonitorInterval": "3s"}
    before = _kernel_settings()
    with RealNodes(plane, many_nodes(h100=2), settings) as made:
        yield made
    assert _kernel_settings() == before
    assert not cgroups.left()


def _kernel_settings() -> dict[str, str]:
    """Those of this machine that kubelet and network plugins write."""
    names = (
        "kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "vm/panic_on_oom",
        "net/ipv4/ip_forward",
    )  # fmt: skip
    return {name: Path("/proc/sys", name).read_text() for name in names}


@pytest.fixture(scope="session")
def ssh_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The private key of every user of GitHub."""
    path = tmp_path_factory.mktemp("ssh") / "key"
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path]
    subprocess.run(made, check=True)
    return path


@pytest.fixture(scope="session")
def _stack(
    plane: ControlPlane, real_nodes: RealNodes, postgres_server: TestServer, ssh_key: Path
) -> Iterator[Stack]:
    dsn = postgres_server.clone()
    account: Path = plane.account_kubeconfig(*ACCOUNT)
    public = ssh_key.with_suffix(".pub").read_text().strip()
    with (
        a_github(public) as url,
        on_kubernetes(
            dsn, account, real_nodes.names,
            ODC_IMAGE=images.BOX, ODC_DEV_IMAGE=images.DEV, ODC_NODE_GRACE_S="3",
            ODC_DENIED_S="2", ODC_WORKSPACE_GIB="1", ODC_LOOK_S="1", ODC_GITHUB_URL=url,
        ) as made,
    ):  # fmt: skip
        yield made
    postgres_server.drop(dsn)


@pytest.fixture
def stack(_stack: Stack, real_nodes: RealNodes) -> Iterator[Stack]:
    """One odcd for all tests; each begins with both nodes free."""
    real_nodes.until_ready()
    yield _stack
    _stack("cancel", "--all", check=False)
