"""The control plane of the tests is a real one, as the other tests here rely on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.harness.controlplane.api import Api, Manifest, Refused
from tests.support.harness.controlplane.children import wait_until
from tests.support.harness.controlplane.kwok import Kwok
from tests.support.harness.controlplane.nodes import (
    KINDS,
    delete_nodes,
    lose_node,
    many_nodes,
    return_node,
    until_ready,
)
from tests.support.harness.controlplane.plane import Cluster, ControlPlane
from tests.support.harness.controlplane.pods import a_pod
from tests.support.harness.daemon import gone
from tests.support.harness.database import Sql

Nodes = Callable[..., list[str]]


def _pod(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def _state(pod: Manifest) -> Manifest:
    return pod["status"]["containerStatuses"][0]["state"]


def test_the_node_kinds_are_those_of_the_catalogue(sql: Sql) -> None:
    rows = sql.rows(
        "select name, instance_type, gpus_per_node, cpus_per_node, mem_per_node_mib, efa_per_node"
        " from odc.gpu_type"
    )
    expected = [
        {
            "name": name,
            "instance_type": kind.instance_type,
            "gpus_per_node": kind.gpus,
            "cpus_per_node": kind.cpus,
            "mem_per_node_mib": kind.mem_mib,
            "efa_per_node": kind.efa,
        }
        for name, kind in KINDS.items()
    ]
    assert sorted(rows, key=lambda row: row["name"]) == sorted(
        expected, key=lambda row: row["name"]
    )


def test_a_user_without_a_role_may_do_nothing(plane: ControlPlane) -> None:
    alice = Api(plane.kubeconfig("alice", "team-a"))
    with pytest.raises(Refused, match="alice") as refused:
        alice.items("/api/v1/pods")
    assert refused.value.code == 403
    alice.close()


def test_pod_security_is_enforced(api: Api, namespace: str) -> None:
    label = {"pod-security.kubernetes.io/enforce": "baseline"}
    api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": label}})
    with pytest.raises(Refused, match="hostNetwork=true"):
        api.create(a_pod(namespace, "p", spec={"hostNetwork": True}))


def test_a_kwok_pod_runs_for_the_requested_time(api: Api, namespace: str, nodes: Nodes) -> None:
    (node,) = nodes(h100=1)
    api.create(a_pod(namespace, "p", node, gpus=1, run_s=1))
    done = api.until(_pod(namespace, "p"), lambda pod: pod["status"]["phase"] == "Succeeded")
    assert _state(done)["terminated"]["exitCode"] == 0
    assert done["spec"]["nodeName"] == node


def test_a_kwok_pod_ends_with_the_requested_code_and_reason(
    api: Api, namespace: str, nodes: Nodes
) -> None:
    (node,) = nodes(h100=1)
    api.create(a_pod(namespace, "p", node, run_s=0, exit_code=137, reason="OOMKilled"))
    done = api.until(_pod(namespace, "p"), lambda pod: pod["status"]["phase"] == "Failed")
    ended = _state(done)["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


@pytest.mark.parametrize(
    ("stop_s", "code"), [(0, 143), (1, 143), (30, 137)], ids=["at-once", "in-grace", "killed"]
)
def test_a_delete_with_grace_shows_the_end_before_the_pod_is_gone(
    api: Api, namespace: str, nodes: Nodes, stop_s: int, code: int
) -> None:
    (node,) = nodes(h100=1)
    api.create(a_pod(namespace, "p", node, stop_s=stop_s))
    api.until(_pod(namespace, "p"), lambda pod: pod["status"]["phase"] == "Running")
    listed = api.get(f"/api/v1/namespaces/{namespace}/pods")
    began = time.monotonic()
    api.delete(_pod(namespace, "p"), grace_s=2)
    version = listed["metadata"]["resourceVersion"]
    query = {"watch": True, "resourceVersion": version, "timeoutSeconds": 60}
    seen: list[Manifest] = []
    with api.stream(f"/api/v1/namespaces/{namespace}/pods", **query) as lines:
        for line in lines:
            seen.append(json.loads(line))
            if seen[-1]["type"] == "DELETED":
                break
    assert _state(seen[-1]["object"])["terminated"]["exitCode"] == code
    assert time.monotonic() - began < 30, "a process that exceeds its grace is not waited for"


def test_a_gated_pod_waits_for_its_gate(api: Api, namespace: str, nodes: Nodes) -> None:
    (node,) = nodes(h100=1)
    gates = {"schedulingGates": [{"name": "odc.dev/gang"}]}
    api.create(a_pod(namespace, "p", node, spec=gates))
    time.sleep(1)
    held = api.get(_pod(namespace, "p"))
    assert "nodeName" not in held["spec"]
    assert held["status"]["conditions"][0]["reason"] == "SchedulingGated"
    api.patch(_pod(namespace, "p"), {"spec": {"schedulingGates": None}})
    api.until(_pod(namespace, "p"), lambda pod: pod["status"]["phase"] == "Running")


def test_logs_of_kwok_come_through_the_api_server(
    plane: ControlPlane, namespace: str, nodes: Nodes
) -> None:
    (node,) = nodes(h100=1)
    plane.api.create(a_pod(namespace, "p", node))
    plane.api.until(_pod(namespace, "p"), lambda pod: pod["status"]["phase"] == "Running")
    assert plane.api.log(namespace, "p") == "hello from kwok\n"


def test_a_lost_node_is_unreachable_until_it_returns(api: Api, nodes: Nodes) -> None:
    (node,) = nodes(h100=1)
    lose_node(api, node)
    api.until(
        f"/api/v1/nodes/{node}",
        lambda one: any(
            taint["key"] == "node.kubernetes.io/unreachable" for taint in one["spec"]["taints"]
        ),
    )
    return_node(api, node)
    until_ready(api, [node])


def test_the_api_server_comes_back_as_it_was(
    plane: ControlPlane, kwok: Kwok, namespace: str, nodes: Nodes
) -> None:
    (node,) = nodes(h100=1)
    plane.api.create(a_pod(namespace, "before", node))
    plane.kill_apiserver()
    with pytest.raises(ConnectionError, match="refused"):
        plane.api.get("/readyz")
    plane.start_apiserver()
    assert plane.api.pod(namespace, "before") is not None
    plane.api.create(a_pod(namespace, "after", node))
    plane.api.until(_pod(namespace, "after"), lambda pod: pod["status"]["phase"] == "Running")


def test_pods_of_kwok_that_ended_meanwhile_end_after_its_restart(
    plane: ControlPlane, kwok: Kwok, namespace: str, nodes: Nodes
) -> None:
    (node,) = nodes(h100=1)
    plane.api.create(a_pod(namespace, "p", node, run_s=1))
    # Or more than that, depending on the time of the check.
    plane.api.until(_pod(namespace, "p"), lambda pod: pod["status"]["phase"] != "Pending")
    plane.kill_apiserver()
    time.sleep(2.5)
    plane.start_apiserver()
    kwok.restart()
    plane.api.until(_pod(namespace, "p"), lambda pod: pod["status"]["phase"] == "Succeeded")


def test_a_paused_scheduler_binds_nothing(
    plane: ControlPlane, namespace: str, nodes: Nodes
) -> None:
    (node,) = nodes(h100=1)
    plane.scheduler.pause()
    plane.api.create(a_pod(namespace, "p", node))
    time.sleep(1)
    assert "nodeName" not in plane.api.get(_pod(namespace, "p"))["spec"]
    plane.scheduler.resume()
    plane.api.until(_pod(namespace, "p"), lambda pod: pod["status"]["phase"] == "Running")


def test_a_thousand_nodes_are_ready_in_seconds_and_then_cost_little(
    plane: ControlPlane, kwok: Kwok
) -> None:
    def used_s() -> float:
        children = (*plane.children, kwok)
        return sum(psutil.Process(child.pid).cpu_times().user for child in children)

    def costs_little() -> bool:
        before_s, began = used_s(), time.monotonic()
        time.sleep(5)
        return used_s() - before_s < time.monotonic() - began

    made = plane.api.create_all(many_nodes(h100=1000))
    names = [one["metadata"]["name"] for one in made]
    try:
        until_ready(plane.api, names, within_s=180)
        # Actions at their start finish some time after they are ready.
        wait_until(costs_little, "them to cost less than one processor")
    finally:
        delete_nodes(plane.api, names)


def test_kubectl_works_with_the_control_plane(cluster: Cluster) -> None:
    assert "kube-system" in cluster.kubectl("get", "namespaces", "-o", "name")


_PARENT = """
import sys, time
from pathlib import Path
from tests.support.harness.controlplane.children import Child
child = Child(["sleep", "600"], Path(sys.argv[1]) / "sleep.log")
child.start()
print(child.pid, flush=True)
time.sleep(600)
"""


def test_no_child_outlives_the_process_that_started_it(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert not gone(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    # After its end it may stay a zombie until this machine's first process reaps it.
    wait_until(lambda: gone(pid), "the child to end")
