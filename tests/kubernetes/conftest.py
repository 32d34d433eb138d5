"""One control plane for all tests that ask for one: those are long, and run on one worker."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.builders.manifests import FOLDER, applicable, apply
from tests.support.builders.pods import SMALL
from tests.support.harness.controlplane import build
from tests.support.harness.controlplane.api import Api, Manifest, Refused
from tests.support.harness.controlplane.build import NoBinaries
from tests.support.harness.controlplane.children import wait_until
from tests.support.harness.controlplane.kwok import Kwok
from tests.support.harness.controlplane.nodes import a_node, delete_nodes, many_nodes, until_ready
from tests.support.harness.controlplane.plane import Cluster, ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes, why_not
from tests.support.harness.database import TestServer
from tests.support.harness.kube import ODCD, Kube, as_list
from tests.support.harness.pod_steps import Steps
from tests.support.harness.stacks import Stack, on_kubernetes

_HERE = Path(__file__).parent
PATIENCE_S = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        # kubectl may have to be built.
        if ("kubectl" in fixtures or "cluster" in fixtures) and _HERE in item.path.parents:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster that KUBECONFIG_TEST names, or else a control plane of our own."""
    if given := os.environ.get("KUBECONFIG_TEST"):
        found = Cluster(Path(given))
        yield found
        found.close()
        return
    try:
        plane = ControlPlane(tmp_path_factory.mktemp("plane"))
    except NoBinaries as why:
        pytest.skip(str(why))
    with plane:
        yield plane


@pytest.fixture(scope="session")
def shared_plane(cluster: Cluster) -> ControlPlane:
    if not isinstance(cluster, ControlPlane):
        pytest.skip("stops and breaks the control plane, so KUBECONFIG_TEST will not do")
    return cluster


@pytest.fixture
def plane(shared_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane of our own, which a test may kill and pause; whole again afterwards."""
    shared_plane.mend()
    yield shared_plane
    shared_plane.mend()


@pytest.fixture
def api(cluster: Cluster) -> Api:
    """Requests as the cluster's administrator."""
    return cluster.api


@pytest.fixture(scope="session")
def kwok(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kwok]:
    """Plays the kubelet of every node of nodes.py; the nodes are for each test to make."""
    try:
        made = Kwok(cluster, tmp_path_factory.mktemp("kwok"))
    except NoBinaries as why:
        pytest.skip(str(why))
    with made:
        yield made


@pytest.fixture
def namespace(cluster: Cluster, api: Api) -> Iterator[str]:
    """A namespace of the test's own, removed with all in it."""
    cluster.mend()
    made = api.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}}
    )
    name: str = made["metadata"]["name"]
    api.until(f"/api/v1/namespaces/{name}/serviceaccounts/default", lambda _: True)
    yield name
    cluster.mend()
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def nodes(cluster: Cluster, api: Api, kwok: Kwok) -> Iterator[Callable[..., list[str]]]:
    """Makes nodes of KWOK, `nodes(h100=4, cpu_x86=1)`, and returns their names when all are ready.

    They go at the end, with every pod that is on them.
    """
    made: list[str] = []
    cluster.mend()

    def make(**counts: int) -> list[str]:
        new = [one["metadata"]["name"] for one in api.create_all(many_nodes(**counts))]
        made.extend(new)
        until_ready(api, new)
        return new

    yield make
    cluster.mend()
    delete_nodes(api, made)


@pytest.fixture(scope="session")
def kubectl() -> Path:
    try:
        return build.kubectl()
    except NoBinaries as why:
        pytest.skip(str(why))


@pytest.fixture
def kube(cluster: Cluster, kubectl: Path) -> Kube:
    """kubectl as the cluster's administrator."""
    return Kube(kubectl=kubectl, kubeconfig=cluster.admin, api=cluster.api)


@pytest.fixture(scope="module")
def installed(cluster: Cluster, kubectl: Path) -> Iterator[Kube]:
    """With the production overlay applied and its policies in force; gone after the file."""
    kube = Kube(kubectl=kubectl, kubeconfig=cluster.admin, api=cluster.api)
    manifests = applicable(kubectl, FOLDER / "overlays" / "production")
    apply(kube, manifests)
    _until_in_force(cluster.api)
    until = time.monotonic() + PATIENCE_S
    while "only odcd" not in kube.refusal(SMALL) or kube.as_user(ODCD).refusal(SMALL):
        assert time.monotonic() < until, "the admission policies never came into force"
        time.sleep(0.2)
    yield kube
    given = as_list([each for each in manifests if each["kind"] != "Namespace"])
    kube.do("delete", "--wait=false", "--ignore-not-found", "-f", "-", given=given)


def _until_in_force(api: Api) -> None:
    """The API server applies policies some time after they are written, and all at once: when the
    one written last works, all work."""
    name = f"test-{secrets.token_hex(4)}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    group = "admissionregistration.k8s.io/v1"
    policy: Manifest = {
        "apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule | {"operations": ["CREATE"]}]},
            "validations": [{"expression": f"object.metadata.name != '{name}'", "message": name}],
        },
    }  # fmt: skip
    binding: Manifest = {
        "apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }  # fmt: skip
    refused: Manifest = {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
    }  # fmt: skip

    def in_force() -> bool:
        try:
            api.create(refused, dryRun="All")
        except Refused as refusal:
            return name in refusal.message
        return False

    for one in (policy, binding):
        api.create(one)
    wait_until(in_force, "the admission policies to come into force", PATIENCE_S)
    for one in (binding, policy):
        api.delete(api.path_of(one))


@pytest.fixture
def odcd(installed: Kube) -> Kube:
    return installed.as_user(ODCD)


@pytest.fixture
def processes(shared_plane: ControlPlane, tmp_path: Path) -> Iterator[Callable[..., ProcessNodes]]:
    """Makes nodes that really run their pods, `processes(h100=2)`; they go at the end."""
    if why := why_not():
        pytest.skip(why)
    made: list[ProcessNodes] = []

    def make(**counts: int) -> ProcessNodes:
        nodes = many_nodes(**counts)
        for node in nodes:
            node["metadata"]["name"] = f"real-{node['metadata']['name']}"
        found = ProcessNodes(shared_plane, tmp_path / f"kubelet-{len(made)}", nodes)
        made.append(found)
        found.start()
        return found

    yield make
    shared_plane.mend()
    for one in made:
        one.kill()
        delete_nodes(shared_plane.api, one.names)


@pytest.fixture(scope="module")
def real_nodes(
    shared_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessNodes]:
    """Two nodes of h100 that really run their pods, for all tests of a file."""
    if why := why_not():
        pytest.skip(why)
    nodes = many_nodes(h100=2)
    with ProcessNodes(shared_plane, tmp_path_factory.mktemp("kubelet"), nodes) as made:
        yield made
    delete_nodes(shared_plane.api, made.names)


@pytest.fixture(scope="module")
def zoned_nodes(
    shared_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessNodes]:
    """One in each of two zones that really run their pods; folders stand for volumes."""
    if why := why_not():
        pytest.skip(why)
    nodes = [a_node("h100", f"real-{zone}", zone=zone) for zone in ("us-east-2a", "us-east-2b")]
    folder = tmp_path_factory.mktemp("kubelet")
    with ProcessNodes(shared_plane, folder, nodes, volumes=folder / "bytes") as made:
        made.volumes.mkdir()
        yield made
    delete_nodes(shared_plane.api, made.names)


@pytest.fixture(scope="module")
def four_nodes(
    shared_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessNodes]:
    if why := why_not():
        pytest.skip(why)
    with ProcessNodes(shared_plane, tmp_path_factory.mktemp("kubelet"), many_nodes(h100=4)) as made:
        yield made
    delete_nodes(shared_plane.api, made.names)


@pytest.fixture(scope="module")
def steps_stack(
    installed: Kube, shared_plane: ControlPlane, postgres_server: TestServer,
    four_nodes: ProcessNodes,
) -> Iterator[Stack]:  # fmt: skip
    with ExitStack() as undo:
        dsn = postgres_server.clone()
        undo.callback(postgres_server.drop, dsn)
        account: Path = shared_plane.account_kubeconfig("gpu-controlplane", "odcd")
        yield undo.enter_context(on_kubernetes(dsn, account, four_nodes.names))


@pytest.fixture
def four(steps_stack: Stack, odcd: Kube, tmp_path: Path) -> Iterator[Steps]:
    made = Steps(steps_stack, tmp_path / "bin", odcd)
    made.hold()
    yield made
    steps_stack("cancel", str(made.job), check=False)
    steps_stack.end(made.job)
