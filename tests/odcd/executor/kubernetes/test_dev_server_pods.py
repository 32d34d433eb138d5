"""The pod of a dev server, as far as its user notices; and the meaning of its status."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import yaml

from odcd.clock import SystemClock
from odcd.errors import BadRequest, RunnerDown, WrongState
from odcd.executor.kubernetes import dev_server_pods, naming, notices
from odcd.executor.kubernetes.attempt_objects import dev_server_objects
from odcd.executor.kubernetes.checks import JobCheck
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster, Status
from odcd.executor.kubernetes.dev_server_files import FILES
from odcd.executor.kubernetes.dev_server_keys import make_keys
from odcd.executor.kubernetes.dev_server_pods import DevServerStorage
from odcd.executor.kubernetes.greeting import storage
from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.objects import Event, Pod
from odcd.executor.kubernetes.pod_phase import read_phase
from odcd.executor.kubernetes.pods import PodSettings, pod_of
from odcd.executor.kubernetes.progress import Progress
from odcd.executor.kubernetes.status import Seen, by_delete, read_pod, vanished
from odcd.records.dev_server import DevServerKeys
from odcd.records.dispatch import DiskUse, Dispatch, Fact, Notice
from odcd.records.job import ReservationSpec
from tests.support.builders.dispatches import a_dispatch_of, a_member
from tests.support.builders.jobs import ALICE

SETTINGS = PodSettings(dev_image="registry.example/dev:1.0")
NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
BEGAN, ENDED = "2026-01-01T12:00:00Z", "2026-01-01T12:00:20Z"
KEY = (7, 1, 0)
NOBODY = DevServerKeys(host_key="HOST-PRIVATE", host_public="ssh-ed25519 AAAA", gang_key="GANG",
                 gang_public="ssh-ed25519 BBBB", jupyter_token="T0KEN")  # fmt: skip


def a_dev_server(
    count: int = 1, gpus: int = 2, ask: dict[str, object] | None = None, **fields: Any
) -> Dispatch:  # fmt: skip
    members = tuple(
        a_member(rank, gpu_indexes=tuple(range(gpus)), cpus=40, mem_mib=8192, virtual=False)
        for rank in range(count)
    )
    dispatch, _ = a_dispatch_of(
        kind="reservation", ask=ask or {}, members=members, job_id=7, user="alice", **fields
    )  # fmt: skip
    return dispatch


def pod_for(
    dispatch: Dispatch, rank: int = 0, *, efa: int = 0, **storage: Any
) -> dict[str, Any]:  # fmt: skip
    offer = NodeOffer(gpus=8, efa=efa, hugepages_mib=10_256 if efa else 0)
    offers = {member.node: offer for member in dispatch.members}
    submitted = {"SHELL": "/bin/zsh", "ODC_SERVER": "/run/odc/odcd.sock"}
    settings = replace(SETTINGS, storage=DevServerStorage(**storage))
    return pod_of(dispatch, dispatch.members[rank], submitted, offers, settings)


def variables(pod: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"]}


# -- the pod --------------------------------------------------------------------------------------


def test_a_dev_server_restarts_in_place_and_is_ready_when_ssh_answers() -> None:
    """LIF-26, POD-01, POD-02, POD-12"""
    pod = pod_for(a_dev_server())
    assert pod["metadata"]["namespace"] == "gpu-dev"
    assert pod["spec"]["restartPolicy"] == "OnFailure"
    [container] = pod["spec"]["containers"]
    assert container["name"] == "gpu-dev"
    assert container["image"] == "registry.example/dev:1.0"
    assert container["readinessProbe"]["tcpSocket"] == {"port": 2222}
    assert container["command"] == ["/bin/sh", "/odc/job/start"]
    assert pod["spec"]["securityContext"]["runAsUser"] == 0
    added = container["securityContext"]["capabilities"]["add"]
    assert not {"SYS_ADMIN", "NET_ADMIN", "NET_RAW", "SYS_PTRACE", "IPC_LOCK"} & set(added)


def test_the_pod_restarts_on_failure_and_has_time_to_end() -> None:
    """POD-03: a grace period of 30 seconds, and no hook that would need more."""
    spec = pod_for(a_dev_server())["spec"]
    assert spec["restartPolicy"] == "OnFailure"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert "lifecycle" not in spec["containers"][0]


def test_labels_of_a_pod_name_job_attempt_and_rank() -> None:
    """POD-08, POD-09: the cluster alone tells a new leader which member a pod is."""
    dispatch = a_dev_server(2, 8)
    pods = [pod_for(dispatch, rank) for rank in (0, 1)]
    assert [
        tuple(
            pod["metadata"]["labels"][f"odc.dev/{name}"] for name in ("job-id", "attempt", "rank")
        )
        for pod in pods
    ] == [("7", "1", "0"), ("7", "1", "1")]
    assert [naming.key_of(msgspec.convert(pod, Pod)) for pod in pods] == [(7, 1, 0), (7, 1, 1)]


def test_members_resolve_each_other_before_they_are_ready() -> None:
    """MNE-06: by the shipped headless service, on any port; so rank 0 needs no probe to be found
    on port 29500."""
    folder = Path(__file__).parents[4] / "k8s" / "base"
    services = {
        one["metadata"]["name"]: one["spec"]
        for one in yaml.safe_load_all((folder / "services.yaml").read_text())
    }
    pod = pod_for(a_dev_server(2, 8), 1)
    service = services[pod["spec"]["subdomain"]]
    assert pod["spec"]["hostname"] == pod["metadata"]["name"]
    assert service["clusterIP"] == "None"
    assert service["publishNotReadyAddresses"] is True
    assert service["selector"].items() <= pod["metadata"]["labels"].items()


def test_the_pod_is_bound_to_its_node_and_tolerates_gpu_nodes() -> None:
    """POD-04: type and zone are those of its node."""
    pod = pod_for(a_dev_server())
    gpu = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert gpu in pod["spec"]["tolerations"]
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-01"]}]
    }


def test_volumes_have_sizes_and_keys_are_not_readable_by_others() -> None:
    """POD-06, POD-07, STO-32, STO-33: scratch, and more shared memory than the usual 64 MB."""
    pod = pod_for(a_dev_server())
    volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
    assert volumes["home"]["emptyDir"] == {}
    assert volumes["workspace"]["emptyDir"] == {"sizeLimit": "100Gi"}
    assert volumes["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "4096Mi"}
    assert volumes["keys"]["secret"]["defaultMode"] == 0o400
    places = {m["name"]: m["mountPath"] for m in pod["spec"]["containers"][0]["volumeMounts"]}
    assert (places["home"], places["workspace"]) == ("/home/dev", "/workspace")
    assert "fsGroup" not in pod["spec"]["securityContext"]


HOME_VOLUME = {"name": "home", "persistentVolumeClaim": {"claimName": "odc-volume-12"}}
DISK = DiskUse(claim="odc-volume-12", name="main", first=False)


def storage_of(pod: dict[str, Any]) -> dict[str, str | None]:
    """The claim by mount path, or None for storage that ends with the pod."""
    claims = {
        one["name"]: one.get("persistentVolumeClaim", {}).get("claimName")
        for one in pod["spec"]["volumes"]
    }
    mounts = pod["spec"]["containers"][0]["volumeMounts"]
    return {one["mountPath"]: claims[one["name"]] for one in mounts}


def test_the_disk_is_the_home_of_rank_0_and_its_files_are_not_scanned() -> None:
    """STO-36, MNE-10, POD-11, BUG-27: other ranks have a temporary home; no fsGroup anywhere."""
    dispatch = a_dev_server(2, 8, disk=DISK, personal="odc-personal-17")
    first, second = pod_for(dispatch), pod_for(dispatch, 1)
    assert storage_of(first)["/home/dev"] == "odc-volume-12"
    assert storage_of(second)["/home/dev"] is None
    for pod in (first, second):
        assert storage_of(pod)["/shared-personal"] == "odc-personal-17"
        assert not {"fsGroup", "fsGroupChangePolicy"} & pod["spec"]["securityContext"].keys()
    assert "/shared-personal" not in storage_of(pod_for(a_dev_server()))


def test_a_dev_server_starts_as_root_unless_it_keeps_its_entrypoint() -> None:
    """POD-11"""
    own = pod_for(a_dev_server(disk=DISK, ask={"preserve_entrypoint": True}))
    assert "runAsUser" not in own["spec"]["securityContext"]
    assert storage_of(own)["/home/dev"] == "odc-volume-12"
    assert pod_for(a_dev_server(disk=DISK))["spec"]["securityContext"]["runAsUser"] == 0


def test_caches_are_not_on_the_disk() -> None:
    """STO-39: downloaded models do not fill it."""
    env = variables(pod_for(a_dev_server(disk=DISK)))
    assert env["HF_HOME"] == "/workspace/.cache/huggingface"
    assert env["XDG_CACHE_HOME"] == "/workspace/.cache"
    assert env["CCACHE_DIR"].startswith("/workspace/")


def test_dev_servers_share_the_compiler_cache() -> None:
    """STO-30, STO-31: with an explicit size, because with 5 GB the built images of all users would
    be lost."""
    pod = pod_for(a_dev_server(), ccache_claim="ccache", ccache_gib=250)
    assert storage_of(pod)["/ccache_shared"] == "ccache"
    env = variables(pod)
    assert (env["CCACHE_DIR"], env["CCACHE_MAXSIZE"]) == ("/ccache_shared", "250G")
    assert env["CCACHE_UMASK"] == "000"


def test_a_login_lists_kept_and_lost_folders() -> None:
    """STO-34, STO-35: for each folder, and how fast it is."""
    dispatch = a_dev_server(2, 8, disk=DISK, personal="odc-personal-17")
    text = "\n".join(storage(dispatch, 0, 500, ccache=True))
    assert "/home/dev        KEPT: your disk main; a snapshot" in text
    assert "up to 500 MiB/s, under 1 ms" in text
    assert "/workspace       LOST" in text
    assert "/shared-personal KEPT" in text
    assert "100 MB/s to read and 50 to write, 10 ms" in text
    assert "/ccache_shared" in text
    others = "\n".join(storage(dispatch, 1, 500, ccache=False))
    assert "/home/dev        LOST at the end: your disk is the home of rank 0 alone" in others
    none = "\n".join(storage(a_dev_server(), 0, 500, ccache=False))
    assert "/home/dev        LOST at the end: this reservation has no disk" in none
    assert "/shared-personal" not in none
    new = storage(
        a_dev_server(disk=replace(DISK, first=True, name="a\x1b[2J")), 0, 500, ccache=False
    )
    assert "your disk a[2J, which is new;" in new[0]
    assert all(len(line) <= 100 for line in (*text.splitlines(), *new))


def test_only_whole_nodes_get_efa() -> None:
    """MNE-11, MNE-16: NCCL gets a list of interfaces not to use; it detects everything
    else."""
    whole = pod_for(a_dev_server(2, 8), efa=32)["spec"]["containers"][0]
    assert whole["resources"]["limits"]["vpc.amazonaws.com/efa"] == "32"
    assert "IPC_LOCK" in whole["securityContext"]["capabilities"]["add"]
    env = {one["name"]: one["value"] for one in whole["env"]}
    assert env["FI_PROVIDER"] == "efa"
    assert env["NCCL_SOCKET_IFNAME"] == "^lo,docker"
    assert env["NCCL_IB_HCA"] == "^mlx5"
    assert env["NCCL_CROSS_NIC"] == "1"
    assert not {"FI_EFA_USE_DEVICE_RDMA", "NCCL_ALGO"} & set(env), "where it works it is used"
    part = pod_for(a_dev_server(1, 4), efa=32)["spec"]["containers"][0]
    assert "vpc.amazonaws.com/efa" not in part["resources"]["limits"]


def test_sys_admin_is_only_for_profiling_reservations() -> None:
    """SEC-05: only those; NVIDIA's capabilities are the usual ones."""
    pod = pod_for(a_dev_server(ask={"labels": {"nsight": "true"}}))
    [container] = pod["spec"]["containers"]
    assert container["securityContext"]["capabilities"]["add"][-1] == "SYS_ADMIN"
    assert pod["spec"]["nodeSelector"] == {"nsight": "true"}
    assert variables(pod)["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    for other in (a_dev_server(), a_dev_server(ask={"labels": {"nsight": "false", "x": "true"}}),
                  a_dev_server(gpus=0, ask={"labels": {"nsight": "true"}})):  # fmt: skip
        assert "SYS_ADMIN" not in str(pod_for(other))
        assert "nodeSelector" not in pod_for(other)["spec"]


def test_members_have_resolvable_names_of_each_other() -> None:
    """MNE-05, MNE-08, MNE-24, CON-07"""
    dispatch = a_dev_server(2, 8)
    env = variables(pod_for(dispatch, 1))
    domain = "gpu-dev-headless.gpu-dev.svc.cluster.local"
    assert env["MULTINODE_HOSTS"] == f"odc-7-1-0.{domain},odc-7-1-1.{domain}"
    assert env["MULTINODE_PEER_PODS"] == "odc-7-1-0,odc-7-1-1"
    assert (env["MULTINODE_RANK"], env["MULTINODE_SIZE"]) == ("1", "2")
    assert (env["MASTER_ADDR"], env["MASTER_PORT"]) == (f"odc-7-1-0.{domain}", "29500")
    assert "MULTINODE_RANK" not in variables(pod_for(a_dev_server()))


def test_variables_of_the_daemon_are_not_passed_and_thread_counts_match_the_share() -> None:
    """IMG-21"""
    env = variables(pod_for(a_dev_server()))
    assert not {"SHELL", "ODC_SERVER", "HOME", "PATH", "USER"} & env.keys()
    assert env["OMP_NUM_THREADS"] == env["MAX_JOBS"] == env["ODC_CPUS"] == "40"
    assert env["SLURM_JOB_ID"] == env["ODC_JOB_ID"] == "7"


def test_an_image_that_keeps_its_entrypoint_is_not_changed() -> None:
    """IMG-18"""
    ask: dict[str, object] = {"preserve_entrypoint": True}
    pod = pod_for(a_dev_server(ask=ask, options={"image": "own/thing:1"}))
    [container] = pod["spec"]["containers"]
    assert container["image"] == "own/thing:1"
    assert not {"command", "args", "readinessProbe", "workingDir"} & container.keys()
    assert "runAsUser" not in pod["spec"]["securityContext"]
    assert "keys" not in {one["name"] for one in pod["spec"]["volumes"]}
    [(place, _)] = dev_server_objects(
        a_dev_server(ask=ask), NOBODY, "gpu-dev", "uid", DevServerStorage()
    )
    assert place == "configmaps"


def test_keys_go_into_a_secret_and_no_user_text_into_a_program() -> None:
    """BUG-30, MNE-09, ACC-01"""
    line = 'ssh-ed25519 AAAA "$(touch x)"'
    dispatch = a_dev_server(2, 8, ask={"ssh_keys": [line, "ssh-rsa BBBB"]}, name='x$(id)\x1b[2J"')
    made = dict(dev_server_objects(dispatch, NOBODY, "gpu-dev", "the-uid", DevServerStorage()))
    files, secret = made["configmaps"]["data"], made["secrets"]["stringData"]
    assert {name: files[name] for name in FILES} == dict(FILES)
    assert files["authorized_keys"] == f"{line}\nssh-rsa BBBB\n"
    assert files["hostfile"] == "odc-7-1-0 slots=8\nodc-7-1-1 slots=8\n"
    assert files["known_hosts"] == "odc ssh-ed25519 AAAA\n"
    assert "x$(id)[2J" in files["motd"]
    assert "\x1b" not in files["motd"]
    assert (secret["host"], secret["gang"]) == ("HOST-PRIVATE", "GANG")
    assert "HOST-PRIVATE" not in str(files)
    assert secret["jupyter"] == "T0KEN"
    assert "T0KEN" not in str(files) + str(pod_for(dispatch))
    assert files["jupyter_wish"] == "off\n"
    alone = dict(dev_server_objects(a_dev_server(), NOBODY, "gpu-dev", "u", DevServerStorage()))
    assert set(alone["secrets"]["stringData"]) == {"host", "jupyter"}
    for one in made.values():
        [owner] = one["metadata"]["ownerReferences"]
        assert (owner["name"], owner["uid"], one["immutable"]) == ("odc-7-1-0", "the-uid", True)


def test_host_keys_are_in_the_format_of_openssh() -> None:
    """ACC-24"""
    made = make_keys()
    assert made.host_key.startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert made.host_public.startswith("ssh-ed25519 AAAA")
    assert len({made.host_key, made.gang_key, make_keys().host_key}) == 3


@pytest.mark.parametrize("name", [name for name in FILES if "_config" not in name])
def test_programs_are_portable_shell(name: str) -> None:
    """BUG-30"""
    done = subprocess.run(
        ["/bin/sh", "-n"], input=FILES[name], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


# -- what may be asked for ------------------------------------------------------------------------


def a_spec(**fields: Any) -> ReservationSpec:
    return ReservationSpec(script="#!/bin/sh\n", work_dir="/", **fields)


def test_a_dev_server_without_image_is_refused_without_a_default_image() -> None:
    with pytest.raises(BadRequest, match="no container image") as refused:
        JobCheck("job:1")(ALICE, a_spec())
    assert "ODC_DEV_IMAGE" in str(refused.value.hint)
    JobCheck(None, "dev:1")(ALICE, a_spec(pty=True))
    JobCheck(None, None)(ALICE, a_spec(image="own:1"))


def test_a_moving_image_is_refused() -> None:
    """IMG-15"""
    with pytest.raises(BadRequest, match="is not a fixed image"):
        JobCheck(None, "dev:1")(ALICE, a_spec(image="own:latest"))


# -- its status -----------------------------------------------------------------------------------


def running(at: str = BEGAN) -> dict[str, Any]:
    return {"running": {"startedAt": at}}


def ended(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    terminated = {"exitCode": code, "reason": reason, "message": message}
    return {"terminated": {**terminated, "startedAt": BEGAN, "finishedAt": ENDED}}


def a_pod(
    state: dict[str, Any] | None = None, *, ready: bool = False, phase: str = "Running",
    last: dict[str, Any] | None = None, restarts: int = 0, members: int = 1, **more: Any,
) -> Pod:  # fmt: skip
    container = {
        "name": "gpu-dev", "state": state or {}, "lastState": last or {}, "restartCount": restarts,
    }  # fmt: skip
    conditions = [{"type": "Ready", "status": str(ready), "lastTransitionTime": BEGAN}]
    return msgspec.convert(
        {
            "metadata": {
                "name": "odc-7-1-0", "namespace": "gpu-dev", "uid": "u",
                "labels": {"app.kubernetes.io/managed-by": "odcd", "odc.dev/kind": "reservation"},
                "annotations": {"odc.dev/members": str(members)}, **more.pop("metadata", {}),
            },
            "spec": {"nodeName": "n1", "containers": [{"name": "gpu-dev"}], **more.pop("spec", {})},
            "status": {
                "phase": phase, "conditions": [*conditions, *more.pop("conditions", [])],
                "containerStatuses": [container] if state is not None else [], **more,
            },
        },
        Pod,
    )  # fmt: skip


def seen(*args: Any, **more: Any) -> Seen:
    return read_pod(a_pod(*args, **more), KEY, NOW)


def test_a_dev_server_has_started_only_when_it_is_ready() -> None:
    """LIF-09, BUG-25"""
    assert seen(running()).begun is None
    begun = seen(running(), ready=True).begun
    assert begun is not None
    assert begun.kind == "started"


@pytest.mark.parametrize(
    ("pod", "kind", "says"),
    [
        (a_pod(ended(137), phase="Failed", reason="Evicted", message="low on memory"), "lost",
         "low on memory"),
        (a_pod(ended(0, "Completed"), phase="Succeeded"), "exited", ""),
        (a_pod(running(), phase="Failed", reason="NodeLost", message="gone"), "lost", "gone"),
        (a_pod(ended(137), conditions=[{"type": "DisruptionTarget", "status": "True",
                                        "reason": "EvictionByEvictionAPI", "message": "drained"}]),
         "lost", "drained"),
    ],
    ids=["evicted", "ended-by-itself", "node-lost", "disrupted"],
)  # fmt: skip
def test_a_dead_pod_is_an_end(pod: Pod, kind: str, says: str) -> None:
    """LIF-13, BUG-26"""
    end = read_pod(pod, KEY, NOW).end
    assert end is not None
    assert end.kind == kind
    assert says in (end.detail or "")


@pytest.mark.parametrize("code", [0, 137, 143])
def test_a_pod_deleted_by_others_is_lost(code: int) -> None:
    """LIF-12"""
    meta = {"deletionTimestamp": "2026-01-01T12:00:25Z", "deletionGracePeriodSeconds": 10}
    pod = a_pod(ended(code), phase="Succeeded" if code == 0 else "Failed", metadata=meta)
    end = read_pod(pod, KEY, NOW).end
    assert end is not None
    assert by_delete(pod, end).kind == "lost"


@pytest.mark.parametrize(
    ("pod", "cause", "says"),
    [
        (a_pod({"waiting": {"reason": "CrashLoopBackOff"}}, restarts=1,
               last=ended(78, message="x\nodc: its container does not run as root\n")), None,
         "its container does not run as root"),
        (a_pod({"waiting": {"reason": "CrashLoopBackOff"}}, restarts=1,
               last=ended(128, "StartError", 'exec: "/bin/sh": no such file')), None,
         "no such file"),
        (a_pod({"waiting": {"reason": "CrashLoopBackOff"}}, restarts=3, last=ended(1)), "launch",
         "ended 3 times before it was ready: exit code 1"),
        (a_pod({"waiting": {"reason": "ErrImagePull", "message": "x: not found"}},
               phase="Pending"), None, "not found"),
    ],
    ids=["unfit", "no-shell", "crashes", "no-image"],
)  # fmt: skip
def test_a_dev_server_that_can_never_be_ready_fails_with_the_message(
    pod: Pod, cause: str | None, says: str
) -> None:
    """IMG-19, LIF-18, LIF-19"""
    hopeless = read_pod(pod, KEY, NOW).hopeless
    assert hopeless is not None
    assert (hopeless.kind, hopeless.cause) == ("start_failed", cause)
    assert says in (hopeless.detail or "")


@pytest.mark.parametrize("restarts", [1, 2])
def test_a_crashed_container_is_restarted(restarts: int) -> None:
    assert seen({"waiting": {}}, last=ended(1), restarts=restarts).hopeless is None


def test_a_dev_server_that_was_ready_is_never_given_up() -> None:
    """LIF-11, LIF-14: neither by the leader that saw it ready, nor by one that does not know."""
    crashing = a_pod({"waiting": {"reason": "CrashLoopBackOff"}}, restarts=9, last=ended(1))
    members = Members(SystemClock(), Ledger())
    assert members.see(crashing, KEY) is None, "it is not known yet which members were ready before"
    members.knows = True
    members.begun.add(KEY)
    assert members.see(crashing, KEY) is None
    assert KEY not in members.unstarted
    members.begun.clear()
    assert members.see(crashing, KEY) is not None


def test_a_vanished_dev_server_is_lost_if_it_was_ready() -> None:
    """LIF-12"""
    assert vanished(a_pod(running()), KEY, NOW, begun=True).kind == "lost"
    assert vanished(a_pod(running()), KEY, NOW).kind == "start_failed"


@pytest.mark.parametrize(
    ("pod", "news", "phase", "says"),
    [
        (a_pod(spec={"schedulingGates": [{"name": "odc.dev/gang"}], "nodeName": ""}), None,
         "scheduling", "all members"),
        (a_pod(spec={"nodeName": ""}, conditions=[{"type": "PodScheduled", "status": "False",
               "message": "0/3 nodes are available"}]), None, "scheduling", "0/3 nodes"),
        (a_pod(spec={"nodeName": "", "volumes": [HOME_VOLUME]}, conditions=[{
               "type": "PodScheduled", "status": "False", "message":
               'persistentvolumeclaim "odc-volume-12" not found'}]), None, "scheduling",
         "its disk is being created"),
        (a_pod({"waiting": {"reason": "ContainerCreating"}}), None, "init", "volumes"),
        (a_pod({"waiting": {"reason": "ContainerCreating"}}), ("Pulling", "Pulling image x"),
         "image_pull", "Pulling image x"),
        (a_pod({"waiting": {"reason": "ContainerCreating"}}), ("Pulled", "Pulled it"), "init", ""),
        (a_pod({"waiting": {"reason": "ContainerCreating"}}), ("FailedMount", "no keys"), "init",
         "FailedMount: no keys"),
        (a_pod({"waiting": {"reason": "ImagePullBackOff", "message": "503"}}), None, "image_pull",
         "ImagePullBackOff: 503"),
        (a_pod(running()), None, "ssh", "SSH does not answer yet"),
        (a_pod({"waiting": {}}, last=ended(137, "OOMKilled"), restarts=1), None, "ssh",
         "OOMKilled, signal 9"),
    ],
    ids=["gated", "unscheduled", "disk", "creating", "pulling", "pulled", "mount", "backoff",
         "running", "crashed"],
)  # fmt: skip
def test_the_reason_for_waiting_has_a_phase_and_a_sentence(
    pod: Pod, news: tuple[str, str] | None, phase: str, says: str
) -> None:
    """POD-14, IMG-19, BUG-36"""
    reported = read_phase(pod, news)
    assert reported[0] == phase
    assert says in reported[1]


# -- progress -------------------------------------------------------------------------------------


class Reporter:
    def __init__(self) -> None:
        self.ledger = Ledger()
        self.members = Members(SystemClock(), self.ledger)
        self.members.knows = True
        self.ooms: list[Fact] = []
        self.progress = Progress(
            self.members, self.ledger, SystemClock(), lambda _, fact: self.ooms.append(fact)
        )

    def see(self, pod: Pod) -> None:
        self.members.see(pod, KEY)
        self.progress.see(pod, KEY)

    def take(self) -> list[tuple[str, str | None]]:
        """The new facts."""
        self.ledger.wake()
        facts = asyncio.run(self.ledger.take())
        self.ledger.acknowledge(facts)
        return [(fact.kind, fact.detail) for fact in facts]


def test_a_phase_is_reported_once_with_its_last_message() -> None:
    """POD-14"""
    reporter = Reporter()
    reporter.see(a_pod({"waiting": {"reason": "ContainerCreating"}}, phase="Pending"))
    reporter.see(a_pod({"waiting": {"reason": "ContainerCreating"}}, phase="Pending"))
    assert [kind for kind, _ in reporter.take()] == ["init"]
    for message in ("503", "504"):
        waiting = {"waiting": {"reason": "ErrImagePull", "message": message}}
        reporter.see(a_pod(waiting, phase="Pending"))
    assert reporter.take() == [("image_pull", "ErrImagePull: 504")]
    reporter.see(a_pod(running()))
    reporter.see(a_pod(running(), ready=True))
    assert [kind for kind, _ in reporter.take()] == ["ssh", "started"]


def test_a_ready_member_waits_for_the_others() -> None:
    """MNE-22"""
    reporter = Reporter()
    reporter.see(a_pod(running(), ready=True, members=2))
    assert [kind for kind, _ in reporter.take()] == ["started", "gang_barrier"]


def test_an_out_of_memory_kill_is_reported_once_with_its_time() -> None:
    """LIF-14, EXP-15"""
    reporter = Reporter()
    reporter.see(a_pod(running(), ready=True))
    reporter.take()
    oom = ended(137, "OOMKilled")
    reporter.see(a_pod({"waiting": {"reason": "CrashLoopBackOff"}}, last=oom, restarts=1))
    assert reporter.ooms == []
    for _ in range(3):
        reporter.see(a_pod(running(), ready=True, last=oom, restarts=1))
    assert reporter.take() == [("oom", "OOMKilled, signal 9")]
    assert [fact.at.isoformat() for fact in reporter.ooms] == ["2026-01-01T12:00:20+00:00"]


def test_events_of_kubelet_are_shown_in_their_order() -> None:
    """POD-14: the last one counts, in whatever order they come."""
    reporter = Reporter()
    reporter.see(a_pod({"waiting": {"reason": "ContainerCreating"}}, phase="Pending"))
    reporter.take()
    first, second = (
        msgspec.convert(
            {
                "metadata": {"name": name},
                "reason": name,
                "message": f"it is {name}",
                "involvedObject": {"kind": "Pod", "uid": "u"},
                "lastTimestamp": at,
            },
            Event,
        )
        for name, at in (("FailedMount", BEGAN), ("Pulling", ENDED))
    )
    reporter.progress.on_event(None, second)
    reporter.progress.on_event(None, first)
    assert reporter.take() == [("image_pull", "it is Pulling")]
    scheduler = msgspec.structs.replace(
        first, reason="Scheduled", last_timestamp=None, event_time=NOW.replace(microsecond=9)
    )
    kubelet = msgspec.structs.replace(second, message="of that second", last_timestamp=NOW)
    reporter.progress.on_event(None, scheduler)
    reporter.progress.on_event(None, kubelet)
    assert reporter.take()[-1] == ("image_pull", "of that second")
    reporter.progress.on_event(kubelet, None)
    reporter.see(a_pod({"waiting": {"reason": "ContainerCreating"}}, phase="Pending"))
    assert [kind for kind, _ in reporter.take()] == ["init"]


# -- notices --------------------------------------------------------------------------------------


class Answering:
    """A cluster whose containers answer in turn: None: done; a text: failed; an error: raised."""

    def __init__(self, *answers: str | Exception | None) -> None:
        self._answers = list(answers)
        self.commands: list[Sequence[str]] = []

    async def execute(
        self, namespace: str, pod: str, container: str, command: Sequence[str], timeout_s: float
    ) -> str | None:
        self.commands.append(command)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def send_notice(cluster: Answering, *pods: Pod, **notice: Any) -> None:
    asyncio.run(notices.notify(cast("Cluster", cluster), pods, 7, Notice(**notice)))


def test_a_notice_is_passed_as_arguments_of_a_fixed_program() -> None:
    """EXP-16"""
    cluster = Answering(None)
    send_notice(cluster, a_pod(running()), name="W.txt", text='"$(id)"; `x`', remove=["OLD.txt"])
    assert cluster.commands == [
        ["/bin/sh", "/odc/job/tell", "W.txt", '"$(id)"; `x`', "", "OLD.txt"]
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/passwd", "a\0b", "é" * 128])
def test_an_invalid_file_name_is_refused(name: str) -> None:
    for notice in ({"name": name}, {"remove": [name]}):
        with pytest.raises(ValueError, match="file name"):
            send_notice(Answering(), a_pod(running()), **notice)


REFUSED = ApiRefused(403, Status(message="forbidden"), None)


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([None, None], None),
        ([None, "no space left"], None),
        (["no space left", "no space left"], WrongState),
        ([REFUSED, REFUSED], WrongState),
        ([RunnerDown("away"), None], RunnerDown),
        ([ApiRefused(504, Status(), None), None], RunnerDown),
    ],
    ids=["both", "one", "none", "refused", "one-is-away", "its-node-is"],
)
def test_a_notice_goes_to_all_members(answers: list[Any], error: type[Exception] | None) -> None:
    """MNE-20"""
    pods = [a_pod(running()), a_pod(running())]
    if error is None:
        send_notice(Answering(*answers), *pods, text="x")
    else:
        with pytest.raises(error):
            send_notice(Answering(*answers), *pods, text="x")


def test_a_notice_to_a_restarting_container_is_retried_later() -> None:
    with pytest.raises(RunnerDown):
        send_notice(Answering(), a_pod({"waiting": {}}, last=ended(1), restarts=1), text="x")
    with pytest.raises(WrongState):
        send_notice(Answering(), a_pod(ended(1), phase="Failed"), text="x")


def test_the_oom_notice_has_the_name_that_gpu_dev_gave_it() -> None:
    """EXP-15"""
    at = NOW - timedelta(seconds=10)
    notice = notices.oom_notice(
        Fact(job_id=7, attempt=1, rank=0, kind="oom", at=at, detail="OOMKilled")
    )
    assert notice.name == "OOM_DETECTED.txt"
    assert "2026-01-01 12:00:20 UTC" in notice.text


def test_ssh_keys_that_are_not_a_list_are_ignored() -> None:
    dispatch = replace(a_dev_server(), ask={"ssh_keys": "no list"})
    assert dev_server_pods.ssh_keys(dispatch) == []
