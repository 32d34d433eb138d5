"""Nodes that run containers as processes behave as kubelet does: tests of real jobs rely on it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from odcd.errors import WrongState
from odcd.executor.kubernetes.cluster import ApiRefused
from odcd.executor.kubernetes.cluster import Cluster as OdcdCluster
from tests.support.harness.controlplane.api import Api, Manifest
from tests.support.harness.controlplane.children import free_port, wait_until
from tests.support.harness.controlplane.kubelet.env import NotYet, argv, environment, expand
from tests.support.harness.controlplane.kubelet.memory import MemoryLimit
from tests.support.harness.controlplane.plane import Cluster, ControlPlane
from tests.support.harness.controlplane.pods import a_pod
from tests.support.harness.controlplane.processes import ProcessNodes

Processes = Callable[..., ProcessNodes]


def _path(namespace: str, name: str = "p") -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def _state(pod: Manifest) -> Manifest:
    return pod["status"].get("containerStatuses", [{"state": {}}])[0]["state"]


def _over(pod: Manifest) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def _running(pod: Manifest) -> bool:
    return pod["status"]["phase"] == "Running"


def _bash(script: str) -> tuple[str, ...]:
    return ("/bin/bash", "-c", script)


def _wait_for(port: int) -> str:
    """Until the test listens there: all containers here share this machine's network."""
    return f"until exec 3<>/dev/tcp/127.0.0.1/{port}; do sleep 0.05; done 2>/dev/null"


def _configmap(namespace: str, name: str, **data: str) -> Manifest:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "a"),
        ("$$(A)", "$(A)"),
        ("$(B)-$(A)", "$(B)-a"),
        ("$$$(A) $A", "$a $A"),
        ("$(A", "$(A"),
    ],
    ids=["known", "escaped", "unknown", "dollar", "open"],
)
def test_references_expand_as_kubernetes_defines(text: str, expected: str) -> None:
    assert expand(text, {"A": "a"}) == expected


def test_later_variables_win_and_may_use_earlier_ones() -> None:
    container: Mapping[str, Any] = {
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "env": [{"name": "B", "value": "$(A)!"}, {"name": "A", "value": "mine"}],
        "command": ["echo", "$(B) $(A)"],
    }
    made = environment(container, {"c": {"A": "theirs"}}, lambda path: path, {})
    assert made == {"A": "mine", "B": "theirs!"}
    assert argv(container, made) == ["echo", "theirs! mine"]


def test_a_configmap_that_is_missing_is_named() -> None:
    with pytest.raises(NotYet, match='configmap "c" not found') as missing:
        environment({"envFrom": [{"configMapRef": {"name": "c"}}]}, {}, str, {})
    assert missing.value.reason == "CreateContainerConfigError"


def test_a_pod_runs_its_script_and_its_exit_code_is_known(
    api: Api, namespace: str, processes: Processes
) -> None:
    (node,) = processes(h100=1).names
    api.create(_configmap(namespace, "script", script="#!/bin/bash\necho to $GREET; exit 7\n"))
    volume = {"name": "job", "configMap": {"name": "script", "defaultMode": 0o755}}
    container = {
        "volumeMounts": [{"name": "job", "mountPath": "/odc/job"}],
        "env": [{"name": "GREET", "value": "you"}],
    }
    made = a_pod(namespace, "p", node, command=("/odc/job/script",), gpus=1, container=container)
    made["spec"]["volumes"] = [volume]
    api.create(made)
    done = api.until(_path(namespace), _over)
    ended = _state(done)["terminated"]
    assert (done["status"]["phase"], ended["exitCode"], ended["reason"]) == ("Failed", 7, "Error")
    assert ended["containerID"].startswith("containerd://")
    assert api.log(namespace, "p") == "to you\n"


def test_a_pod_waits_for_its_configmap(api: Api, namespace: str, processes: Processes) -> None:
    (node,) = processes(h100=1).names
    container = {"volumeMounts": [{"name": "job", "mountPath": "/odc/job"}]}
    made = a_pod(namespace, "p", node, command=("cat", "/odc/job/a"), container=container)
    made["spec"]["volumes"] = [{"name": "job", "configMap": {"name": "late"}}]
    api.create(made)
    time.sleep(1)
    assert _state(api.get(_path(namespace)))["waiting"]["reason"] == "ContainerCreating"
    api.create(_configmap(namespace, "late", a="there"))
    api.until(_path(namespace), lambda pod: pod["status"]["phase"] == "Succeeded")
    assert api.log(namespace, "p") == "there"


def test_the_user_the_host_name_and_the_volumes_are_the_pods(
    api: Api, namespace: str, processes: Processes
) -> None:
    (node,) = processes(h100=1).names
    script = (
        "id -u; id -g; hostname; touch /dev/shm/x /own/y && df -m /dev/shm | awk 'END{print $2}'"
    )
    made = a_pod(
        namespace,
        "p",
        node,
        command=_bash(script),
        spec={
            "hostname": "odc-7-1-0",
            "securityContext": {"runAsUser": 1234, "runAsGroup": 4321},
            "volumes": [
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "3Mi"}},
                {"name": "work", "emptyDir": {}},
            ],
        },
        container={
            "volumeMounts": [
                {"name": "shm", "mountPath": "/dev/shm"},
                {"name": "work", "mountPath": "/own"},
            ]
        },
    )
    api.create(made)
    api.until(_path(namespace), _over)
    assert api.log(namespace, "p") == "1234\n4321\nodc-7-1-0\n3\n"


def test_logs_are_followed_and_cut_as_asked(api: Api, namespace: str, processes: Processes) -> None:
    (node,) = processes(h100=1).names
    gate = free_port()
    script = f"echo one; echo two >&2; {_wait_for(gate)}; echo three"
    made = a_pod(namespace, "p", node, command=_bash(script))
    api.create(made)
    api.until(_path(namespace), _running)
    wait_until(lambda: api.log(namespace, "p") == "one\ntwo\n", "two lines")
    assert api.log(namespace, "p", tailLines=1) == "two\n"
    assert api.log(namespace, "p", limitBytes=5) == "one\nt"
    time.sleep(3)
    opened = time.monotonic()
    with (
        socket.create_server(("127.0.0.1", gate)),
        api.stream(f"{_path(namespace)}/log", follow=True) as lines,
    ):
        assert list(lines) == ["one", "two", "three"]
    since_s = int(time.monotonic() - opened) + 2
    assert api.log(namespace, "p", sinceSeconds=since_s) == "three\n"


def test_a_job_that_obeys_ends_within_its_grace(
    api: Api, namespace: str, processes: Processes
) -> None:
    (node,) = processes(h100=1).names
    script = "trap 'echo saved; exit 5' TERM; echo up; sleep 600 & wait"
    api.create(a_pod(namespace, "p", node, command=_bash(script)))
    api.until(_path(namespace), _running)
    with api.stream(f"{_path(namespace)}/log", follow=True) as lines:
        assert next(lines) == "up"
        api.patch(_path(namespace), {"metadata": {"finalizers": ["test.odc.dev/look"]}})
        api.delete(_path(namespace), grace_s=20)
        assert list(lines) == ["saved"]
    done = api.until(_path(namespace), _over)
    assert _state(done)["terminated"]["exitCode"] == 5
    api.patch(_path(namespace), {"metadata": {"finalizers": None}})
    api.until_gone(_path(namespace))


def test_a_job_that_does_not_obey_is_killed_after_its_grace(
    api: Api, namespace: str, processes: Processes
) -> None:
    (node,) = processes(h100=1).names
    script = "trap '' TERM; echo up; while true; do sleep 1; done"
    api.create(a_pod(namespace, "p", node, command=_bash(script)))
    api.until(_path(namespace), _running)
    api.patch(_path(namespace), {"metadata": {"finalizers": ["test.odc.dev/look"]}})
    began = time.monotonic()
    api.delete(_path(namespace), grace_s=1)
    done = api.until(_path(namespace), _over)
    assert _state(done)["terminated"]["exitCode"] == 137
    assert 0.9 < time.monotonic() - began < 29, "which is less than a pod has by default"
    api.patch(_path(namespace), {"metadata": {"finalizers": None}})
    api.until_gone(_path(namespace))


@pytest.mark.parametrize(
    ("image", "reason", "message"),
    [
        ("missing/x:1", "ImagePullBackOff", "not found"),
        ("private/x:1", "ImagePullBackOff", "pull access denied"),
        ("badname/X", "InvalidImageName", "invalid reference format"),
    ],
    ids=["missing", "private", "bad-name"],
)
def test_an_unavailable_image_is_waited_for_with_the_message_of_the_registry(
    api: Api, namespace: str, processes: Processes, image: str, reason: str, message: str
) -> None:
    (node,) = processes(h100=1).names
    api.create(a_pod(namespace, "p", node, image=image))
    seen = api.until(
        _path(namespace), lambda pod: _state(pod).get("waiting", {}).get("reason") == reason
    )
    assert message in _state(seen)["waiting"]["message"]
    api.delete(_path(namespace), grace_s=5)
    api.until_gone(_path(namespace))


def test_a_container_over_its_memory_limit_is_reported_as_oom_killed(
    api: Api, namespace: str, processes: Processes
) -> None:
    probe = MemoryLimit("probe", 64 << 20)
    if not probe.procs:
        pytest.skip("no control groups here that limit memory")
    probe.close()
    (node,) = processes(h100=1).names
    script = "exec python3 -c 'b = bytearray(200 << 20); print(len(b))'"
    limits = {"resources": {"limits": {"memory": "64Mi", "cpu": "1"}}}
    api.create(a_pod(namespace, "p", node, command=_bash(script), container=limits))
    ended = _state(api.until(_path(namespace), _over))["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


def test_a_port_is_reached_through_the_api_server(
    api: Api, namespace: str, processes: Processes, cluster: Cluster
) -> None:
    """ACC-07: as odcd reaches a dev server's SSH port, on nodes without an address of their own."""
    (node,) = processes(h100=1).names
    port = free_port()
    script = f"exec python3 -c '{_ECHO}' {port}"
    api.create(a_pod(namespace, "p", node, command=_bash(script)))
    api.until(_path(namespace), _running)
    wait_until(lambda: _listens(port), "the pod to listen")

    async def work() -> None:
        reached = await OdcdCluster.connect(cluster.admin)
        try:
            stream = await reached.forward(namespace, "p", port, 10)
            data = bytes(range(256)) * 4096
            writing = asyncio.create_task(stream.write(data))
            read = b""
            while len(read) < len(data):
                read += await stream.read()
            await writing
            assert read == data
            await stream.close()
            nobody = await reached.forward(namespace, "p", free_port(), 10)
            with pytest.raises(WrongState, match="error forwarding port"):
                await nobody.read()
            await nobody.close()
            with pytest.raises(ApiRefused):
                await reached.forward(namespace, "other", port, 10)
        finally:
            await reached.close()

    asyncio.run(work())


_ECHO = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        one, _ = server.accept()
        while data := one.recv(65536):
            one.sendall(data)
        one.close()
"""


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_exec_runs_inside_the_container(
    cluster: Cluster, namespace: str, processes: Processes
) -> None:
    (node,) = processes(h100=1).names
    spec = {"hostname": "inside", "securityContext": {"runAsUser": 1234, "runAsGroup": 1234}}
    cluster.api.create(a_pod(namespace, "p", node, command=("sleep", "600"), spec=spec))
    cluster.api.until(_path(namespace), _running)
    script = "hostname; id -u; cat; exit 7"
    done = cluster.try_kubectl(
        "exec", "-i", "-n", namespace, "p", "--", "bash", "-c", script, stdin="typed\n"
    )
    assert done.stdout == "inside\n1234\ntyped\n"
    assert done.returncode == 7


def test_a_missing_command_is_reported(api: Api, namespace: str, processes: Processes) -> None:
    (node,) = processes(h100=1).names
    api.create(a_pod(namespace, "p", node, command=("no-such-program",)))
    ended = _state(api.until(_path(namespace), _over))["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert "no-such-program" in ended["message"]


def test_a_deadline_ends_a_pod_and_keeps_it(api: Api, namespace: str, processes: Processes) -> None:
    (node,) = processes(h100=1).names
    spec = {"activeDeadlineSeconds": 1, "terminationGracePeriodSeconds": 1}
    api.create(a_pod(namespace, "p", node, command=("sleep", "600"), spec=spec))
    done = api.until(_path(namespace), _over)
    assert done["status"]["reason"] == "DeadlineExceeded"
    time.sleep(1)
    assert api.pod(namespace, "p") is not None


def test_members_find_each_other_by_the_headless_services_names(
    api: Api, namespace: str, processes: Processes
) -> None:
    first, second = processes(h100=2).names
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "peers", "namespace": namespace},
        "spec": {"clusterIP": "None", "selector": {"a": "b"}, "publishNotReadyAddresses": True},
    }
    api.create(service)
    listen = (
        'python3 -c \'import socket as s; l = s.create_server(("", 7777));'
        " print(l.accept()[0].recv(9).decode())'"
    )
    call = (
        f"until exec 3<>/dev/tcp/p0.peers.{namespace}.svc.cluster.local/7777; do sleep 0.1; done"
        " 2>/dev/null; echo -n hello >&3; getent hosts p0 || echo alone"
    )
    for name, node, script in (("p0", first, listen), ("p1", second, call)):
        spec = {"hostname": name, "subdomain": "peers"}
        api.create(a_pod(namespace, name, node, command=_bash(script), spec=spec))
    api.until(_path(namespace, "p1"), lambda pod: pod["status"]["phase"] == "Succeeded")
    api.until(_path(namespace, "p0"), lambda pod: pod["status"]["phase"] == "Succeeded")
    assert api.log(namespace, "p0") == "hello\n"
    assert api.log(namespace, "p1") == "alone\n"


def test_a_pod_survives_an_api_server_restart_and_its_end_is_reported(
    plane: ControlPlane, namespace: str, processes: Processes
) -> None:
    (node,) = processes(h100=1).names
    plane.api.create(a_pod(namespace, "p", node, command=_bash("sleep 2; exit 9")))
    plane.api.until(_path(namespace), _running)
    plane.kill_apiserver()
    time.sleep(2.5)
    plane.start_apiserver()
    done = plane.api.until(_path(namespace), _over)
    assert _state(done)["terminated"]["exitCode"] == 9


def test_the_containers_of_a_node_without_power_end(
    api: Api, namespace: str, processes: Processes
) -> None:
    node = processes(h100=1)
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    made = a_pod(namespace, "p", node.names[0], command=("sleep", "600"), container=limits)
    api.create(made)
    api.until(_path(namespace), _running)
    node.kill()
    assert _running(api.get(_path(namespace)))
    node.start()
    done = api.until(_path(namespace), _over)
    assert _state(done)["terminated"]["reason"] == "ContainerStatusUnknown"


def test_a_failed_container_restarts_with_its_volumes(
    api: Api, namespace: str, processes: Processes
) -> None:
    (node,) = processes(h100=1).names
    script = "echo x >>/keep/times; echo last words; [ $(wc -l </keep/times) = 3 ]"
    container = {
        "volumeMounts": [{"name": "keep", "mountPath": "/keep"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    made = a_pod(namespace, "p", node, command=_bash(script), container=container)
    made["spec"] |= {"restartPolicy": "OnFailure", "volumes": [{"name": "keep", "emptyDir": {}}]}
    api.create(made)
    done = api.until(_path(namespace), _over)
    [container_status] = done["status"]["containerStatuses"]
    assert (done["status"]["phase"], container_status["restartCount"]) == ("Succeeded", 2)
    last = container_status["lastState"]["terminated"]
    assert (last["exitCode"], last["message"]) == (1, "last words\n")


def test_a_pod_is_ready_when_its_port_answers_and_sees_its_secret(
    api: Api, namespace: str, processes: Processes
) -> None:
    (node,) = processes(h100=1).names
    port, gate = free_port(), free_port()
    script = (
        f"stat -L -c %a /keys/host; cat /keys/host; echo; {_wait_for(gate)}; exec python3 -c '"
        f'import socket, time; s = socket.create_server(("127.0.0.1", {port})); time.sleep(600)\''
    )
    container = {
        "volumeMounts": [{"name": "keys", "mountPath": "/keys"}],
        "readinessProbe": {"tcpSocket": {"port": port}},
    }
    made = a_pod(namespace, "p", node, command=_bash(script), container=container)
    volume = {"name": "keys", "secret": {"secretName": "s", "defaultMode": 0o400}}
    made["spec"] |= {"volumes": [volume], "terminationGracePeriodSeconds": 0}
    api.create(made)
    meta = {"name": "s", "namespace": namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"host": "k"}}
    api.create(secret)

    def ready(pod: Manifest) -> bool:
        return any(
            c["type"] == "Ready" and c["status"] == "True"
            for c in pod["status"].get("conditions", [])
        )

    assert not ready(api.until(_path(namespace), _running))
    with socket.create_server(("127.0.0.1", gate)):
        api.until(_path(namespace), ready)
    assert api.log(namespace, "p") == "400\nk\n"
