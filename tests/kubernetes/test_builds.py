"""Images of users' Dockerfiles on a real control plane: the Job, its fence, and what becomes of it.

Where pods really run, `buildctl` and `buildkitd` are stand-ins for BuildKit's (kubelet/programs):
they check what they are given as BuildKit would, and run the steps; no image is made and none is
pushed. Containers have processes, files and users of their own, as in a cluster.
"""

from __future__ import annotations

import base64
import json
import re
import signal
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from odcd.builds.settings import BuildSettings
from odcd.executor.kubernetes.build_jobs import BuildPlace, credential_of, job_of
from odcd.records.build import Build
from tests.attack.test_build_registry import make_key
from tests.kubernetes.test_dev_servers import DevServerSite, a_github, open_folder
from tests.support.builders.pods import changed
from tests.support.fakes.github import ED25519
from tests.support.harness.controlplane.api import Manifest
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes
from tests.support.harness.daemon import wait
from tests.support.harness.database import TestServer
from tests.support.harness.kube import ODCD, Kube
from tests.support.harness.stacks import on_kubernetes

__all__ = ["open_folder"]

pytestmark = pytest.mark.long

JOBS = "/apis/batch/v1/namespaces/gpu-builds/jobs"
PODS = "/api/v1/namespaces/gpu-builds/pods"
REGISTRY = "registry.example/builds"
CREDENTIAL = {"auths": {REGISTRY.partition("/")[0]: {"auth": "c2VjcmV0LW9mLXRoZS1wdXNo"}}}
LOOK = """FROM busybox
RUN id; env; cat /proc/mounts; find / -xdev -name config.json -path '*registry*' 2>/dev/null || true
RUN cat /odc/registry/config.json /odc/build/* 2>/dev/null; ls -laR /odc 2>/dev/null || true
RUN cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null || true
RUN cat /proc/[0-9]*/root/odc/registry/* 2>/dev/null || true
"""
"""A Dockerfile whose steps look for the credential in files, variables and other processes."""
BUILDER = "system:serviceaccount:kube-system:job-controller"
BUILD = Build(
    id=7, attempt=1, digest="a" * 64, target=REGISTRY, dockerfile="Dockerfile", uid=1001,
    made=False, started_at=datetime(2026, 1, 1, tzinfo=UTC),
)  # fmt: skip


class BuildSite(DevServerSite):
    """A stack that builds images."""

    def folder(self, dockerfile: str, **files: str) -> Path:
        folder = self.stack.odc.work / "box"
        folder.mkdir(exist_ok=True)
        (folder / "Dockerfile").write_text(dockerfile)
        for name, text in files.items():
            (folder / name).write_text(text)
        return folder

    def build(self, dockerfile: str, *more: str, **files: str) -> int:
        """The reservation that waits for the image."""
        path = self.folder(dockerfile, **files) / "Dockerfile"
        printed = self.stack(
            "reserve", "-t", "h100", "-g", "1", "-h", "1", "--github-user", "alice", "--no-wait",
            "--output", "quiet", "--dockerfile", str(path), *more,
        )  # fmt: skip
        return int(printed)

    def jobs(self) -> list[Manifest]:
        return self.api.items(JOBS)

    def job(self) -> Manifest:
        """The only job that has not ended."""

        def made() -> Manifest | None:
            found = [
                one
                for one in self.jobs()
                if not one["status"].get("conditions")
                and "deletionTimestamp" not in one["metadata"]
            ]
            return found[0] if len(found) == 1 else None

        return wait(made, lambda: f"{self.jobs()}{self.stack.log()}")

    def build_pod(self, job: Manifest) -> Manifest:
        selector = f"batch.kubernetes.io/job-name={job['metadata']['name']}"

        def bound() -> Manifest | None:
            found = [
                pod
                for pod in self.api.items(PODS, labelSelector=selector)
                if pod["spec"].get("nodeName") and pod["status"].get("phase") != "Failed"
            ]
            return found[0] if found else None

        return wait(bound, lambda: f"{self._events()}{self.stack.log()}")

    def _events(self) -> str:
        """Events of controllers and kubelets about builds."""
        events = self.api.items("/api/v1/namespaces/gpu-builds/events")
        return "".join(f"\n{one['reason']}: {one['message']}" for one in events)

    def end_build(self, pod: Manifest, code: int, message: str) -> None:
        """As kubelet would report it."""
        ended = {
            "exitCode": code, "reason": "Completed" if code == 0 else "Error", "message": message,
            "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:01:00Z",
        }  # fmt: skip
        container = {
            "name": "build", "image": pod["spec"]["containers"][0]["image"], "imageID": "",
            "ready": False, "started": False, "restartCount": 0,
            "state": {"terminated": ended}, "lastState": {},
        }  # fmt: skip
        status = {"phase": "Succeeded" if code == 0 else "Failed", "containerStatuses": [container]}
        self.api.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": status})

    def log_of(self, digest: str) -> str:
        environment = self.stack.odc.environment
        request = urllib.request.Request(
            f"{environment['ODC_SERVER']}/v1/builds/{digest}/log",
            headers={"Authorization": f"Bearer {environment['ODC_TOKEN']}"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    def image(self, reservation: int) -> str:
        """Of its container, once it was made."""
        return self.pod(reservation)["spec"]["containers"][0]["image"]


@pytest.fixture
def builds(
    shared_plane: ControlPlane, postgres_server: TestServer, nodes: Callable[..., list[str]],
    installed: Kube, open_folder: Path,
) -> Iterator[BuildSite]:  # fmt: skip
    """Pods of KWOK: the test says what becomes of those of builds."""
    names = nodes(h100=2)
    nodes(cpu_x86=1)
    yield from _site(shared_plane, postgres_server, names, open_folder)


def _site(
    plane: ControlPlane, postgres: TestServer, names: list[str], folder: Path, **more: str
) -> Iterator[BuildSite]:
    dsn = postgres.clone()
    template = folder / "template.yaml"
    template.write_text("annotations: {test.odc.dev/waiting: ContainerCreating}\n")
    settings = {
        "ODC_POD_TEMPLATE": str(template), "ODC_BUILD_REGISTRY": REGISTRY, **more,
    }  # fmt: skip
    try:
        kubeconfig = plane.account_kubeconfig("gpu-controlplane", "odcd")
        with (
            a_github(ED25519) as url,
            on_kubernetes(dsn, kubeconfig, names, ODC_GITHUB_URL=url, **settings) as stack,
        ):
            site = BuildSite(stack, plane.api)
            yield site
            stack("cancel", "--all", check=False)
            wait(lambda: not stack.json("queue")["jobs"], stack.log)
    finally:
        postgres.drop(dsn)
        for job in plane.api.items(JOBS):
            plane.api.delete(f"{JOBS}/{job['metadata']['name']}?propagationPolicy=Background")


def test_gpus_are_claimed_when_the_image_is_there(builds: BuildSite) -> None:
    """IMG-07, IMG-09, IMG-10, IMG-11, IMG-15, SEC-07: and it runs by its digest."""
    job_id = builds.build("FROM busybox\nCOPY . /x\n", data="hello")
    job = builds.job()
    spec = job["spec"]
    assert (spec["activeDeadlineSeconds"], spec["backoffLimit"]) == (900, 2)
    assert spec["ttlSecondsAfterFinished"] == 3600
    pod = builds.build_pod(job)
    assert pod["spec"]["nodeName"].startswith("cpu-x86")
    [container] = pod["spec"]["initContainers"]
    asks = container["resources"]
    assert asks["requests"] == {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "50Gi"}
    assert asks["limits"] == {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "500Gi"}
    assert "v0.34.2-rootless" in container["image"]
    name = job["metadata"]["name"]
    kept = builds.api.until(f"/api/v1/namespaces/gpu-builds/configmaps/{name}", lambda _: True)
    assert kept["immutable"]
    assert len(base64.b64decode(kept["binaryData"]["context.tar.gz"])) > 50
    assert "hello" not in json.dumps(pod["spec"])
    reservation = builds.show(job_id)
    assert (reservation["reason"], reservation["phase"], reservation["node_names"]) == (
        "ImageBuild",
        "image_build",
        [],
    )
    builds.end_build(pod, 0, f"sha256:{'e' * 64}")
    assert builds.image(job_id) == f"{REGISTRY}@sha256:{'e' * 64}"
    again = builds.build("FROM busybox\nCOPY . /x\n", data="hello")
    assert builds.image(again) == f"{REGISTRY}@sha256:{'e' * 64}"
    assert len(builds.jobs()) == 1


def test_a_wrong_dockerfile_fails_at_once_with_its_last_lines(builds: BuildSite) -> None:
    """IMG-07: a retry would not help."""
    job_id = builds.build("FROM busybox\nRUN make\n")
    pod = builds.build_pod(builds.job())
    builds.end_build(pod, 65, "#7 [2/2] RUN make\nmake: *** No rule\nexit code: 2")
    reservation = builds.until(job_id, "failed")
    assert "make: *** No rule" in reservation["failure_reason"]
    [job] = builds.jobs()
    assert job["status"]["failed"] == 1


def test_a_build_that_failed_because_of_the_network_is_retried(builds: BuildSite) -> None:
    """IMG-09: twice."""
    job_id = builds.build("FROM busybox\n")
    job = builds.job()
    builds.end_build(builds.build_pod(job), 1, "dial tcp: i/o timeout")
    builds.end_build(builds.build_pod(job), 0, f"sha256:{'e' * 64}")
    assert builds.image(job_id).endswith("e" * 64)


def test_a_build_continues_after_the_daemon_was_killed(builds: BuildSite) -> None:
    """BUG-23, LIF-19"""
    job_id = builds.build("FROM busybox\n")
    job = builds.job()
    builds.stack.kill(signal.SIGKILL)
    builds.end_build(builds.build_pod(job), 0, f"sha256:{'e' * 64}")
    builds.stack.start()
    assert builds.image(job_id).endswith("e" * 64)
    assert [one["metadata"]["uid"] for one in builds.jobs()] == [job["metadata"]["uid"]]


def test_the_build_ends_when_its_last_reservation_is_cancelled(builds: BuildSite) -> None:
    """IMG-08: a second reservation that waits for the same build keeps it."""
    first, second = builds.build("FROM busybox\n"), builds.build("FROM busybox\n")
    job = builds.job()
    builds.stack("cancel", str(first))
    builds.until(first, "cancelled")
    assert builds.job()["metadata"]["uid"] == job["metadata"]["uid"]
    builds.stack("cancel", str(second))
    wait(lambda: not builds.jobs(), builds.stack.log)


def test_a_build_reports_why_its_pod_cannot_be_created(builds: BuildSite) -> None:
    """LIF-16"""
    account = "/api/v1/namespaces/gpu-builds/serviceaccounts/build"
    kept = builds.api.get(account)
    builds.api.delete(account)
    try:
        job_id = builds.build("FROM busybox\n")
        why = 'serviceaccount "build" not found'
        builds.until_matches(job_id, lambda reservation: why in reservation["message"])
    finally:
        for field in ("resourceVersion", "uid", "creationTimestamp", "managedFields"):
            kept["metadata"].pop(field, None)
        builds.api.create(kept)


def test_reserve_reports_a_missing_build_registry(
    shared_plane: ControlPlane, postgres_server: TestServer, nodes: Callable[..., list[str]],
    installed: Kube, open_folder: Path,
) -> None:  # fmt: skip
    site = _site(shared_plane, postgres_server, nodes(h100=2), open_folder, ODC_BUILD_REGISTRY="")
    builds = next(site)
    path = builds.folder("FROM busybox\n") / "Dockerfile"
    output = builds.stack("reserve", "--no-wait", "--dockerfile", str(path), check=False)
    assert "an operator sets ODC_BUILD_REGISTRY" in output
    site.close()


@pytest.fixture
def real_builds(
    shared_plane: ControlPlane, postgres_server: TestServer, installed: Kube, open_folder: Path,
    processes: Callable[..., ProcessNodes], nodes: Callable[..., list[str]],
) -> Iterator[BuildSite]:  # fmt: skip
    """Builds really run, with the stand-in; dev servers are KWOK pods."""
    names = nodes(h100=2)
    processes(cpu_x86=1)
    shared_plane.api.create(
        {
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "push", "namespace": "gpu-builds"},
            "stringData": {".dockerconfigjson": json.dumps(CREDENTIAL)},
        }
    )  # fmt: skip
    yield from _site(shared_plane, postgres_server, names, open_folder, ODC_BUILD_SECRET="push")
    shared_plane.api.delete("/api/v1/namespaces/gpu-builds/secrets/push")


def test_a_real_build_completes(real_builds: BuildSite) -> None:
    """IMG-07, IMG-11, LIF-03: its steps are shown while it runs, its log afterwards."""
    job_id = real_builds.build(
        "FROM busybox\nCOPY . /x\nRUN cat data && while ! test -e /tmp/go-on; do sleep 0.2; done\n",
        data="what was sent",
    )
    reservation = real_builds.until_matches(
        job_id, lambda reservation: "image: step 3/3" in reservation["message"]
    )
    assert reservation["phase"] == "image_build"
    pod = real_builds.build_pod(real_builds.job())
    real_builds.stack("cancel", str(job_id))
    wait(lambda: not real_builds.jobs(), real_builds.stack.log)
    wait(lambda: not real_builds.api.items(PODS), real_builds.stack.log)
    assert pod["spec"]["nodeName"].startswith("real-cpu-x86")
    job_id = real_builds.build("FROM busybox\nRUN cat data && sleep 3\n", data="what was sent")
    image = real_builds.image(job_id)
    assert image.startswith(f"{REGISTRY}@sha256:")
    build = real_builds.call("GET", f"/v1/builds/{real_builds.show(job_id)['build']}")
    assert (build["image"], build["state"]) == (image, "completed")
    log = real_builds.log_of(build["digest"])
    assert "what was sent" in log
    assert "pushing layers" in log


def test_a_real_failed_build_reports_the_end_of_its_log(real_builds: BuildSite) -> None:
    """IMG-07"""
    job_id = real_builds.build("FROM busybox\nRUN echo too bad; exit 3\n")
    why = real_builds.until(job_id, "failed")["failure_reason"]
    assert "too bad" in why
    assert "exit code: 3" in why


def test_a_dockerfile_finds_no_credential(real_builds: BuildSite) -> None:
    """Neither in its own container nor through the processes that it sees."""
    job_id = real_builds.build(LOOK)
    real_builds.image(job_id)
    build = real_builds.call("GET", f"/v1/builds/{real_builds.show(job_id)['build']}")
    log = real_builds.log_of(build["digest"])
    assert "uid=1000" in log, "the steps ran"
    assert "buildkitd" in log, "and saw the processes of their container"
    assert "c2VjcmV0" not in log
    assert "DOCKER_CONFIG=" not in log


@pytest.fixture
def keyed_builds(
    shared_plane: ControlPlane, postgres_server: TestServer, installed: Kube, open_folder: Path,
    processes: Callable[..., ProcessNodes], nodes: Callable[..., list[str]],
) -> Iterator[BuildSite]:  # fmt: skip
    """Like real_builds, but each build has a credential of its own."""
    names = nodes(h100=2)
    processes(cpu_x86=1)
    key = open_folder / "key"
    make_key(key)
    for path in (key, *key.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield from _site(shared_plane, postgres_server, names, open_folder, ODC_BUILD_KEY=str(key))


def test_a_build_pushes_to_its_users_repository_and_its_steps_find_no_credential(
    keyed_builds: BuildSite,
) -> None:
    job_id = keyed_builds.build(LOOK)
    pod = keyed_builds.build_pod(keyed_builds.job())
    [named] = [one["secret"] for one in pod["spec"]["volumes"] if "secret" in one]
    assert named["secretName"] == pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
    image = keyed_builds.image(job_id)
    assert re.fullmatch(rf"{REGISTRY}/u\d+@sha256:[0-9a-f]{{64}}", image)
    build = keyed_builds.call("GET", f"/v1/builds/{keyed_builds.show(job_id)['build']}")
    log = keyed_builds.log_of(build["digest"])
    assert "uid=1000" in log, "the steps ran"
    assert "eyJ" not in log, "as every token begins"
    assert "registrytoken" not in log


# -- the fence ----------------------------------------------------------------------------------


def a_job() -> Manifest:
    place = BuildPlace(settings=BuildSettings(registry=REGISTRY, secret="push"), term=1)
    return job_of(BUILD, place)


def a_build_pod() -> Manifest:
    job = a_job()
    owner = {
        "apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": "1",
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    template = job["spec"]["template"]
    meta = {"namespace": "gpu-builds", "name": f"{job['metadata']['name']}-abcde"}
    meta |= {"labels": template["metadata"]["labels"], "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


def test_a_build_with_a_credential_of_its_own_is_admitted(installed: Kube) -> None:
    own = BuildSettings(registry=REGISTRY, key=Path("/unused"), user_namespaces=True)
    job = job_of(BUILD, BuildPlace(settings=own, term=1))
    odcd = installed.as_user(ODCD)
    assert odcd.refusal(job) == ""
    pod = a_build_pod() | {"spec": job["spec"]["template"]["spec"]}
    assert pod["spec"]["hostUsers"] is False
    assert installed.as_user(BUILDER).refusal(pod) == ""
    secret = credential_of(BUILD, own, json.dumps({"auths": {}}), "uid")
    assert odcd.refusal(secret) == ""


def test_only_odcd_can_create_builds(installed: Kube) -> None:
    """SEC-07"""
    assert installed.as_user(ODCD).refusal(a_job()) == ""
    assert "only odcd makes" in installed.refusal(a_job())
    longer = a_job()
    longer["spec"]["activeDeadlineSeconds"] = 7200
    assert "15 minutes" in installed.as_user(ODCD).refusal(longer)
    assert installed.as_user(BUILDER).refusal(a_build_pod()) == ""
    assert "which Kubernetes makes" in installed.refusal(a_build_pod())


# The difference from a build's pod, and the answer of the policies.
STRANGE: dict[str, tuple[str, Any, str]] = {
    "privileged": ("spec/initContainers/0/securityContext/privileged", True, "not privileged"),
    "root": ("spec/containers/0/securityContext/runAsUser", 0, "user 1000"),
    "BuildKit as root": ("spec/initContainers/0/securityContext/runAsUser", 0, "user 1000"),
    "the credential beside a Dockerfile's steps": (
        "spec/initContainers/0/volumeMounts/1", {"name": "registry", "mountPath": "/x"},
        "emptyDirs alone",
    ),
    "the context beside a Dockerfile's steps": (
        "spec/initContainers/0/volumeMounts/1", {"name": "context", "mountPath": "/x"},
        "emptyDirs alone",
    ),
    "a variable beside a Dockerfile's steps": (
        "spec/initContainers/0/env", [{"name": "DOCKER_CONFIG", "value": "/x"}], "emptyDirs alone",
    ),
    "shared processes": ("spec/shareProcessNamespace", True, "own network, processes"),
    "no sidecar": ("spec/initContainers", [], "a sidecar, named buildkit"),
    "BuildKit by TCP": (
        "spec/initContainers/0/args", ["--addr", "tcp://0.0.0.0:1234"], "its own program"
    ),
    "a privileged client": (
        "spec/containers/0/securityContext/allowPrivilegeEscalation", True, "is restricted"
    ),
    "a capability": (
        "spec/initContainers/0/securityContext/capabilities", {"add": ["SYS_ADMIN"]},
        "no capability",
    ),
    "the node's files": (
        "spec/volumes/1", {"name": "work", "hostPath": {"path": "/"}}, "volumes are"
    ),
    "another secret": (
        "spec/volumes/4", {"name": "registry", "secret": {"secretName": "push"}}, "volumes are"
    ),
    "another build's credential": (
        "spec/volumes/4",
        {
            "name": "registry",
            "secret": {
                "secretName": "odc-build-8-1-0123456789",
                "items": [{"key": ".dockerconfigjson", "path": "config.json"}],
            },
        },
        "volumes are",
    ),
    "another's context": (
        "spec/volumes/0",
        {"name": "context", "configMap": {"name": "odc-build-8-1-0123456789"}}, "volumes are",
    ),
    "another image": ("spec/containers/0/image", "busybox:1.37", "rootless BuildKit"),
    "not rootless": (
        "spec/containers/0/image", "docker.io/moby/buildkit:v0.34.2", "rootless BuildKit"
    ),
    "another program": ("spec/containers/0/command", ["/bin/sh", "-c", "id"], "build.sh"),
    "a token": ("spec/automountServiceAccountToken", True, "no token"),
    "the node's network": ("spec/hostNetwork", True, "own network"),
    "GPUs": ("spec/containers/0/resources/limits/nvidia.com~1gpu", "1", "asks for CPU"),
    "GPU nodes": (
        "spec/tolerations", [{"key": "nvidia.com/gpu", "operator": "Exists"}], "without GPUs"
    ),
    "any node": ("spec/affinity", {}, "without GPUs"),
    "a hook": (
        "spec/containers/0/lifecycle", {"preStop": {"exec": {"command": ["id"]}}}, "no hooks"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("path", "value", "why"), STRANGE.values(), ids=STRANGE)
def test_a_pod_that_differs_from_a_build_is_refused(
    installed: Kube, path: str, value: Any, why: str
) -> None:
    """SEC-07"""
    pod = changed(a_build_pod(), path, value)
    assert why in installed.as_user(BUILDER).refusal(pod)
