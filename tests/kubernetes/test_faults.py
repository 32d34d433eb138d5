"""Faults of the cluster and of the daemon, one at a time, and what users see of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.harness.controlplane.api import Manifest
from tests.support.harness.controlplane.nodes import lose_node
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes
from tests.support.harness.controlplane.proxy import FaultProxy
from tests.support.harness.controlplane.watch import Watch
from tests.support.harness.daemon import wait
from tests.support.harness.database import Sql
from tests.support.harness.relay import Relay
from tests.support.harness.stacks import ENDED, IMAGE, LEASE_S, Stack, on_kubernetes

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("installed")]


@pytest.fixture
def account(shared_plane: ControlPlane) -> Path:
    """The kubeconfig that odcd has in a cluster."""
    return shared_plane.account_kubeconfig("gpu-controlplane", "odcd")


@pytest.fixture
def stack(
    plane: ControlPlane, real_nodes: ProcessNodes, account: Path, database_url: str
) -> Iterator[Stack]:
    with on_kubernetes(
        database_url,
        account,
        real_nodes.names,
        ODC_NODE_GRACE_S="3",
        ODC_SCHEDULE_S="5",
        ODC_DENIED_S="2",
    ) as made:
        yield made


def pods(plane: ControlPlane) -> list[str]:
    found = plane.api.items("/api/v1/pods", labelSelector="app.kubernetes.io/managed-by=odcd")
    return sorted(pod["metadata"]["name"] for pod in found)


def check(stack: Stack, plane: ControlPlane) -> None:
    """Nothing runs, nothing is left in the cluster, and the books balance."""
    wait(lambda: not stack.json("queue")["jobs"], stack.log)
    wait(lambda: not pods(plane), lambda: f"{pods(plane)}{stack.log()}")
    with Sql(stack.dsn) as sql:
        assert sql.values("select * from odc.check_books()") == []


# -- the cluster ----------------------------------------------------------------------------------


def test_jobs_continue_while_the_api_server_is_down(stack: Stack, plane: ControlPlane) -> None:
    going = stack.submit(script="sleep 8; exit 7")
    stack.until(going, "RUNNING", *ENDED)
    plane.kill_apiserver()
    held = stack.submit(script="echo later")
    time.sleep(LEASE_S * 3)
    plane.start_apiserver()
    assert stack.end(going)["exit_code"] == 7
    assert stack.job(going)["restarts"] == 0
    assert stack.end(held)["state"] == "COMPLETED"
    check(stack, plane)


def test_a_pod_removed_by_hand_is_a_lost_job_that_runs_again(
    stack: Stack, plane: ControlPlane
) -> None:
    again = stack.submit(script='[ "$ODC_ATTEMPT" = 2 ] || sleep 60')
    never = stack.submit("--no-requeue", script="sleep 60")
    for job in (again, never):
        stack.until(job, "RUNNING")
        plane.api.delete(f"/api/v1/namespaces/gpu-batch/pods/odc-{job}-1-0", grace_s=0)
    assert stack.end(never)["state"] == "NODE_FAIL", stack("show", str(never)) + stack.log()
    ended = stack.end(again)
    assert (ended["state"], ended["restarts"]) == ("COMPLETED", 1)
    check(stack, plane)


def test_a_node_that_stays_away_loses_its_jobs_after_a_grace(
    stack: Stack, plane: ControlPlane, real_nodes: ProcessNodes
) -> None:
    first = real_nodes.names[0]
    gang = stack.submit("-N", "2", "--gpus-per-node", "1", "--no-requeue", script="sleep 60")
    job = stack.submit("-w", first, "--gpus", "1", "--no-requeue", script="sleep 60")
    stack.until(gang, "RUNNING")
    stack.until(job, "RUNNING")
    real_nodes.kill()
    lose_node(plane.api, first)
    try:
        assert stack.end(job)["state"] == "NODE_FAIL"
        assert "not ready" in stack("show", str(job))
        assert stack.end(gang)["state"] == "NODE_FAIL"
        nodes = {node["name"]: node for node in stack.json("nodes")["nodes"]}
        assert nodes[first]["state"] == "DOWN"
    finally:
        real_nodes.start()
    wait(
        lambda: all(n["state"] in ("IDLE", "MIXED") for n in stack.json("nodes")["nodes"]),
        stack.log,
    )
    assert stack.end(stack.submit("-N", "2", script="true"))["state"] == "COMPLETED"
    check(stack, plane)


@pytest.mark.parametrize(
    ("image", "says"),
    [("missing/x:1", "not found"), ("private/x:1", "denied"), ("badname/x:1", "InvalidImageName")],
    ids=str,
)
def test_an_unavailable_image_fails_fast_with_the_message_of_the_registry(
    stack: Stack, plane: ControlPlane, image: str, says: str
) -> None:
    job = stack.submit("--container-image", image, "--gpus", "1", script="true")
    assert stack.end(job)["state"] == "FAILED"
    assert says in stack("show", str(job))
    assert stack.job(job)["reason"] == "JobLaunchFailure"
    check(stack, plane)


def test_a_gang_that_cannot_start_whole_is_undone(stack: Stack, plane: ControlPlane) -> None:
    """Both members have the missing image: neither ever runs, and both are removed."""
    job = stack.submit(
        "--container-image", "missing/x:1", "-N", "2", "--gpus-per-node", "8", script="true"
    )
    assert stack.end(job)["state"] == "FAILED"
    assert "not found" in stack("show", str(job))
    check(stack, plane)


def test_a_missing_interpreter_is_reported(stack: Stack, plane: ControlPlane) -> None:
    path = stack.odc.work / "odd.sh"
    path.write_text("#!/no/such/interpreter\ntrue\n")
    job = int(stack("submit", "--parsable", str(path)))
    ended = stack.end(job)
    assert ended["state"] == "FAILED"
    assert ended["exit_code"] in (126, 127)
    wait(lambda: "not found" in stack("logs", str(job)), stack.log)
    check(stack, plane)


def test_an_orphan_is_reported_and_removed(
    stack: Stack, plane: ControlPlane, account: Path
) -> None:
    long = "x" * 9_000  # a shorter script would need no ConfigMap
    job = stack.submit("--gpus", "1", script=f"sleep 60\n# {long}")
    stack.until(job, "RUNNING")
    pod = plane.api.get(f"/api/v1/namespaces/gpu-batch/pods/odc-{job}-1-0")
    stray = {"apiVersion": "v1", "kind": "Pod", "spec": pod["spec"], "metadata": {}}
    stray["spec"].pop("nodeName")
    stray["spec"] |= {"hostname": f"odc-{job}-9-0"}
    stray["spec"]["volumes"][0]["configMap"]["name"] = f"odc-{job}-9-{'0' * 10}"
    labels = pod["metadata"]["labels"] | {"odc.dev/attempt": "9"}
    stray["metadata"] = {
        "name": f"odc-{job}-9-0", "namespace": "gpu-batch", "labels": labels,
        "annotations": pod["metadata"]["annotations"],
    }  # fmt: skip
    plane.kubectl("create", "-f", "-", stdin=json.dumps(stray), kubeconfig=account)
    wait(lambda: pods(plane) == [f"odc-{job}-1-0"], lambda: f"{pods(plane)}{stack.log()}")
    with Sql(stack.dsn) as sql:
        assert sql.values("select detail ->> 'name' from odc.event where kind = 'orphan'") == [
            f"odc-{job}-9-0"
        ]
    assert stack.job(job)["state"] == "RUNNING"
    stack("cancel", str(job))
    check(stack, plane)


def test_a_start_blocked_by_foreign_pods_is_retried(
    stack: Stack, plane: ControlPlane, real_nodes: ProcessNodes, namespace: str
) -> None:
    first, second = real_nodes.names
    plane.api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "notebook", "namespace": namespace},
            "spec": {
                "nodeName": first,
                "tolerations": [{"operator": "Exists"}],
                "containers": [
                    {
                        "name": "c", "image": IMAGE, "command": ["/bin/sleep", "60"],
                        "resources": {"limits": {"nvidia.com/gpu": "5"}},
                    }
                ],
            },
        }
    )  # fmt: skip
    job = stack.submit("-w", first, "--gpus", "8", script="true")
    other = stack.submit("--gpus", "8", script="true")
    assert stack.end(other)["node_names"] == [second]
    # The pod of the job is created before the inventory shows the notebook, or not at all.
    wait(
        lambda: any(
            text in stack("why", str(job)) for text in ("5 GPUs", "Insufficient nvidia.com/gpu")
        ),
        lambda: stack("why", str(job)) + stack.log(),
    )
    plane.api.delete(f"/api/v1/namespaces/{namespace}/pods/notebook", grace_s=0)
    stack.until(job, "RUNNING", "COMPLETED")
    assert stack.end(job)["state"] == "COMPLETED"
    check(stack, plane)


def test_a_job_that_must_end_gets_no_new_pods_from_the_next_leader(
    stack: Stack, plane: ControlPlane, real_nodes: ProcessNodes
) -> None:
    """The pods of a cancelled gang are gone, and the leader was killed before it recorded that."""
    created: list[str] = []

    def note(_: float, kind: str, pod: Manifest) -> None:
        if kind == "ADDED":
            created.append(pod["metadata"]["name"])

    real_nodes.kill()
    try:
        job = stack.submit("-N", "2", "--gpus-per-node", "1", script="true")
        expected = [f"odc-{job}-1-0", f"odc-{job}-1-1"]
        wait(lambda: pods(plane) == expected, lambda: f"{pods(plane)}{stack.log()}")
        stack("cancel", str(job))
        wait(lambda: stack.value("select count(stop_sent_at) from odc.running"), stack.log)
        stack.kill()
        for name in pods(plane):
            plane.api.delete(f"/api/v1/namespaces/gpu-batch/pods/{name}", grace_s=0)
        wait(lambda: not pods(plane), lambda: f"{pods(plane)}{stack.log()}")
        with Watch(plane.api, "/api/v1/namespaces/gpu-batch/pods", note):
            stack.start()
            assert stack.end(job)["state"] == "CANCELLED"
            check(stack, plane)
        assert created == []
    finally:
        real_nodes.start()


# -- two daemons ----------------------------------------------------------------------------------


@contextmanager
def two(
    first_dsn: str, first_config: Path, second_dsn: str, second_config: Path, nodes: list[str]
) -> Iterator[tuple[Stack, Stack]]:
    """The first one leads."""
    with ExitStack() as undo:
        first = undo.enter_context(on_kubernetes(first_dsn, first_config, nodes))
        wait(lambda: leader(second_dsn) == first.pid, first.log)
        second = undo.enter_context(on_kubernetes(second_dsn, second_config, nodes))
        yield first, second


def leader(dsn: str) -> int | None:
    with Sql(dsn) as sql:
        holder = sql.value("select holder from odc.term")
    return int(holder.rpartition(":")[2]) if holder else None


def adopted(
    second: Stack, first: Stack, plane: ControlPlane, going: int, others: list[int]
) -> None:
    """The second daemon leads, running jobs continue, and jobs submitted in between run once."""
    wait(lambda: leader(second.dsn) == second.pid, second.log)
    for job in others:
        assert second.end(job)["state"] == "COMPLETED"
        assert second.job(job)["restarts"] == 0
    assert (second.end(going)["exit_code"], second.job(going)["restarts"]) == (7, 0)
    wait(lambda: second("logs", str(going)) == "going\n", second.log)
    check(second, plane)


GOING = "echo going; sleep 12; exit 7"


def test_a_killed_leader_is_followed(
    plane: ControlPlane, real_nodes: ProcessNodes, account: Path, database_url: str
) -> None:
    with two(database_url, account, database_url, account, real_nodes.names) as (first, second):
        going = first.submit(script=GOING)
        # The follower answers, too.
        second.wait_for_output(going, "going")
        first.kill()
        adopted(second, first, plane, going, [second.submit(script="true") for _ in range(3)])


def test_a_paused_leader_changes_nothing_when_it_resumes(
    plane: ControlPlane, real_nodes: ProcessNodes, account: Path, database_url: str
) -> None:
    with two(database_url, account, database_url, account, real_nodes.names) as (first, second):
        going = first.submit(script=GOING)
        first.until(going, "RUNNING")
        first.pause()
        others = [second.submit(script="true") for _ in range(3)]
        wait(lambda: leader(database_url) == second.pid, second.log)
        time.sleep(LEASE_S)
        first.resume()
        others += [second.submit(script="true") for _ in range(3)]
        adopted(second, first, plane, going, others)


def test_a_leader_cut_off_from_the_api_server_steps_down(
    plane: ControlPlane, real_nodes: ProcessNodes, account: Path, database_url: str, tmp_path: Path
) -> None:
    with FaultProxy(plane, tmp_path / "proxy") as proxy:
        through = proxy.kubeconfig(account)
        with two(database_url, through, database_url, account, real_nodes.names) as (first, second):
            going = first.submit(script=GOING)
            first.until(going, "RUNNING")
            proxy.kill()
            adopted(second, first, plane, going, [first.submit(script="true") for _ in range(3)])


def test_a_leader_cut_off_from_the_database_is_followed(
    plane: ControlPlane, real_nodes: ProcessNodes, account: Path, database_url: str
) -> None:
    with Relay(database_url) as relay:
        nodes = real_nodes.names
        with two(relay.dsn, account, database_url, account, nodes) as (first, second):
            going = first.submit(script=GOING)
            first.until(going, "RUNNING")
            relay.cut()
            adopted(second, first, plane, going, [second.submit(script="true") for _ in range(3)])
            relay.mend()
            assert second.end(second.submit(script="true"))["state"] == "COMPLETED"
