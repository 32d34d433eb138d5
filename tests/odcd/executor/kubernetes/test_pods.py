"""The pod of a member, as far as its job notices."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from odcd.builds.settings import BuildSettings
from odcd.errors import BadRequest, NotAllowed, NotImplementedYet, TooLarge
from odcd.executor.kubernetes.attempt_objects import script_of
from odcd.executor.kubernetes.build_jobs import BuildPlace, job_of
from odcd.executor.kubernetes.checks import JobCheck, refuse_images
from odcd.executor.kubernetes.images import check_image
from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.naming import label
from odcd.executor.kubernetes.pods import PodSettings, namespace_of, pod_of
from odcd.executor.kubernetes.settings import read_kubernetes
from odcd.executor.kubernetes.template import PodTemplate, read_template
from odcd.records.build import Build
from tests.support.builders.dispatches import a_dispatch_of, a_member
from tests.support.builders.jobs import ALICE, ROOT, a_job

SETTINGS = PodSettings(image="registry.example/job:1.0")
WHOLE = NodeOffer(gpus=8, efa=32, hugepages_mib=10_256)


def a_pod(
    *members: Any, rank: int = 0, env: dict[str, str] | None = None, offer: NodeOffer = WHOLE,
    settings: PodSettings = SETTINGS, **fields: Any,
) -> dict[str, Any]:  # fmt: skip
    members = members or (a_member(virtual=False),)
    dispatch, _ = a_dispatch_of(members=members, uid=1001, gid=100, user="alice", **fields)
    offers = {member.node: offer for member in members}
    return pod_of(dispatch, members[rank], env or {}, offers, settings)


def variables(pod: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"]}


def gang(count: int, gpus: int = 8) -> tuple[Any, ...]:
    return tuple(
        a_member(rank, gpu_indexes=tuple(range(gpus)), cpus=190, mem_mib=2_000_000, virtual=False)
        for rank in range(count)
    )


def test_a_gang_has_resolvable_names_of_its_peers() -> None:
    env = variables(a_pod(*gang(2), rank=1, job_id=7, attempt=3))
    hosts = "odc-7-3-0.gpu-dev-headless.gpu-dev.svc.cluster.local"
    assert env["MASTER_ADDR"] == hosts
    assert env["ODC_PEERS"] == f"{hosts},{hosts.replace('3-0', '3-1')}"
    assert (env["MASTER_PORT"], env["ODC_RANK"], env["SLURM_NNODES"]) == ("29500", "1", "2")
    assert env["SLURM_JOB_NODELIST"] == "odc-7-3-[0-1]"
    assert env["ODC_NODE"] == "gpu-02"


def test_only_whole_nodes_get_efa() -> None:
    whole = a_pod(*gang(2))
    container = whole["spec"]["containers"][0]
    assert container["resources"]["limits"]["vpc.amazonaws.com/efa"] == "32"
    assert container["resources"]["requests"]["hugepages-2Mi"] == "5120Mi"
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK"]}
    assert whole["metadata"]["namespace"] == "gpu-dev"
    part = a_pod(*gang(2, gpus=4))
    container = part["spec"]["containers"][0]
    assert "vpc.amazonaws.com/efa" not in container["resources"]["limits"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert part["metadata"]["namespace"] == "gpu-batch"


def test_members_of_a_gang_wait_for_each_other_and_one_alone_does_not() -> None:
    assert a_pod(*gang(2))["spec"]["schedulingGates"] == [{"name": "odc.dev/gang"}]
    assert "schedulingGates" not in a_pod()["spec"]


def test_memory_is_limited_to_the_share_and_cpus_may_burst() -> None:
    quarter = a_member(gpu_indexes=(0, 1), cpus=40, mem_mib=0, virtual=False)
    resources = a_pod(quarter)["spec"]["containers"][0]["resources"]
    assert (resources["requests"]["cpu"], resources["limits"]["cpu"]) == ("40", "72")
    assert resources["limits"]["memory"] == f"{2_097_152 // 4}Mi"
    member = a_member(cpus=192, mem_mib=5000, virtual=False)
    resources = a_pod(member)["spec"]["containers"][0]["resources"]
    assert resources["limits"]["cpu"] == "192"
    assert resources["limits"]["memory"] == resources["requests"]["memory"] == "5000Mi"


def test_shared_memory_is_a_part_of_the_memory_that_it_counts_against() -> None:
    pod = a_pod(a_member(mem_mib=8192, virtual=False))
    [shm] = [v for v in pod["spec"]["volumes"] if v["name"] == "shm"]
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": "4096Mi"}


def test_a_job_cannot_set_variables_for_devices_or_library_paths() -> None:
    env = {
        "NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": "0,1", "PATH": "/home/alice/bin",
        "LD_PRELOAD": "/x.so", "WANDB": "on", "SLURM_JOB_ID": "99", "PRICE": "$(HOME)$5",
    }  # fmt: skip
    actual = variables(a_pod(env=env, job_id=7))
    assert "CUDA_VISIBLE_DEVICES" not in actual
    assert actual["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert not {"PATH", "LD_PRELOAD"} & actual.keys()
    assert (actual["WANDB"], actual["SLURM_JOB_ID"], actual["HOME"]) == ("on", "7", "/home/alice")
    assert actual["PRICE"] == "$$(HOME)$$5"
    with_gpus = variables(a_pod(a_member(gpu_indexes=(0,), virtual=False), env=env))
    assert not {"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"} & with_gpus.keys()
    assert with_gpus["SLURM_GPUS_ON_NODE"] == "1"


def test_user_and_partition_names_are_sanitized_in_labels_and_unchanged_in_annotations() -> None:
    settings = PodSettings(image="x:1")
    member = a_member(virtual=False)
    dispatch, _ = a_dispatch_of(
        user="alice@example.com/team", partition="größe 1", members=(member,)
    )
    pod = pod_of(dispatch, member, {}, {}, settings)
    assert pod["metadata"]["labels"]["odc.dev/user"] == "alice-example.com-team"
    assert pod["metadata"]["annotations"]["odc.dev/user"] == "alice@example.com/team"
    assert pod["metadata"]["labels"]["odc.dev/partition"] == "gr-e-1"


@pytest.mark.parametrize("text", ["", "-", "é", "a" * 100, "..a..", "x/y z", "-_.-"], ids=ascii)
def test_every_label_is_valid_for_kubernetes(text: str) -> None:
    import re

    assert re.fullmatch(r"|[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", label(text))


def test_the_script_goes_with_the_pod_of_rank_0() -> None:
    dispatch, _ = a_dispatch_of(job_id=7, attempt=2)
    script = script_of(dispatch, "#!/bin/sh\n", "gpu-batch", "the-uid")
    [owner] = script["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Pod", "odc-7-2-0", "the-uid")
    assert script["data"] == {"script": "#!/bin/sh\n"}


def test_the_namespace_is_the_same_for_all_members() -> None:
    members = gang(2)
    dispatch, _ = a_dispatch_of(members=members)
    offers = {members[0].node: WHOLE}
    assert namespace_of(dispatch, offers, SETTINGS.namespaces) == "gpu-dev"


# -- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "image",
    ["pytorch/pytorch:2.9.1", "x:1", "registry.example:5000/a/b_c/d-e:v1.2",
     "nvcr.io/nvidia/cuda@sha256:" + "a" * 64, "a/b:1@sha256:" + "0" * 64, "[::1]:5000/x:1"],
    ids=str,
)  # fmt: skip
def test_a_pinned_image_is_accepted(image: str) -> None:
    check_image(image, "the image")


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("pytorch/pytorch", "is not a fixed image"),
        ("pytorch/pytorch:latest", "is not a fixed image"),
        ("PyTorch/x:1", "not an image reference"),
        ("a b:1", "not an image reference"),
        ("x:", "not an image reference"),
        ("x@sha256:abc", "not an image reference"),
        ("http://x/y:1", "not an image reference"),
        ("x:1\n", "not an image reference"),
        ("x" * 2000 + ":1", "not an image reference"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_an_unpinned_image_is_refused(image: str, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        check_image(image, "the image")


# -- what a submit refuses ------------------------------------------------------------------------

CHECK = JobCheck("x:1")


@pytest.mark.parametrize(
    ("fields", "error", "says"),
    [
        ({"image": "x:latest"}, BadRequest, "is not a fixed image"),
        ({"pty": True}, NotImplementedYet, "terminals"),
        ({"environment": {"ÄRGER": "1"}}, BadRequest, "Kubernetes refuses"),
        ({"environment": {"A\tB": "1"}}, BadRequest, "Kubernetes refuses"),
        ({"environment": {"BIG": "x" * 600_000}}, TooLarge, "more than a pod may carry"),
        ({"args": ["x" * 100_000] * 6}, TooLarge, "more than a pod may carry"),
    ],
    ids=["moving image", "terminal", "name", "blank in a name", "environment", "arguments"],
)
def test_a_job_that_cannot_be_a_pod_is_refused_at_submit(
    fields: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        CHECK(ALICE, a_job(**fields))


def test_a_script_beyond_a_config_map_is_refused_at_submit() -> None:
    import random

    noise = random.Random(1).randbytes(1_000_000).hex()
    with pytest.raises(TooLarge, match="ConfigMap"):
        CHECK(ALICE, a_job(script=f"#!/bin/sh\n# {noise}\n"))
    CHECK(ALICE, a_job(script="#!/bin/sh\n" + "# again and again\n" * 200_000))


def test_a_job_needs_an_image_and_a_user() -> None:
    with pytest.raises(BadRequest, match="names no container image"):
        JobCheck(None)(ALICE, a_job())
    JobCheck(None)(ALICE, a_job(image="x:1"))
    with pytest.raises(NotAllowed, match="not as root"):
        CHECK(ROOT, a_job())
    with pytest.raises(BadRequest, match="runs processes of its machine"):
        refuse_images(ALICE, a_job(image="x:1"))
    CHECK(ALICE, a_job(environment={"BASH_FUNC_x%%": "() { :; }", "a.b-c": "$(HOME)"}))


# -- settings and the pod template ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ODC_NAMESPACE_BATCH", "Batch_Jobs"), ("ODC_IMAGE", "x:latest"),
        ("ODC_NODE_GRACE_S", "soon"), ("ODC_START_S", "-1"), ("ODC_OUTPUT_BYTES", "12"),
        ("ODC_CLUSTER_DOMAIN", "-x-"), ("ODC_TOLERATIONS", "a b c=d"),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(BadRequest, match=name):
        read_kubernetes(None, None, {name: value})


@pytest.mark.parametrize(
    "name",
    ["ODC_NAMESPACE_DEV", "ODC_IMAGE", "ODC_POD_TEMPLATE", "ODC_TOLERATIONS", "ODC_START_S",
     "ODC_OUTPUT_BYTES", "ODC_QUARANTINE"],
)  # fmt: skip
def test_a_setting_that_a_manifest_leaves_empty_is_not_set(name: str) -> None:
    assert read_kubernetes(None, None, {name: ""}) == read_kubernetes(None, None, {})


def test_a_site_template_adds_to_pods_and_removes_nothing(tmp_path: Any) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(
        "volumes: [{name: data, persistentVolumeClaim: {claimName: d}}, {name: run}]\n"
        "volumeMounts: [{name: data, mountPath: /data}]\n"
        "nodeSelector: {pool: gpu}\nlabels: {team: ml}\n"
    )
    pod = a_pod(settings=PodSettings(image="x:1", template=read_template(path)), job_id=7)
    names = [volume["name"] for volume in pod["spec"]["volumes"]]
    assert names == ["script", "run", "home", "shm", "data"]
    assert pod["spec"]["nodeSelector"] == {"pool": "gpu"}
    assert pod["metadata"]["labels"]["odc.dev/job-id"] == "7"
    assert pod["metadata"]["labels"]["team"] == "ml"


@pytest.mark.parametrize(
    "text",
    ["hostNetwork: true", "volumes: {}", "- a", "a: [", "serviceAccountName: admin", "\0"],
    ids=ascii,
)
def test_an_unsupported_template_is_refused(tmp_path: Any, text: str) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(text)
    with pytest.raises(BadRequest, match="pod template"):
        read_template(path)
    with pytest.raises(BadRequest, match="cannot be read"):
        read_template(tmp_path / "none.yaml")


def test_an_empty_template_changes_nothing() -> None:
    pod = {"metadata": {}, "spec": {"containers": [{}]}}
    assert PodTemplate().apply(pod) is pod


def disk(pod: dict[str, Any], kind: str) -> str | None:
    return pod["spec"]["containers"][0]["resources"][kind].get("ephemeral-storage")


def test_disk_space_is_requested_by_memory_and_limited_to_the_share_of_the_node() -> None:
    """The planner counts memory, so the requests of all members of a node always fit."""
    offer = NodeOffer(gpus=8, efa=0, hugepages_mib=0, disk_mib=800_000)
    node_mem_mib = a_member().node_mem_mib
    member = a_member(gpu_indexes=(0, 1), mem_mib=node_mem_mib // 8, virtual=False)
    pod = a_pod(member, offer=offer)
    assert disk(pod, "requests") == "90000Mi"
    assert disk(pod, "limits") == "200000Mi"
    [home] = [v for v in pod["spec"]["volumes"] if v["name"] == "home"]
    assert home["emptyDir"] == {"sizeLimit": "200000Mi"}
    [run] = [v for v in pod["spec"]["volumes"] if v["name"] == "run"]
    assert "sizeLimit" in run["emptyDir"]
    assert disk(a_pod(member, offer=offer, tmp_mib=500_000), "limits") == "500000Mi"
    unknown = a_pod(member)
    assert disk(unknown, "requests") is disk(unknown, "limits") is None


def test_the_disk_space_that_all_members_of_a_node_request_never_exceeds_it() -> None:
    offer = NodeOffer(gpus=8, efa=0, hugepages_mib=0, disk_mib=100_000)
    whole = a_member()
    parts = [1, 3, whole.node_mem_mib // 2, whole.node_mem_mib - whole.node_mem_mib // 2 - 4]
    members = [a_member(gpu_indexes=(), mem_mib=part, virtual=False) for part in parts]
    asked = [disk(a_pod(member, offer=offer), "requests") or "0Mi" for member in members]
    assert sum(int(one.removesuffix("Mi")) for one in asked) <= 100_000


def test_autoscalers_do_not_remove_the_node_of_a_job_or_a_build() -> None:
    build = Build(
        id=7, attempt=1, digest="a" * 64, target="registry.example/builds", dockerfile="Dockerfile",
        uid=1001, made=False, started_at=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    own = BuildSettings(registry=build.target)
    job = job_of(build, BuildPlace(settings=own, term=1))
    server = a_pod(kind="reservation", ask={}, settings=PodSettings(dev_image="x:1"))
    for made in (a_pod(), server, job["spec"]["template"]):
        annotations = made["metadata"]["annotations"]
        assert annotations["karpenter.sh/do-not-disrupt"] == "true"
        assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
