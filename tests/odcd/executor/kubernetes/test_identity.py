"""The users and groups of pods: what a job may do on shared file systems, and root on its node."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from odcd.errors import BadRequest
from odcd.executor.kubernetes.groups import GroupFile, read_groups
from odcd.executor.kubernetes.inventory import NodeOffer, offer_of
from odcd.executor.kubernetes.objects import Node
from odcd.executor.kubernetes.pods import PodSettings, pod_of
from odcd.executor.kubernetes.settings import read_kubernetes
from odcd.executor.kubernetes.template import PodTemplate, read_dev_template
from odcd.records.dispatch import DiskUse
from tests.support.builders.dispatches import a_dispatch_of, a_member

SETTINGS = PodSettings(image="registry.example/job:1.0", dev_image="registry.example/dev:1.0")
CAN = NodeOffer(gpus=8, efa=0, hugepages_mib=0, strict_groups=True, user_namespaces=True)
CANNOT = NodeOffer(gpus=8, efa=0, hugepages_mib=0)


def pod(
    offer: NodeOffer, settings: PodSettings = SETTINGS, *, gpus: int = 1, **fields: Any
) -> dict[str, Any]:
    member = a_member(0, virtual=False, cpus=1, gpu_indexes=tuple(range(gpus)), node_gpus=8)
    dispatch, _ = a_dispatch_of(members=(member,), uid=1001, gid=100, user="alice", **fields)
    return pod_of(dispatch, member, {}, {member.node: offer}, settings)


def a_dev_server(offer: NodeOffer, settings: PodSettings = SETTINGS, **fields: Any) -> Any:
    fields = {"ask": {}, **fields}
    return pod(offer, settings, kind="reservation", **fields)["spec"].get("hostUsers")


def a_node(kernel: str = "6.12.40", groups: bool = True, handlers: list[Any] | None = None) -> Node:
    default = [{"name": "", "features": {"userNamespaces": True}}]
    return msgspec.convert(
        {
            "metadata": {"name": "one"},
            "status": {
                "features": {"supplementalGroupsPolicy": groups},
                "runtimeHandlers": default if handlers is None else handlers,
                "nodeInfo": {"kernelVersion": kernel},
            },
        },
        Node,
    )


# -- groups ---------------------------------------------------------------------------------------


def test_an_image_adds_no_groups_where_the_node_can_refuse_them() -> None:
    """With Merge, the image's /etc/group would let its user choose any group of a file system."""
    assert pod(CAN)["spec"]["securityContext"]["supplementalGroupsPolicy"] == "Strict"
    assert "supplementalGroupsPolicy" not in pod(CANNOT)["spec"]["securityContext"], (
        "kubelet would refuse the pod"
    )


def test_a_job_has_the_groups_of_its_user(tmp_path: Path) -> None:
    path = tmp_path / "group"
    path.write_text(
        "# of the directory\nroot:x:0:alice\nvision:x:6001:alice,bob\nown:x:100:alice\n"
        "speech:x:6002:bob\nllm:x:6003:carol, alice\n"
    )
    settings = replace(SETTINGS, groups=GroupFile(path))
    assert pod(CAN, settings)["spec"]["securityContext"]["supplementalGroups"] == [6001, 6003]
    assert "supplementalGroups" not in pod(CAN)["spec"]["securityContext"]


def test_a_changed_file_of_groups_is_read_again_and_a_broken_one_is_not_used(
    tmp_path: Path,
) -> None:
    path = tmp_path / "group"
    path.write_text("vision:x:6001:alice\n")
    groups = GroupFile(path)
    for text, expected in (
        ("vision:x:6001:bob\n", ()),
        ("vision:x:6009:alice\n", (6009,)),
        ("nonsense\n", (6009,)),
    ):
        made = tmp_path / "new"
        made.write_text(text)
        made.replace(path)
        assert groups.of("alice") == expected
    path.unlink()
    assert groups.of("alice") == (6009,)


@pytest.mark.parametrize("text", ["alice", "a:x:many:alice", "a:x:-1:alice", "a:x:1:b:c"])
def test_a_wrong_file_of_groups_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "group"
    path.write_text(f"vision:x:6001:alice\n{text}\n")
    with pytest.raises(BadRequest, match="line 2 of ODC_GROUP_FILE"):
        read_groups(path)


# -- user namespaces ------------------------------------------------------------------------------


def test_root_of_a_dev_server_is_nobody_on_a_node_that_supports_it() -> None:
    assert a_dev_server(CAN) is False
    assert a_dev_server(CANNOT) is None
    assert a_dev_server(CAN, replace(SETTINGS, user_namespaces=False)) is None
    assert "hostUsers" not in pod(CAN)["spec"], "a job is no root"


def test_a_dev_server_that_would_not_start_keeps_the_users_of_its_node() -> None:
    disk = DiskUse(claim="odc-volume-7", name="home", first=False)
    assert a_dev_server(CAN, disk=disk) is False, "ext4 maps users"
    assert a_dev_server(CAN, personal="odc-personal-7") is None, "NFS does not"
    data = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    assert a_dev_server(CAN, replace(SETTINGS, template=PodTemplate(data))) is None
    nsight = {"labels": {"nsight": "true"}}
    assert a_dev_server(CAN, ask=nsight) is None, "the counters need the node's root"
    assert a_dev_server(replace(CAN, efa=4), gpus=8) is None, "locked memory does, too"


def test_the_features_of_a_node_are_read_from_its_status() -> None:
    assert offer_of(a_node()).user_namespaces
    assert offer_of(a_node()).strict_groups
    assert not offer_of(a_node(groups=False)).strict_groups
    for node in (
        a_node("6.1.112-124.190.amzn2023.x86_64"),
        a_node("unknown"),
        a_node(handlers=[]),
        a_node(handlers=[{"name": "runc", "features": {"userNamespaces": True}}]),
        a_node(handlers=[{"name": "", "features": {"userNamespaces": False}}]),
    ):
        assert not offer_of(node).user_namespaces
    assert not offer_of(None).user_namespaces


# -- templates ------------------------------------------------------------------------------------


def test_dev_servers_have_a_template_of_their_own(tmp_path: Path) -> None:
    """Root in a dev server reads all of a file system without root squash."""
    path = tmp_path / "dev.yaml"
    path.write_text("labels: {team: dev}\n")
    jobs = PodTemplate(
        {
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "tolerations": [{"key": "dedicated", "operator": "Exists"}],
            "nodeSelector": {"pool": "gpu"},
        }
    )
    settings = replace(SETTINGS, template=jobs, dev_template=read_dev_template(path, jobs))
    job = pod(CAN, settings)
    server = pod(CAN, settings, kind="reservation", ask={})
    assert "data" in str(job["spec"]["volumes"])
    assert "data" not in [volume["name"] for volume in server["spec"]["volumes"]]
    assert server["metadata"]["labels"]["team"] == "dev"
    assert server["spec"]["nodeSelector"] == job["spec"]["nodeSelector"]
    assert {"key": "dedicated", "operator": "Exists"} in server["spec"]["tolerations"]


@pytest.mark.parametrize("text", ["nodeSelector: {a: b}", "tolerations: [{key: a}]"])
def test_dev_servers_are_placed_like_jobs(tmp_path: Path, text: str) -> None:
    """The planner counts a node as usable by one list of tolerations and labels."""
    path = tmp_path / "dev.yaml"
    path.write_text(text)
    with pytest.raises(BadRequest, match=text.partition(":")[0]):
        read_dev_template(path, PodTemplate())


def test_the_settings_of_identities_are_read() -> None:
    read = read_kubernetes(
        None,
        None,
        {
            "ODC_DEV_POD_TEMPLATE": "/a", "ODC_GROUP_FILE": "/b", "ODC_USER_NAMESPACES": "off",
        },
    )  # fmt: skip
    assert (str(read.dev_pod_template), str(read.group_file)) == ("/a", "/b")
    assert not read.user_namespaces
    with pytest.raises(BadRequest, match="ODC_USER_NAMESPACES"):
        read_kubernetes(None, None, {"ODC_USER_NAMESPACES": "yes"})
