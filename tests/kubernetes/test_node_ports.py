"""SSH into dev servers through a port of their nodes, if an operator enables that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odcd.executor.kubernetes.node_ports import service_of
from tests.kubernetes.test_dev_servers import IMAGE, DevServerSite, a_github, open_folder
from tests.support.builders.dispatches import a_dispatch_of
from tests.support.builders.manifests import FOLDER, Manifest, apply, render
from tests.support.builders.pods import changed
from tests.support.fakes.github import ED25519
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.daemon import wait
from tests.support.harness.database import TestServer
from tests.support.harness.kube import ODCD, Kube, as_list
from tests.support.harness.stacks import on_kubernetes

__all__ = ["open_folder"]

pytestmark = pytest.mark.long

SERVICES = "/api/v1/namespaces/gpu-dev/services"
WITH = ("odcd-node-ports", "odc-services", "ssh-by-node-ports")
STRANGE: dict[str, tuple[str, object, str]] = {
    "another port": ("spec/ports/0/targetPort", 8888, "port 2222"),
    "a balancer": ("spec/type", "LoadBalancer", "NodePort"),
    "through other nodes": ("spec/externalTrafficPolicy", "Cluster", "Local"),
    "another's address": ("spec/externalIPs", ["10.0.0.1"], "NodePort"),
    "all pods": ("spec/selector", {"app.kubernetes.io/managed-by": "odcd"}, "pods of that attempt"),
    "another's name": ("metadata/name", "gpu-dev-headless", "is named"),
    "nobody's": ("metadata/ownerReferences", [], "goes with it"),
}


@pytest.fixture(scope="module")
def with_ports(installed: Kube, kubectl: Path) -> Iterator[Kube]:
    """The objects that the component adds to the installed ones."""
    made = render(kubectl, FOLDER / "overlays" / "node-ports")
    added = [one for one in made if one["metadata"]["name"] in WITH]
    assert len(added) == 5
    quota = [one for one in made if one["kind"] == "ResourceQuota"]
    apply(installed, [*added, *quota])
    wait(
        lambda: "port 2222" in installed.as_user(ODCD).refusal(_strange()),
        lambda: "the policy never came into force",
    )
    yield installed
    installed.do("delete", "--ignore-not-found", "-f", "-", given=as_list(added))


def a_service() -> Manifest:
    dispatch, _ = a_dispatch_of(kind="reservation", job_id=7)
    return service_of(dispatch, "gpu-dev", "0c1cbf25-0000-4000-8000-000000000000")


def _strange() -> Manifest:
    return changed(a_service(), "spec/ports/0/targetPort", 22)


def test_only_services_of_dev_servers_are_admitted(with_ports: Kube) -> None:
    """ACC-05, ACC-06"""
    odcd = with_ports.as_user(ODCD)
    assert odcd.refusal(a_service()) == ""
    assert "nodePort" not in str(a_service()), "the API server picks it"
    for what, (path, value, refusal) in STRANGE.items():
        assert refusal in odcd.refusal(changed(a_service(), path, value)), what
    assert odcd.can("create services --namespace=gpu-dev")
    assert not odcd.can("create services --namespace=gpu-batch")
    assert not odcd.can("delete services --namespace=gpu-dev")


def test_a_dev_server_is_reachable_on_the_node_port_that_the_api_server_assigned(
    with_ports: Kube, shared_plane: ControlPlane, postgres_server: TestServer,
    nodes: Callable[..., list[str]], open_folder: Path,
) -> None:  # fmt: skip
    """ACC-05, ACC-06, POD-10: one service for all its members, owned by their first pod; other pods
    are not included."""
    names = nodes(h100=2)
    api = shared_plane.api
    for at, name in enumerate(names):
        addresses = [{"type": "InternalIP", "address": f"10.9.0.{at}"}]
        api.patch(f"/api/v1/nodes/{name}/status", {"status": {"addresses": addresses}})
    dsn = postgres_server.clone()
    template = open_folder / "template.yaml"
    template.write_text("annotations: {test.odc.dev/waiting: ContainerCreating}\n")
    settings: dict[str, Any] = {
        "ODC_DEV_IMAGE": IMAGE, "ODC_POD_TEMPLATE": str(template), "ODC_NODE_PORTS": "on",
    }  # fmt: skip
    try:
        kubeconfig = shared_plane.account_kubeconfig("gpu-controlplane", "odcd")
        with (
            a_github(ED25519) as url,
            on_kubernetes(dsn, kubeconfig, names, ODC_GITHUB_URL=url, **settings) as stack,
        ):
            site = DevServerSite(stack, api)
            job_id = site.reserve(gpus=16, distributed=True)
            for rank in (0, 1):
                site.run(site.pod(job_id, rank))
            reservation = site.until(job_id, "active")
            service = api.get(f"{SERVICES}/odc-{job_id}-1-ssh")
            [port] = service["spec"]["ports"]
            assert 30_000 <= port["nodePort"] <= 32_767
            assert service["spec"]["externalTrafficPolicy"] == "Local"
            first, second = site.pods(job_id)
            [owner] = service["metadata"]["ownerReferences"]
            assert (owner["name"], owner["uid"]) == (
                first["metadata"]["name"], first["metadata"]["uid"],
            )  # fmt: skip
            for pod in (first, second):
                assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
            by_node = {name: f"10.9.0.{at}" for at, name in enumerate(names)}
            assert reservation["ssh_addresses"] == [
                f"{by_node[pod['spec']['nodeName']]}:{port['nodePort']}" for pod in (first, second)
            ]
            address, _, number = reservation["ssh_addresses"][0].partition(":")
            assert f"ssh dev@{address} -p {number}" in stack("show", str(job_id))
            stack("cancel", "--all", check=False)
            wait(lambda: not stack.json("queue")["jobs"], stack.log)
            wait(lambda: f"odc-{job_id}-1-ssh" not in _names(site), stack.log)
    finally:
        postgres_server.drop(dsn)


def _names(site: DevServerSite) -> set[str]:
    return {one["metadata"]["name"] for one in site.api.items(SERVICES)}
