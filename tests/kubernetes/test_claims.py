"""Volumes and claims of dev servers on a real API server: published, used, withdrawn; no others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from odcd.errors import RunnerDown
from odcd.executor.kubernetes.claims import Claims, disk_claim, personal_claim
from odcd.executor.kubernetes.cluster import Cluster as Connection
from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.pods import PodSettings, pod_of
from odcd.records.dispatch import DiskUse, Dispatch
from tests.support.builders.dispatches import a_dispatch_of, a_member
from tests.support.builders.pods import DEV_SERVER, SMALL, changed
from tests.support.harness.controlplane.api import Api, Manifest, Refused
from tests.support.harness.controlplane.children import wait_until
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.kube import Kube

pytestmark = pytest.mark.long

VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/gpu-dev/persistentvolumeclaims"
PODS = "/api/v1/namespaces/gpu-dev/pods"
EBS = "vol-0123456789abcdef0"
ZONE = "us-east-2a"

Ask = Callable[[Claims], Awaitable[Any]]


class Site:
    """Claims as odcd creates them, and the existing objects."""

    def __init__(self, plane: ControlPlane) -> None:
        self.api: Api = plane.api
        self._config = plane.account_kubeconfig("gpu-controlplane", "odcd")

    def ask(self, act: Ask) -> Any:
        async def once() -> Any:
            cluster = await Connection.connect(self._config)
            try:
                return await act(Claims(cluster, "gpu-dev"))
            finally:
                await cluster.close()

        return asyncio.run(once())

    def publish(self, volume: int = 12, cloud_id: str = EBS, zone: str = ZONE) -> None:
        self.ask(lambda claims: claims.publish(volume, cloud_id, zone, 100))

    def until_withdrawn(self, volume: int = 12) -> None:
        wait_until(
            lambda: self.ask(lambda claims: claims.withdraw(volume)), f"{volume} to be withdrawn"
        )

    def until_bound(self, name: str) -> Manifest:
        self.api.until(f"{CLAIMS}/{name}", lambda claim: claim["status"]["phase"] == "Bound")
        return self.api.until(
            f"{VOLUMES}/{name}", lambda volume: volume["status"]["phase"] == "Bound"
        )

    def names(self, path: str) -> list[str]:
        return sorted(one["metadata"]["name"] for one in self.api.items(path))

    def until_ready(self, pod: str) -> Manifest:
        return self.api.until(
            f"{PODS}/{pod}",
            lambda pod: {"type": "Ready", "status": "True"}.items()
            <= {key: value for one in pod["status"].get("conditions", [])
                if one["type"] == "Ready" for key, value in one.items()}.items(),
        )  # fmt: skip


@pytest.fixture
def site(shared_plane: ControlPlane, installed: Kube) -> Iterator[Site]:
    made = Site(shared_plane)
    yield made
    for path in (PODS, CLAIMS, VOLUMES):
        for name in made.names(path):
            with suppress(Refused):
                made.api.delete(f"{path}/{name}", grace_s=0)
    wait_until(lambda: not made.names(CLAIMS) + made.names(VOLUMES), "claims and volumes to go")


def a_dev_server(site: Site, node: str, **fields: Any) -> str:
    """The name of a dev server's pod, made as odcd does, by the administrator's hand."""
    member = a_member(node=node, gpu_indexes=(0,), cpus=4, mem_mib=1024, virtual=False)
    dispatch: Dispatch
    dispatch, _ = a_dispatch_of(
        kind="reservation", ask={}, members=(member,), job_id=7, user="alice", **fields
    )
    offers = {node: NodeOffer(gpus=8, efa=0, hugepages_mib=0)}
    pod = pod_of(dispatch, member, {}, offers, PodSettings(dev_image="x/dev:1"))
    site.ask(lambda claims: claims._cluster.post(PODS, pod))  # pyright: ignore[reportPrivateUsage]
    return pod["metadata"]["name"]


DISK = DiskUse(claim=disk_claim(12), name="main", first=True)


def test_a_volume_and_its_claim_are_bound_only_to_each_other(site: Site) -> None:
    """By the id that the cloud gave, in the zone where it is; nothing of a class."""
    for _ in range(2):
        site.publish()
        volume = site.until_bound("odc-volume-12")
    assert volume["spec"]["csi"] == {
        "driver": "ebs.csi.aws.com", "volumeHandle": EBS, "fsType": "ext4",
    }  # fmt: skip
    [term] = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == [ZONE]
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "odcd"
    site.until_withdrawn()
    assert site.names(CLAIMS) == site.names(VOLUMES) == []
    assert site.ask(lambda claims: claims.withdraw(12)), "once more is fine"


def test_a_pod_waits_for_its_disk_and_keeps_it_while_it_is_there(
    site: Site, nodes: Callable[..., list[str]]
) -> None:
    """The pod is created while the volume is; the volume cannot be removed before the pod is
    gone."""
    [node] = nodes(h100=1)
    pod = a_dev_server(site, node, disk=DISK)
    waits = site.api.until(
        f"{PODS}/{pod}",
        lambda pod: any(
            "odc-volume-12" in one.get("message", "") for one in pod["status"].get("conditions", [])
        ),
    )
    assert "nodeName" not in waits["spec"]
    site.publish()
    ready = site.until_ready(pod)
    assert ready["spec"]["nodeName"] == node
    assert not site.ask(lambda claims: claims.withdraw(12)), "a pod has it"
    assert site.api.get(f"{CLAIMS}/odc-volume-12")["metadata"]["deletionTimestamp"]
    with pytest.raises(RunnerDown, match="another volume"):
        site.publish()
    site.api.delete(f"{PODS}/{pod}", grace_s=0)
    site.until_withdrawn()
    site.publish()
    site.until_bound("odc-volume-12")


def test_a_pod_with_a_disk_in_another_zone_stays_unscheduled(
    site: Site, nodes: Callable[..., list[str]]
) -> None:
    """The plan chooses the zone, and the volume is made there; else the pod would never run."""
    [node] = nodes(h100=1)
    pod = a_dev_server(site, node, disk=DISK)
    site.publish(zone="us-east-2b")
    unscheduled = site.api.until(
        f"{PODS}/{pod}",
        lambda pod: any(
            "node affinity" in one.get("message", "") for one in pod["status"].get("conditions", [])
        ),
    )
    assert "nodeName" not in unscheduled["spec"]


def test_personal_storage_is_for_all_pods_of_its_user(
    site: Site, nodes: Callable[..., list[str]]
) -> None:
    """On all nodes at once, independent of disks."""
    claim = personal_claim(1081)
    for _ in range(2):
        site.ask(lambda claims: claims.publish_personal(1081, "fs-0123abcd", "fsap-0456cdef"))
    volume = site.until_bound(claim)
    assert volume["spec"]["csi"] == {
        "driver": "efs.csi.aws.com", "volumeHandle": "fs-0123abcd::fsap-0456cdef",
    }  # fmt: skip
    assert volume["spec"]["accessModes"] == ["ReadWriteMany"]
    first, second = nodes(h100=2)
    pods = [
        a_dev_server(site, first, personal=claim),
        a_dev_server(site, second, personal=claim, attempt=2),
    ]
    for pod in pods:
        site.until_ready(pod)
        site.api.delete(f"{PODS}/{pod}", grace_s=0)
    wait_until(
        lambda: site.ask(lambda claims: claims.withdraw_personal(1081)), "it to be withdrawn"
    )


def test_a_stale_volume_of_the_same_name_is_replaced(site: Site) -> None:
    """After a restore of the database, numbers are reused: no user gets the data of another."""
    site.publish(cloud_id="vol-0aaaaaaaaaaaaaaaa")
    with pytest.raises(RunnerDown, match="another volume"):
        site.publish()

    def published() -> bool:
        try:
            site.publish()
        except RunnerDown:
            return False
        return True

    wait_until(published, "the old one to go")
    assert site.until_bound("odc-volume-12")["spec"]["csi"]["volumeHandle"] == EBS
    # A disk whose claim was deleted by another user stays bound to that one forever.
    site.api.delete(f"{CLAIMS}/odc-volume-12")
    wait_until(published, "the released one to go")
    site.until_bound("odc-volume-12")


# -- what odcd may make -------------------------------------------------------------------------


def a_volume(**changes: object) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": "odc-volume-12",
            "labels": {
                "app.kubernetes.io/managed-by": "odcd", "app.kubernetes.io/component": "disk",
            },
        },
        "spec": {
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": EBS, "fsType": "ext4"},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "claimRef": {"name": "odc-volume-12", "namespace": "gpu-dev"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [ZONE]}]}]}},
        },
    }  # fmt: skip
    for path, value in changes.items():
        made = changed(made, path.replace("__", "/"), value)
    return made


def a_claim() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {**a_volume()["metadata"], "namespace": "gpu-dev"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "100Gi"}},
            "storageClassName": "",
            "volumeName": "odc-volume-12",
        },
    }


NODES_FOLDER = {"path": "/", "type": "Directory"}
STRANGE: dict[str, tuple[str, object, str]] = {
    "another name": ("metadata/name", "data", "are called"),
    "not labelled": ("metadata/labels/app.kubernetes.io~1managed-by", None, "labelled"),
    "another driver": ("spec/csi/driver", "nfs.csi.k8s.io", "one EBS volume"),
    "no volume of EBS": ("spec/csi/volumeHandle", "vol-1/../x", "one EBS volume"),
    "for many": ("spec/accessModes", ["ReadWriteMany"], "one EBS volume"),
    "anywhere": ("spec/nodeAffinity", None, "one EBS volume"),
    "another file system": ("spec/csi/fsType", "xfs", "one EBS volume"),
    "attributes": ("spec/csi/volumeAttributes", {"path": "/"}, "no attributes"),
    "a secret": ("spec/csi/nodeStageSecretRef", {"name": "s", "namespace": "gpu-dev"}, "secrets"),
    "mount options": ("spec/mountOptions", ["suid"], "mount options"),
    "for another namespace": ("spec/claimRef/namespace", "kube-system", "for the claim"),
    "for another claim": ("spec/claimRef/name", "data", "for the claim"),
    "for anybody": ("spec/claimRef", None, "for the claim"),
    "deletes data": ("spec/persistentVolumeReclaimPolicy", "Delete", "Retain"),
    "of a class": ("spec/storageClassName", "gp3", "storage class"),
}


@pytest.mark.parametrize("how", STRANGE)
def test_a_volume_that_differs_is_refused_with_the_reason(odcd: Kube, how: str) -> None:
    path, value, reason = STRANGE[how]
    assert odcd.refusal(a_volume()) == ""
    assert reason in odcd.refusal(changed(a_volume(), path, value))


def test_odcd_cannot_create_a_host_path_volume(odcd: Kube) -> None:
    folder = changed(changed(a_volume(), "spec/csi", None), "spec/hostPath", NODES_FOLDER)
    assert "one EBS volume" in odcd.refusal(folder)
    local = changed(changed(a_volume(), "spec/csi", None), "spec/local", {"path": "/"})
    assert "one EBS volume" in odcd.refusal(local)


STRANGE_CLAIMS: dict[str, tuple[str, object, str]] = {
    "another name": ("metadata/name", "data", "are called"),
    "not labelled": ("metadata/labels", None, "labelled"),
    "another volume": ("spec/volumeName", "somebodys", "volume of its name"),
    "any volume": ("spec/volumeName", None, "volume of its name"),
    "of a class": ("spec/storageClassName", "gp3", "storage class"),
    "of the default class": ("spec/storageClassName", None, "storage class"),
    "a copy": (
        "spec/dataSource", {"kind": "PersistentVolumeClaim", "name": "data"}, "no source",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", STRANGE_CLAIMS)
def test_a_claim_that_differs_is_refused_with_the_reason(odcd: Kube, how: str) -> None:
    path, value, reason = STRANGE_CLAIMS[how]
    assert odcd.refusal(a_claim()) == ""
    assert reason in odcd.refusal(changed(a_claim(), path, value))


def test_only_odcd_can_create_claims_with_its_names(installed: Kube) -> None:
    assert "made by odcd alone" in installed.refusal(a_claim())
    assert installed.refusal(changed(a_claim(), "metadata/name", "data")) == ""


def test_odcd_deletes_no_claim_and_no_volume_of_others(site: Site, odcd: Kube) -> None:
    others = changed(changed(a_claim(), "metadata/name", "data"), "metadata/labels", None)
    site.api.create(others)
    volume = changed(a_volume(), "metadata/name", "data-volume")
    site.api.create(changed(volume, "spec/claimRef/name", "data"))
    for kind in ("persistentvolumeclaim/data", "persistentvolume/data-volume"):
        done = odcd.run("delete", "--wait=false", kind, "--namespace=gpu-dev")
        assert "are called" in done.stderr, done


def test_a_job_has_no_disk_and_a_dev_server_has(odcd: Kube) -> None:
    """Of odcd's own volumes; volumes of a site's pod template are for jobs, too."""
    claim = {"name": "home", "persistentVolumeClaim": {"claimName": "odc-volume-12"}}
    assert odcd.refusal(changed(DEV_SERVER, "spec/volumes/2", claim)) == ""
    assert "volumes are" in odcd.refusal(changed(SMALL, "spec/volumes/2", claim))


def test_no_pod_has_an_fsgroup(odcd: Kube) -> None:
    """POD-11, BUG-27: kubelet would walk through the whole disk before the pod runs."""
    assert "fsGroup" in odcd.refusal(changed(DEV_SERVER, "spec/securityContext/fsGroup", 1081))
