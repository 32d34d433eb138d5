"""Dev servers on a real control plane: their states, whatever happens to their pods."""

from __future__ import annotations

import json
import signal
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.support.fakes.github import ED25519
from tests.support.harness.controlplane.api import Api, Manifest
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.daemon import wait
from tests.support.harness.database import TestServer
from tests.support.harness.stacks import Stack, on_kubernetes

pytestmark = pytest.mark.long

PODS = "/api/v1/namespaces/gpu-dev/pods"
IMAGE = "registry.example/dev:1.0"


class DevServerSite:
    """The stack, its reservations over HTTP, and their pods' kubelet: the test."""

    def __init__(self, stack: Stack, api: Api) -> None:
        self.stack = stack
        self.api = api

    def call(self, method: str, path: str, body: object = None) -> Any:
        environment = self.stack.odc.environment
        request = urllib.request.Request(
            environment["ODC_SERVER"] + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {environment['ODC_TOKEN']}"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except HTTPError as error:
            return json.load(error)

    def reserve(self, **fields: Any) -> int:
        body = {"gpu_type": "h100", "gpus": 1, "github_user": "alice", **fields}
        reservation = self.call("POST", "/v1/reservations", body)
        assert "id" in reservation, reservation
        return reservation["id"]

    def show(self, job_id: int) -> dict[str, Any]:
        return self.call("GET", f"/v1/reservations/{job_id}")

    def until(self, job_id: int, status: str) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            reservation = self.show(job_id)
            return reservation if reservation["status"] == status else None

        return wait(reached, lambda: f"{self.show(job_id)}{self.stack.log()}")

    def until_matches(self, job_id: int, true: Callable[[dict[str, Any]], object]) -> Any:
        def reached() -> dict[str, Any] | None:
            reservation = self.show(job_id)
            return reservation if true(reservation) else None

        return wait(reached, lambda: f"{self.show(job_id)}{self.stack.log()}")

    def pods(self, job_id: int) -> list[Manifest]:
        found = self.api.items(PODS, labelSelector=f"odc.dev/job-id={job_id}")
        return sorted(found, key=lambda pod: pod["metadata"]["name"])

    def pod(self, job_id: int, rank: int = 0) -> Manifest:
        """After a node has accepted it."""

        def bound() -> Manifest | None:
            found = [
                pod
                for pod in self.pods(job_id)
                if pod["metadata"]["labels"]["odc.dev/rank"] == str(rank)
                and pod["spec"].get("nodeName")
                and pod["status"].get("containerStatuses")
            ]
            return found[0] if found else None

        return wait(bound, lambda: f"{self.show(job_id)}{self.stack.log()}")

    # -- what kubelet says ------------------------------------------------------------------------

    def say(
        self, pod: Manifest, state: dict[str, Any], *, ready: bool = False, phase: str = "Running",
        last: dict[str, Any] | None = None, restarts: int = 0,
    ) -> None:  # fmt: skip
        container = {
            "name": "gpu-dev", "image": IMAGE, "imageID": "", "ready": ready, "started": ready,
            "restartCount": restarts, "state": state, "lastState": last or {},
        }  # fmt: skip
        condition = {
            "type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now(),
        }  # fmt: skip
        kept = [c for c in pod["status"].get("conditions", []) if c["type"] != "Ready"]
        status = {
            "phase": phase, "containerStatuses": [container], "conditions": [*kept, condition]
        }  # fmt: skip
        self.api.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": status})

    def run(self, pod: Manifest, *, ready: bool = True, **more: Any) -> None:
        self.say(pod, {"running": {"startedAt": now()}}, ready=ready, **more)

    def set_waiting(self, pod: Manifest, reason: str, message: str = "") -> None:
        self.say(pod, {"waiting": {"reason": reason, "message": message}}, phase="Pending")

    def report_event(self, pod: Manifest, reason: str, message: str) -> None:
        meta = pod["metadata"]
        self.api.create(
            {
                "apiVersion": "v1", "kind": "Event",
                "metadata": {"generateName": f"{meta['name']}.", "namespace": "gpu-dev"},
                "involvedObject": {
                    "apiVersion": "v1", "kind": "Pod", "name": meta["name"],
                    "namespace": "gpu-dev", "uid": meta["uid"],
                },
                "reason": reason, "message": message, "type": "Normal",
                "firstTimestamp": now(), "lastTimestamp": now(),
                "source": {"component": "kubelet"},
            }
        )  # fmt: skip

    def active(self, **fields: Any) -> int:
        job_id = self.reserve(**fields)
        self.run(self.pod(job_id))
        self.until(job_id, "active")
        return job_id


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ended(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    terminated = {"exitCode": code, "reason": reason, "message": message, "startedAt": now()}
    return {"terminated": {**terminated, "finishedAt": now()}}


@contextmanager
def a_github(key: str, **others: str) -> Iterator[str]:
    """A GitHub where every user has this one key, except the others; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            name = self.path.removeprefix("/").removesuffix(".keys")
            self.wfile.write(f"{others.get(name, key)}\n".encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A daemon that drops root can read it, unlike tmp_path."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        made.chmod(0o755)
        yield made


@pytest.fixture
def site(
    shared_plane: ControlPlane, postgres_server: TestServer, nodes: Callable[..., list[str]],
    installed: object, open_folder: Path,
) -> Iterator[DevServerSite]:  # fmt: skip
    """Pods stay as they are until the test changes them."""
    names = nodes(h100=2)
    dsn = postgres_server.clone()
    template = open_folder / "template.yaml"
    template.write_text("annotations: {test.odc.dev/waiting: ContainerCreating}\n")
    try:
        kubeconfig = shared_plane.account_kubeconfig("gpu-controlplane", "odcd")
        settings = {"ODC_DEV_IMAGE": IMAGE, "ODC_POD_TEMPLATE": str(template)}
        with (
            a_github(ED25519) as url,
            on_kubernetes(dsn, kubeconfig, names, ODC_GITHUB_URL=url, **settings) as stack,
        ):
            site = DevServerSite(stack, shared_plane.api)
            yield site
            stack("cancel", "--all", check=False)
            wait(lambda: not stack.json("queue")["jobs"], stack.log)
    finally:
        postgres_server.drop(dsn)


def test_a_dev_server_is_reserved_extended_and_cancelled(site: DevServerSite) -> None:
    """LIF-02, LIF-06, LIF-09, LIF-23, POD-12: it is active when SSH answers, and then its time
    starts."""
    job_id = site.reserve(hours=1)
    pod = site.pod(job_id)
    assert site.until(job_id, "preparing")["expires_at"] is None
    site.run(pod, ready=False)
    reservation = site.until_matches(job_id, lambda reservation: reservation["phase"] == "ssh")
    assert "SSH does not answer yet" in reservation["message"]
    assert (reservation["status"], reservation["connect"]) == ("preparing", None)
    site.run(pod)
    reservation = site.until(job_id, "active")
    assert reservation["connect"] == "ssh"
    [host_key] = reservation["host_keys"]
    assert host_key.startswith("ssh-ed25519 ")
    phases = [phase["phase"] for phase in reservation["phases"]]
    assert phases[:2] == ["queued", "starting"]
    assert phases[-2:] == ["ssh", "active"]
    assert all(phase["took_s"] is not None for phase in reservation["phases"][:-1])
    extended = site.call("POST", f"/v1/reservations/{job_id}/extend", {"hours": 2})
    assert extended["expires_at"] > reservation["expires_at"]
    site.stack("cancel", str(job_id))
    assert site.until(job_id, "cancelled")["failure_reason"] is None
    wait(lambda: not site.pods(job_id), site.stack.log)


def test_a_dev_server_expires_to_the_second_and_its_pod_is_deleted(site: DevServerSite) -> None:
    """EXP-10, EXP-13: its end is not a failure."""
    job_id = site.active(hours=1)
    site.stack.sql(
        "update odc.reservation set expires_at = now() + interval '1 second', "
        "launched_at = now() - interval '1 hour'",
        "update odc.running set ends_at = now() + interval '2 seconds'",
        "update odc.allocation set ends_at = now() + interval '2 seconds'",
    )
    assert site.until(job_id, "expired")["failure_reason"] is None
    wait(lambda: not site.pods(job_id), site.stack.log)


def test_a_manually_deleted_pod_ends_an_active_dev_server_as_failed(site: DevServerSite) -> None:
    """LIF-12, LIF-13"""
    job_id = site.active()
    site.api.delete(f"{PODS}/{site.pod(job_id)['metadata']['name']}")
    reservation = site.until(job_id, "failed")
    assert reservation["failure_reason"] == "its pod was deleted by something other than odc"


def test_an_evicted_dev_server_fails(site: DevServerSite) -> None:
    """BUG-26, LIF-13"""
    job_id = site.active()
    name = site.pod(job_id)["metadata"]["name"]
    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}
    site.api.patch(f"{PODS}/{name}/status", {"status": status})
    assert "low on memory" in site.until(job_id, "failed")["failure_reason"]


def test_an_oom_killed_container_restarts_and_its_dev_server_stays_active(
    site: DevServerSite,
) -> None:
    """LIF-14, LIF-26, EXP-15: counted once, also by another leader."""
    job_id = site.active()
    pod = site.pod(job_id)
    oom = ended(137, "OOMKilled")
    site.say(pod, {"waiting": {"reason": "CrashLoopBackOff"}}, last=oom, restarts=1)
    site.run(pod, last=oom, restarts=1)
    reservation = site.until_matches(job_id, lambda reservation: reservation["oom_count"])
    assert (reservation["status"], reservation["oom_count"]) == ("active", 1)
    assert reservation["last_oom_at"] is not None
    assert any("ran out of memory" in one["text"] for one in reservation["history"])
    # The leader is killed while it restarts once more.
    site.say(
        pod, {"waiting": {"reason": "CrashLoopBackOff"}}, last=ended(1, message="x"), restarts=5
    )
    site.stack.kill(signal.SIGKILL)
    site.stack.start()
    site.run(pod, last=oom, restarts=5)
    other = site.active()
    reservation = site.show(job_id)
    assert (reservation["status"], reservation["oom_count"]) == ("active", 1), reservation
    assert site.show(other)["oom_count"] == 0


def test_a_dev_server_survives_kill_9_of_the_daemon_while_preparing_and_active(
    site: DevServerSite,
) -> None:
    """LIF-10, LIF-11: a restart changes nothing, and no second pod is made."""
    job_id = site.reserve()
    pod = site.pod(job_id)
    site.stack.kill(signal.SIGKILL)
    site.run(pod, ready=False)
    site.stack.start()
    site.until_matches(job_id, lambda reservation: reservation["phase"] == "ssh")
    site.stack.kill(signal.SIGKILL)
    site.run(pod)
    site.stack.start()
    reservation = site.until(job_id, "active")
    site.stack.kill(signal.SIGKILL)
    site.stack.start()
    assert site.until(job_id, "active")["expires_at"] == reservation["expires_at"]
    assert [one["metadata"]["uid"] for one in site.pods(job_id)] == [pod["metadata"]["uid"]]


def test_a_preparing_dev_server_shows_what_it_waits_for(site: DevServerSite) -> None:
    """POD-14, IMG-19, LIF-16"""
    job_id = site.reserve()
    pod = site.pod(job_id)
    site.report_event(pod, "FailedMount", 'MountVolume.SetUp failed for volume "keys"')
    reservation = site.until_matches(
        job_id, lambda reservation: "FailedMount" in reservation["message"]
    )
    assert reservation["phase"] == "init"
    site.report_event(pod, "Pulling", f'Pulling image "{IMAGE}"')
    reservation = site.until_matches(
        job_id, lambda reservation: reservation["phase"] == "image_pull"
    )
    assert f'Pulling image "{IMAGE}"' in reservation["message"]
    site.set_waiting(pod, "ImagePullBackOff", "Back-off pulling image: dial tcp: i/o timeout")
    site.until_matches(job_id, lambda reservation: "i/o timeout" in reservation["message"])
    assert site.show(job_id)["status"] == "preparing"


def test_a_missing_image_fails_at_once_with_the_message_of_the_registry(
    site: DevServerSite,
) -> None:
    """IMG-19, LIF-18"""
    job_id = site.reserve(image="missing/image:1")
    message = 'failed to resolve reference "docker.io/missing/image:1": not found'
    site.set_waiting(site.pod(job_id), "ImagePullBackOff", message)
    assert message in site.until(job_id, "failed")["failure_reason"]


def test_an_image_without_ssh_server_fails_with_the_reason(site: DevServerSite) -> None:
    job_id = site.reserve()
    message = "installing\nodc: the image has no SSH server, and none could be installed"
    site.say(
        site.pod(job_id), {"waiting": {"reason": "CrashLoopBackOff"}},
        last=ended(78, message=message),
        restarts=1,
    )  # fmt: skip
    reservation = site.until(job_id, "failed")
    assert (
        reservation["failure_reason"] == "the image has no SSH server, and none could be installed"
    )


def test_a_dev_server_is_active_when_all_its_members_are_ready(site: DevServerSite) -> None:
    """MNE-05, MNE-09, MNE-20..22: one key pair for all members, and a member that is behind is
    reported."""
    job_id = site.reserve(gpus=16, distributed=True)
    first, second = site.pod(job_id, 0), site.pod(job_id, 1)
    site.run(first)
    reservation = site.until_matches(
        job_id,
        lambda reservation: (
            reservation["phase"] == "init" and "pod 2 of 2" in reservation["message"]
        ),
    )
    assert reservation["status"] == "preparing"
    named = {
        volume["secret"]["secretName"]
        for pod in (first, second)
        for volume in pod["spec"]["volumes"]
        if "secret" in volume
    }
    [secret] = [site.api.get(f"/api/v1/namespaces/gpu-dev/secrets/{name}") for name in named]
    assert set(secret["data"]) == {"host", "gang", "gang.pub", "jupyter"}
    site.run(second)
    site.until(job_id, "active")
    site.api.delete(f"{PODS}/{second['metadata']['name']}")
    assert "deleted" in site.until(job_id, "failed")["failure_reason"]
    wait(lambda: not site.pods(job_id), site.stack.log)


def test_a_dev_server_that_keeps_its_entrypoint_needs_no_ssh(site: DevServerSite) -> None:
    """IMG-18"""
    job_id = site.reserve(image="example/own:1", preserve_entrypoint=True, github_user=None)
    pod = site.pod(job_id)
    [container] = pod["spec"]["containers"]
    assert "command" not in container
    assert "readinessProbe" not in container
    site.run(pod)
    assert site.until(job_id, "active")["connect"] is None


def test_host_keys_are_created_once_and_deleted_with_the_reservation(site: DevServerSite) -> None:
    """ACC-24, LIF-19: after an attempt that failed because of its node, the next one has the same
    key."""
    job_id = site.reserve()
    pod = site.pod(job_id)
    secret = f"/api/v1/namespaces/gpu-dev/secrets/{_secret_of(pod)}"
    site.api.until(secret, lambda one: one["data"]["host"])
    [first] = site.show(job_id)["host_keys"]
    site.api.delete(f"{PODS}/{pod['metadata']['name']}", grace_s=0)
    site.until_matches(
        job_id, lambda reservation: reservation["status"] == "queued" or reservation["attempt"] == 2
    )
    assert site.show(job_id)["host_keys"] == [first]
    site.stack("cancel", str(job_id))
    site.until(job_id, "cancelled")
    site.until_matches(job_id, lambda reservation: reservation["host_keys"] == [])


def _secret_of(pod: Manifest) -> str:
    return next(v["secret"]["secretName"] for v in pod["spec"]["volumes"] if "secret" in v)
