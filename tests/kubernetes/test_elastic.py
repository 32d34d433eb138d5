"""Elastic groups from end to end: the planner, the Auto Scaling of moto, and nodes that join and
leave a real control plane."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from odcd.executor.kubernetes.elastic_nodes import KEY
from tests.odcd.disks.conftest import fake, moto_port
from tests.support.builders.manifests import FOLDER
from tests.support.fakes.aws import REGION, ZONES, FakeAws
from tests.support.harness.controlplane.api import Api, Manifest, Refused
from tests.support.harness.controlplane.kwok import Kwok
from tests.support.harness.controlplane.nodes import a_node, delete_nodes
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.daemon import wait
from tests.support.harness.kube import Kube
from tests.support.harness.stacks import Stack, on_kubernetes

__all__ = ["fake", "moto_port"]
pytestmark = pytest.mark.long

PODS = "/api/v1/namespaces/gpu-batch/pods"
STRANGER = "/api/v1/namespaces/default/pods/stranger"
FLEETING = {"test.odc.dev/run-s": "0", "test.odc.dev/exit-code": "0"}


class Cloud:
    """Instances of the group join the cluster as nodes, and leave it when they are gone. Pods of
    jobs end at once."""

    def __init__(self, aws: FakeAws, api: Api) -> None:
        self.aws = aws
        self.api = api
        self.nodes: dict[str, str] = {}

    def make_group(self) -> None:
        self.aws.autoscaling.create_launch_configuration(
            LaunchConfigurationName="t4", ImageId="ami-12345678", InstanceType="g4dn.12xlarge"
        )
        tags = {
            "odc.dev/cluster": "test", "odc.dev/elastic": "true", "GpuType": "t4",
            "odc.dev/idle-s": "3", "odc.dev/cooldown-s": "1",
        }  # fmt: skip
        self.aws.autoscaling.create_auto_scaling_group(
            AutoScalingGroupName="t4", LaunchConfigurationName="t4", MinSize=0, MaxSize=2,
            DesiredCapacity=0, AvailabilityZones=[ZONES[0]],
            Tags=[
                {"Key": key, "Value": value, "ResourceId": "t4", "PropagateAtLaunch": False,
                 "ResourceType": "auto-scaling-group"}
                for key, value in tags.items()
            ],
        )  # fmt: skip

    def instances(self) -> list[str]:
        found: Any = self.aws.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
        return [one["InstanceId"] for group in found for one in group["Instances"]]

    def look(self) -> None:
        there = self.instances()
        for instance in set(there) - self.nodes.keys():
            node: Manifest = a_node("t4", f"elastic-{instance[-6:]}", zone=ZONES[0])
            node["spec"]["providerID"] = f"aws:///{ZONES[0]}/{instance}"
            self.api.create(node)
            self.nodes[instance] = node["metadata"]["name"]
        for instance in self.nodes.keys() - set(there):
            delete_nodes(self.api, [self.nodes.pop(instance)])
        for pod in self.api.items(PODS):
            if "test.odc.dev/run-s" not in pod["metadata"].get("annotations", {}):
                try:
                    path = f"{PODS}/{pod['metadata']['name']}"
                    self.api.patch(path, {"metadata": {"annotations": FLEETING}})
                except Refused as refused:
                    if refused.code != 404:
                        raise

    @contextmanager
    def running(self) -> Iterator[None]:
        over = threading.Event()
        failed: list[Exception] = []

        def play() -> None:
            try:
                while not over.wait(0.2):
                    self.look()
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=play)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            delete_nodes(self.api, self.nodes.values())
        assert failed == []


@pytest.fixture
def cloud(fake: FakeAws, api: Api, kwok: Kwok, installed: Kube, kubectl: Path) -> Iterator[Cloud]:
    component = FOLDER / "components" / "fence"
    files = [a for name in ("accounts", "admission") for a in ("-f", component / f"{name}.yaml")]
    installed.do("apply", *files)
    made = Cloud(fake, api)
    made.make_group()
    with made.running():
        yield made
    installed.do("delete", "--ignore-not-found", *files)


@pytest.fixture
def stack(shared_plane: ControlPlane, cloud: Cloud, database_url: str) -> Iterator[Stack]:
    kubeconfig = shared_plane.account_kubeconfig("gpu-controlplane", "odcd")
    with on_kubernetes(
        database_url, kubeconfig, [], ODC_AWS_REGION=REGION, ODC_AWS_ENDPOINT=cloud.aws.url,
        ODC_ELASTIC_CLUSTER="test", ODC_ELASTIC_S="1", AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test", AWS_EC2_METADATA_DISABLED="true",
    ) as made:  # fmt: skip
        yield made
        made("cancel", "--all", check=False)


def group(stack: Stack) -> dict[str, Any]:
    found: list[dict[str, Any]] = stack.json("nodes", "--groups")["groups"]
    return found[0] if found else {}


def test_nodes_come_for_jobs_and_leave_when_they_are_empty(
    stack: Stack, cloud: Cloud, api: Api
) -> None:
    wait(lambda: group(stack), stack.log)
    job = stack.submit("-G", "t4:4", script="true")
    wait(lambda: cloud.instances(), stack.log)
    assert "nodes_requested" in stack("events")
    assert stack.end(job)["state"] == "COMPLETED"
    [instance] = cloud.instances()  # and no second one while it was not ready
    name = cloud.nodes[instance]

    # A pod of someone else without requests, which uses nothing that the inventory counts.
    api.create({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "stranger", "namespace": "default"},
        "spec": {"nodeName": name, "containers": [{"name": "a", "image": "a"}]},
    })  # fmt: skip
    kept = "select keep_until from odc.elastic_instance"
    wait(lambda: stack.value(kept) is not None, stack.log)
    assert cloud.instances() == [instance]
    again = stack.submit("-G", "t4:1", script="true")
    assert stack.end(again)["node_names"] == [name]
    api.delete(STRANGER, grace_s=0)

    # The daemon is killed while the node is closed.
    stack.sql("update odc.elastic_instance set keep_until = null")

    def closed() -> bool:
        taints = api.get(f"/api/v1/nodes/{name}")["spec"].get("taints", [])
        return any(one["key"] == KEY for one in taints)

    wait(closed, stack.log)
    stack.kill()
    stack.start()
    wait(lambda: not cloud.instances(), stack.log)
    wait(lambda: not stack.json("nodes")["nodes"], stack.log)
    found = group(stack)
    assert (found["nodes"], found["desired_nodes"]) == (0, 0)
    assert "node_removed" in stack("events")
