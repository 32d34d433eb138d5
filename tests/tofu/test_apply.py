"""Both environments against moto's server: apply, plan again, change, destroy."""

from __future__ import annotations

import asyncio
import base64
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import msgspec
import pytest
import yaml

from odcd.aws.groups import Groups
from odcd.executor.kubernetes.inventory import take_inventory
from odcd.executor.kubernetes.objects import Node
from odcd.executor.kubernetes.tolerations import Terms, tolerations_of
from tests.support.harness.tofu.cloud import Cloud
from tests.support.harness.tofu.workspace import AMIS, Workspace, changes
from tests.tofu.policies import findings

ROOT = Path(__file__).parents[2]
TEST = "environments/test"
PRODUCTION = "environments/production"
VALUES: dict[str, Any] = {"ami_ids": AMIS}
BLOCK = {
    "type": "h100", "id": "cr-0123456789abcdef0", "zone": "us-east-2b", "instances": 2,
    "starts_at": "2096-12-01T11:30:00Z", "ends_at": "2096-12-08T11:30:00Z",
}  # fmt: skip
MORE = {"type": "t4", "min_nodes": 0, "max_nodes": 3, "elastic": {"idle_s": 900}}


@dataclass(frozen=True)
class Applied:
    space: Workspace
    first: dict[str, Any]
    """The plan that was applied."""
    port: int
    """moto's."""
    halfway: int
    """The number of resources after the first apply, which was interrupted."""


@pytest.fixture(scope="module")
def applied(cloud: Cloud) -> Iterator[Applied]:
    """The test environment, as its var file has it; the first apply was interrupted, and the second
    one finished. Destroyed at the end."""
    space = cloud.make("test")
    space.init(TEST, local_state=True)
    first = space.plan(TEST, VALUES)
    said = space.interrupt_apply(TEST, VALUES, after=30)
    assert "Interrupt received" in said, said[-4000:]
    halfway = len(space.state(TEST))
    space.apply(TEST, VALUES)
    yield Applied(space, first, cloud.port, halfway)
    space.destroy(TEST, VALUES)
    assert space.state(TEST) == {}, "destroy leaves nothing"


def client(service: Any, port: int) -> Any:
    return boto3.client(
        service, region_name="us-west-1", endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id="test", aws_secret_access_key="test",
    )  # fmt: skip


def planned(applied: Applied, **values: Any) -> dict[str, tuple[str, ...]]:
    """The actions that a change of variables plans, by address."""
    plan = applied.space.plan(TEST, VALUES | values, "-refresh=false")
    return {one.address: one.actions for one in changes(plan)}


def template(state: dict[str, Any], key: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """A group's launch template, and the script and the NodeConfig of its user data."""
    address = "module.system" if key == "system" else f'module.node_group["{key}"]'
    values = state[f"module.odc.{address}.aws_launch_template.this"]
    parts = base64.b64decode(values["user_data"]).decode().split("--odc\n")
    script, config = (part.split("\n\n", 1)[1] for part in parts[1:3])
    return values, script, yaml.safe_load(config.replace("--odc--", ""))


def test_a_second_plan_changes_nothing(applied: Applied) -> None:
    assert changes(applied.space.plan(TEST, VALUES)) == []


def test_a_half_finished_apply_is_finished_by_the_next(applied: Applied) -> None:
    """Nothing that the first one created was created twice, or is missing from the state."""
    assert 30 <= applied.halfway < len(changes(applied.first))
    assert applied.space.state(TEST).keys() == {one.address for one in changes(applied.first)}
    groups = client("autoscaling", applied.port).describe_auto_scaling_groups()
    names = [group["AutoScalingGroupName"] for group in groups["AutoScalingGroups"]]
    assert sorted(names) == ["odc-test-system", "odc-test-t4"]


def test_the_plan_keeps_the_policies(applied: Applied) -> None:
    made = changes(applied.first)
    assert len(made) > 80
    assert findings(made) == []


def test_a_further_type_creates_its_group_and_nothing_else(applied: Applied) -> None:
    """INF-05, BUG-14: no group moves because of another one, whatever the order of the keys."""
    groups = {"a-first": {"type": "t4-small", "min_nodes": 1}, "t4": {"type": "t4", "min_nodes": 2}}
    group = 'module.odc.module.node_group["a-first"]'
    assert planned(applied, node_groups=groups) == {
        f"{group}.aws_autoscaling_group.this": ("create",),
        f"{group}.aws_launch_template.this": ("create",),
    }


def test_a_new_image_or_size_changes_the_template_and_no_node(applied: Applied) -> None:
    """INF-05: new nodes get it; those that run stay."""
    changed = {'module.odc.module.node_group["t4"].aws_launch_template.this': ("update",)}
    for more in ({"ami_id": "ami-0fedcba9876543210"}, {"root_gib": 3000}, {"profiling": True}):
        groups = {"t4": {"type": "t4", "min_nodes": 2, **more}}
        found = planned(applied, node_groups=groups)
        assert found == changed, more
    more_nodes = planned(applied, node_groups={"t4": {"type": "t4", "min_nodes": 3}})
    assert more_nodes == {
        'module.odc.module.node_group["t4"].aws_autoscaling_group.this': ("update",)
    }


def test_a_changed_number_of_nodes_is_no_drift(applied: Applied) -> None:
    """INF-05: odcd, an autoscaler or a person may change it."""
    groups = client("autoscaling", applied.port)
    groups.set_desired_capacity(AutoScalingGroupName="odc-test-system", DesiredCapacity=4)
    assert changes(applied.space.plan(TEST, VALUES)) == []
    refused = applied.space.refusal(TEST, VALUES | {"system": {"max_nodes": 3}})
    assert "odc-test-system (4 nodes, now at most 3)" in refused


def test_a_group_that_has_nodes_is_neither_removed_nor_made_smaller(applied: Applied) -> None:
    refused = applied.space.refusal(TEST, VALUES | {"node_groups": {}})
    assert "would be removed: odc-test-t4 (2 nodes)" in refused
    fewer = {"t4": {"type": "t4", "min_nodes": 1}}
    refused = applied.space.refusal(TEST, VALUES | {"node_groups": fewer})
    assert "odc-test-t4 (2 nodes, now at most 1)" in refused


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"node_groups": {"t4": {"type": "t5", "min_nodes": 2}}}, "There is no node type t5."),
        ({"network": {"service_cidr": "10.0.0.0/18"}}, "overlap: choose ranges"),
        (
            {"node_groups": {"t4": {"type": "t4", "min_nodes": 2},
                             "a100": {"type": "a100", "min_nodes": 1}}},
            "is not offered in us-west-1a, us-west-1b: it is in no zone of this region.",
        ),
        (
            {"capacity_blocks": {"old": {**BLOCK, "type": "t4", "zone": "us-west-1a",
                                         "starts_at": "2020-01-01T00:00:00Z",
                                         "ends_at": "2020-01-02T00:00:00Z"}}},
            "ends at 2020-01-02T00:00:00Z",
        ),
    ],
    ids=["type", "ranges", "region", "block"],
)  # fmt: skip
def test_bad_values_are_refused_by_the_plan(
    applied: Applied, values: dict[str, Any], sentence: str
) -> None:
    """INF-07: a block that has ended; a region without the type; ranges that overlap."""
    assert sentence in applied.space.refusal(TEST, VALUES | values)


def test_nodes_have_the_labels_and_taints_that_the_planner_expects(applied: Applied) -> None:
    """GPU-11, INF-17: kubelet's flags make the node that odc plans with."""
    state = applied.space.state(TEST)
    for key, gpus, expected in (("t4", "4", "t4"), ("system", "0", None)):
        _, _, config = template(state, key)
        kubelet = config["spec"]["kubelet"]
        labels = dict(
            pair.split("=", 1)
            for pair in kubelet["flags"][0].removeprefix("--node-labels=").split(",")
        )
        taints = kubelet["config"]["registerWithTaints"]
        allocatable = {"cpu": "47", "memory": "180Gi", "nvidia.com/gpu": gpus}
        node = msgspec.convert(
            {
                "metadata": {"name": "n1", "labels": labels},
                "spec": {"taints": taints},
                "status": {"allocatable": allocatable,
                           "conditions": [{"type": "Ready", "status": "True"}]},
            },
            Node,
        )  # fmt: skip
        terms = Terms(tolerations=tolerations_of(()))
        found = take_inventory([node], [], lambda _: False, {}, terms)
        if expected is None:
            assert found.nodes == []
        else:
            assert [(one.gpu_type, one.state) for one in found.nodes] == [(expected, "UP")]
            assert labels["NodeType"] == "gpu"


def test_device_plugins_run_on_the_nodes(applied: Applied) -> None:
    """INF-11: the DaemonSets of k8s/ select nodes with GPUs by label, and tolerate their taint."""
    _, _, config = template(applied.space.state(TEST), "t4")
    kubelet = config["spec"]["kubelet"]
    assert "nvidia.com/gpu.present=true" in kubelet["flags"][0]
    for name in ("nvidia-device-plugin", "image-prepull"):
        path = ROOT / f"k8s/components/{name}/daemonset.yaml"
        spec = yaml.safe_load(path.read_text("utf-8"))["spec"]["template"]["spec"]
        keys = {one.get("key", "every") for one in spec["tolerations"]}
        taints = {taint["key"] for taint in kubelet["config"]["registerWithTaints"]}
        assert "every" in keys or taints <= keys
        assert "nvidia.com/gpu.present" in str(spec["affinity"])


def test_add_ons_and_files_are_there(applied: Applied) -> None:
    """INF-11: EBS and EFS drivers, CoreDNS; network policies by the VPC CNI."""
    state = applied.space.state(TEST)
    addons = {key.split('"')[1] for key in state if ".aws_eks_addon." in key}
    assert {"coredns", "aws-ebs-csi-driver", "aws-efs-csi-driver", "vpc-cni"} <= addons
    overlay = applied.space.output(TEST)["overlay"]
    assert overlay["file_system_id"].startswith("fs-")
    assert overlay["odcd_role_arn"].endswith(":role/odc-test-odcd")


def test_the_script_of_a_node_is_valid_and_in_order(applied: Applied, tmp_path: Path) -> None:
    """INF-12, INF-13, PRF-03."""
    groups = {"t4": {"type": "t4", "min_nodes": 2, "profiling": True}}
    plan = applied.space.plan(TEST, VALUES | {"node_groups": groups})
    user_data = next(
        one.after["user_data"] for one in changes(plan) if "aws_launch_template" in one.address
    )
    script = base64.b64decode(user_data).decode().split("--odc\n")[1].split("\n\n", 1)[1]
    check_script(script, tmp_path)
    option = script.index("NVreg_RestrictProfilingToAdminUsers=0")
    assert option < script.index("modprobe nvidia\n"), "before the driver is loaded"
    assert "systemctl enable kubelet" in script
    documented = (ROOT / "docs/operating/kubernetes.md").read_text("utf-8")
    for line in script.splitlines():
        if line.startswith("nvidia-ctk config") or "LimitMEMLOCK" in line:
            assert line.split(">/")[0].strip() in documented, "as the page has it"


def check_script(script: str, folder: Path) -> None:
    (folder / "node.sh").write_text(script)
    done = subprocess.run(["bash", "-n", folder / "node.sh"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


async def check_elastic(port: int) -> None:
    """odcd finds the group by its tags, requests nodes, and ends one."""
    groups = Groups("odc", "us-east-2", f"http://127.0.0.1:{port}")
    await groups.open()
    try:
        [group] = await groups.groups()
        assert (group.name, group.gpu_type, group.problem) == ("odc-t4-more", "t4", None)
        assert (group.min_nodes, group.max_nodes, group.desired) == (0, 3, 0)
        assert (group.idle_s, group.cooldown_s, group.boot_s) == (900, 60, 300)
        await groups.resize(group.name, 2)
        [grown] = await groups.groups()
        assert len(grown.instances) == 2
        await groups.terminate(grown.instances[0])
        [shrunk] = await groups.groups()
        assert (shrunk.desired, shrunk.instances) == (1, grown.instances[1:])
    finally:
        await groups.close()


def test_production_can_be_applied_changed_and_destroyed(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INF-02, INF-03, GPU-12: all types, a capacity block, more nodes, another type, and an elastic
    group that odcd resizes."""
    space = cloud.make("production")
    space.init(PRODUCTION, local_state=True)
    zone = client("route53", cloud.port).create_hosted_zone(
        Name="example.org", CallerReference="1"
    )["HostedZone"]["Id"].rpartition("/")[2]  # fmt: skip
    # Without RDS: moto forgets its parameters, so each plan would change them.
    values = VALUES | {
        "capacity_blocks": {"h100-block": BLOCK},
        "database": {"force_destroy": True},
        "storage": {"history_days": 365, "fast_disks": True},
        "ingress": {"host": "odc.example.org", "zone_id": zone},
    }  # fmt: skip
    own = space.plan(PRODUCTION, values)["variables"]["node_groups"]["value"]
    values["node_groups"] = own | {"t4-more": MORE}
    # INF-16: only HTTPS of the load balancer is open to everyone.
    first = changes(space.plan(PRODUCTION, values))
    assert findings(first) == []
    space.apply(PRODUCTION, values)
    assert changes(space.plan(PRODUCTION, values)) == []
    assert space.output(PRODUCTION)["url"] == "https://odc.example.org"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    asyncio.run(check_elastic(cloud.port))
    assert changes(space.plan(PRODUCTION, values)) == [], "the number of nodes is odcd's"
    _, script, config = template(space.state(PRODUCTION), "h100")
    check_script(script, tmp_path)
    # MNE-14: before kubelet starts, which is after this script.
    assert "vm.nr_hugepages = 5128" in script
    assert "nvidia-fabricmanager" in script
    assert "peermem" in script
    assert config["spec"]["instance"] == {"localStorage": {"strategy": "RAID0"}}
    # GPU-08: the static CPU manager is off.
    assert "cpuManagerPolicy" not in config["spec"]["kubelet"]["config"]
    without = changes(space.plan(PRODUCTION, values | {"capacity_blocks": {}}))
    assert without
    for one in without:
        assert 'module.capacity_block["h100-block"]' in one.address
        assert one.actions == ("delete",)
    space.destroy(PRODUCTION, values)
    assert space.state(PRODUCTION) == {}
