"""Dev servers on a real control plane: what becomes of them, whatever happens to their pods."""

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


class BoxSite:
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

    def reserve(self, **asked: Any) -> int:
        body = {"gpu_type": "h100", "gpus": 1, "github_user": "alice", **asked}
        told = self.call("POST", "/v1/reservations", body)
        assert "id" in told, told
        return told["id"]

    def show(self, job_id: int) -> dict[str, Any]:
        return self.call("GET", f"/v1/reservations/{job_id}")

    def until(self, job_id: int, status: str) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            told = self.show(job_id)
            return told if told["status"] == status else None

        return wait(reached, lambda: f"{self.show(job_id)}{self.stack.log()}")

    def until_it_tells(self, job_id: int, true: Callable[[dict[str, Any]], object]) -> Any:
        def reached() -> dict[str, Any] | None:
            told = self.show(job_id)
            return told if true(told) else None

        return wait(reached, lambda: f"{self.show(job_id)}{self.stack.log()}")

    def pods(self, job_id: int) -> list[Manifest]:
        found = self.api.items(PODS, labelSelector=f"odc.dev/job-id={job_id}")
        return sorted(found, key=lambda pod: pod["metadata"]["name"])

    def pod(self, job_id: int, rank: int = 0) -> Manifest:
        """Once its node has taken it."""

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

    def wait_for(self, pod: Manifest, reason: str, message: str = "") -> None:
        self.say(pod, {"waiting": {"reason": reason, "message": message}}, phase="Pending")

    def tell_event(self, pod: Manifest, reason: str, message: str) -> None:
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

    def active(self, **asked: Any) -> int:
        job_id = self.reserve(**asked)
        self.run(self.pod(job_id))
        self.until(job_id, "active")
        return job_id


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ended(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    told = {"exitCode": code, "reason": reason, "message": message, "startedAt": now()}
    return {"terminated": {**told, "finishedAt": now()}}


@contextmanager
def a_github(key: str, **others: str) -> Iterator[str]:
    """Where every user has this one key, but for the others; its address."""

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
def boxes(
    shared_plane: ControlPlane, postgres_server: TestServer, nodes: Callable[..., list[str]],
    installed: object, open_folder: Path,
) -> Iterator[BoxSite]:  # fmt: skip
    """Pods stay as they are until the test says what becomes of them."""
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
            site = BoxSite(stack, shared_plane.api)
            yield site
            stack("cancel", "--all", check=False)
            wait(lambda: not stack.json("queue")["jobs"], stack.log)
    finally:
        postgres_server.drop(dsn)


def test_a_box_is_reserved_extended_and_cancelled(boxes: BoxSite) -> None:
    """LIF-02, LIF-06, LIF-09, LIF-23, POD-12: active is when SSH answers, and the clock starts."""
    box = boxes.reserve(hours=1)
    pod = boxes.pod(box)
    assert boxes.until(box, "preparing")["expires_at"] is None
    boxes.run(pod, ready=False)
    told = boxes.until_it_tells(box, lambda told: told["phase"] == "ssh")
    assert "SSH does not answer yet" in told["message"]
    assert (told["status"], told["connect"]) == ("preparing", None)
    boxes.run(pod)
    told = boxes.until(box, "active")
    assert told["connect"] == "ssh"
    [host_key] = told["host_keys"]
    assert host_key.startswith("ssh-ed25519 ")
    phases = [phase["phase"] for phase in told["phases"]]
    assert phases[:2] == ["queued", "starting"]
    assert phases[-2:] == ["ssh", "active"]
    assert all(phase["took_s"] is not None for phase in told["phases"][:-1])
    extended = boxes.call("POST", f"/v1/reservations/{box}/extend", {"hours": 2})
    assert extended["expires_at"] > told["expires_at"]
    boxes.stack("cancel", str(box))
    assert boxes.until(box, "cancelled")["failure_reason"] is None
    wait(lambda: not boxes.pods(box), boxes.stack.log)


def test_a_box_expires_to_the_second_and_its_pod_goes(boxes: BoxSite) -> None:
    """EXP-10, EXP-13: its end is no failure."""
    box = boxes.active(hours=1)
    boxes.stack.sql(
        "update odc.reservation set expires_at = now() + interval '1 second', "
        "launched_at = now() - interval '1 hour'",
        "update odc.running set ends_at = now() + interval '2 seconds'",
        "update odc.allocation set ends_at = now() + interval '2 seconds'",
    )
    assert boxes.until(box, "expired")["failure_reason"] is None
    wait(lambda: not boxes.pods(box), boxes.stack.log)


def test_a_pod_deleted_by_hand_ends_an_active_box_as_failed(boxes: BoxSite) -> None:
    """LIF-12, LIF-13"""
    box = boxes.active()
    boxes.api.delete(f"{PODS}/{boxes.pod(box)['metadata']['name']}")
    told = boxes.until(box, "failed")
    assert told["failure_reason"] == "its pod was deleted by something other than odc"


def test_an_evicted_box_is_not_active_any_more(boxes: BoxSite) -> None:
    """BUG-26, LIF-13"""
    box = boxes.active()
    name = boxes.pod(box)["metadata"]["name"]
    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}
    boxes.api.patch(f"{PODS}/{name}/status", {"status": status})
    assert "low on memory" in boxes.until(box, "failed")["failure_reason"]


def test_a_container_that_ran_out_of_memory_begins_anew_and_the_box_stays_active(
    boxes: BoxSite,
) -> None:
    """LIF-14, LIF-26, EXP-15: counted once, also by another leader."""
    box = boxes.active()
    pod = boxes.pod(box)
    oom = ended(137, "OOMKilled")
    boxes.say(pod, {"waiting": {"reason": "CrashLoopBackOff"}}, last=oom, restarts=1)
    boxes.run(pod, last=oom, restarts=1)
    told = boxes.until_it_tells(box, lambda told: told["oom_count"])
    assert (told["status"], told["oom_count"]) == ("active", 1)
    assert told["last_oom_at"] is not None
    assert any("ran out of memory" in one["text"] for one in told["history"])
    # While it restarts once more, the leader is killed.
    boxes.say(
        pod, {"waiting": {"reason": "CrashLoopBackOff"}}, last=ended(1, message="x"), restarts=5
    )
    boxes.stack.kill(signal.SIGKILL)
    boxes.stack.start()
    boxes.run(pod, last=oom, restarts=5)
    other = boxes.active()
    told = boxes.show(box)
    assert (told["status"], told["oom_count"]) == ("active", 1), told
    assert boxes.show(other)["oom_count"] == 0


def test_kill_9_of_the_daemon_while_a_box_is_prepared_and_while_it_is_active(
    boxes: BoxSite,
) -> None:
    """LIF-10, LIF-11: a restart changes nothing, and no second pod is made."""
    box = boxes.reserve()
    pod = boxes.pod(box)
    boxes.stack.kill(signal.SIGKILL)
    boxes.run(pod, ready=False)
    boxes.stack.start()
    boxes.until_it_tells(box, lambda told: told["phase"] == "ssh")
    boxes.stack.kill(signal.SIGKILL)
    boxes.run(pod)
    boxes.stack.start()
    told = boxes.until(box, "active")
    boxes.stack.kill(signal.SIGKILL)
    boxes.stack.start()
    assert boxes.until(box, "active")["expires_at"] == told["expires_at"]
    assert [one["metadata"]["uid"] for one in boxes.pods(box)] == [pod["metadata"]["uid"]]


def test_what_it_waits_for_is_told_in_words(boxes: BoxSite) -> None:
    """POD-14, IMG-19, LIF-16"""
    box = boxes.reserve()
    pod = boxes.pod(box)
    boxes.tell_event(pod, "FailedMount", 'MountVolume.SetUp failed for volume "keys"')
    told = boxes.until_it_tells(box, lambda told: "FailedMount" in told["message"])
    assert told["phase"] == "init"
    boxes.tell_event(pod, "Pulling", f'Pulling image "{IMAGE}"')
    told = boxes.until_it_tells(box, lambda told: told["phase"] == "image_pull")
    assert f'Pulling image "{IMAGE}"' in told["message"]
    boxes.wait_for(pod, "ImagePullBackOff", "Back-off pulling image: dial tcp: i/o timeout")
    boxes.until_it_tells(box, lambda told: "i/o timeout" in told["message"])
    assert boxes.show(box)["status"] == "preparing"


def test_an_image_that_nobody_has_fails_at_once_with_the_registrys_words(boxes: BoxSite) -> None:
    """IMG-19, LIF-18"""
    box = boxes.reserve(image="missing/image:1")
    said = 'failed to resolve reference "docker.io/missing/image:1": not found'
    boxes.wait_for(boxes.pod(box), "ImagePullBackOff", said)
    assert said in boxes.until(box, "failed")["failure_reason"]


def test_an_image_that_is_none_of_a_dev_server_says_why(boxes: BoxSite) -> None:
    """IMG-06"""
    box = boxes.reserve()
    said = "installing\nodc: the image has no SSH server, and none could be installed"
    boxes.say(
        boxes.pod(box), {"waiting": {"reason": "CrashLoopBackOff"}}, last=ended(78, message=said),
        restarts=1,
    )  # fmt: skip
    told = boxes.until(box, "failed")
    assert told["failure_reason"] == "the image has no SSH server, and none could be installed"


def test_all_members_of_a_box_are_ready_before_it_is_active(boxes: BoxSite) -> None:
    """MNE-05, MNE-09, MNE-20..22: one key pair for all members, and a member that is behind is
    reported."""
    box = boxes.reserve(gpus=16, distributed=True)
    first, second = boxes.pod(box, 0), boxes.pod(box, 1)
    boxes.run(first)
    told = boxes.until_it_tells(
        box, lambda told: told["phase"] == "init" and "pod 2 of 2" in told["message"]
    )
    assert told["status"] == "preparing"
    named = {
        volume["secret"]["secretName"]
        for pod in (first, second)
        for volume in pod["spec"]["volumes"]
        if "secret" in volume
    }
    [secret] = [boxes.api.get(f"/api/v1/namespaces/gpu-dev/secrets/{name}") for name in named]
    assert set(secret["data"]) == {"host", "gang", "gang.pub", "jupyter"}
    boxes.run(second)
    boxes.until(box, "active")
    boxes.api.delete(f"{PODS}/{second['metadata']['name']}")
    assert "deleted" in boxes.until(box, "failed")["failure_reason"]
    wait(lambda: not boxes.pods(box), boxes.stack.log)


def test_a_box_that_keeps_its_entrypoint_needs_no_ssh(boxes: BoxSite) -> None:
    """IMG-18"""
    box = boxes.reserve(image="example/own:1", preserve_entrypoint=True, github_user=None)
    pod = boxes.pod(box)
    [container] = pod["spec"]["containers"]
    assert "command" not in container
    assert "readinessProbe" not in container
    boxes.run(pod)
    assert boxes.until(box, "active")["connect"] is None


def test_keys_are_made_once_and_go_with_the_reservation(boxes: BoxSite) -> None:
    """ACC-24, LIF-19: an attempt that failed by its node is followed by one with the same key."""
    box = boxes.reserve()
    pod = boxes.pod(box)
    secret = f"/api/v1/namespaces/gpu-dev/secrets/{_secret_of(pod)}"
    boxes.api.until(secret, lambda one: one["data"]["host"])
    [first] = boxes.show(box)["host_keys"]
    boxes.api.delete(f"{PODS}/{pod['metadata']['name']}", grace_s=0)
    boxes.until_it_tells(box, lambda told: told["status"] == "queued" or told["attempt"] == 2)
    assert boxes.show(box)["host_keys"] == [first]
    boxes.stack("cancel", str(box))
    boxes.until(box, "cancelled")
    boxes.until_it_tells(box, lambda told: told["host_keys"] == [])


def _secret_of(pod: Manifest) -> str:
    return next(v["secret"]["secretName"] for v in pod["spec"]["volumes"] if "secret" in v)
