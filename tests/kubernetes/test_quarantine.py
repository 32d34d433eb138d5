"""A node on which jobs fail, on a real control plane: detected, tested by canaries, and
returned."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.support.harness.controlplane.api import Api, Manifest, Refused
from tests.support.harness.controlplane.nodes import delete_nodes, many_nodes
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes, why_not
from tests.support.harness.daemon import wait
from tests.support.harness.database import TestServer
from tests.support.harness.stacks import UID, USER, Stack, on_kubernetes

pytestmark = pytest.mark.long

PODS = "/api/v1/namespaces/gpu-batch/pods"


class Kubelet:
    """Determines how the pods of KWOK's nodes end: at once, well or badly, depending on their
    node."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.broken: dict[str, str] = {}
        """The messages of failing pods, by node."""
        self.seen: set[str] = set()

    def look(self) -> None:
        for pod in self._api.items(PODS):
            name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
            if node and name not in self.seen:
                self.seen.add(name)
                self._end(name, self.broken.get(node))

    def _end(self, name: str, message: str | None) -> None:
        how = {"run-s": "0", "exit-code": "0" if message is None else "6", "message": message or ""}
        annotations = {f"test.odc.dev/{key}": value for key, value in how.items()}
        try:
            self._api.patch(f"{PODS}/{name}", {"metadata": {"annotations": annotations}})
        except Refused as refused:
            if refused.code != 404:
                raise


@contextmanager
def playing(kubelet: Kubelet) -> Iterator[None]:
    over = threading.Event()
    failed: list[Exception] = []

    def play() -> None:
        try:
            while not over.wait(0.1):
                kubelet.look()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=play)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert failed == []


@pytest.fixture
def stack(
    shared_plane: ControlPlane, postgres_server: TestServer, nodes: Callable[..., list[str]],
    installed: object,
) -> Iterator[Stack]:  # fmt: skip
    names = nodes(h100=4)
    dsn = postgres_server.clone()
    try:
        kubeconfig = shared_plane.account_kubeconfig("gpu-controlplane", "odcd")
        with on_kubernetes(dsn, kubeconfig, names) as stack:
            yield stack
            stack("cancel", "--all", check=False)
    finally:
        postgres_server.drop(dsn)


@contextmanager
def as_user(stack: Stack, user: str, uid: int) -> Iterator[None]:
    kept = stack.odc.environment["ODC_TOKEN"]
    made = stack.odc.odcd("token", user, "--uid", str(uid), "--dsn", stack.dsn).stdout.strip()
    stack.odc.environment["ODC_TOKEN"] = made
    try:
        yield
    finally:
        stack.odc.environment["ODC_TOKEN"] = kept


def execute(stack: Stack, statement: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(stack.dsn)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())


def node(stack: Stack, name: str) -> dict[str, Any]:
    return next(one for one in stack.json("nodes")["nodes"] if one["name"] == name)


def canary_of(api: Api) -> Manifest | None:
    found = [pod for pod in api.items(PODS) if pod["metadata"]["name"].startswith("odc-0-")]
    return found[0] if found else None


@pytest.fixture
def real_nodes(shared_plane: ControlPlane, tmp_path: Path) -> Iterator[ProcessNodes]:
    if why := why_not():
        pytest.skip(why)
    with ProcessNodes(shared_plane, tmp_path / "kubelet", many_nodes(t4=1, cpu_x86=1)) as made:
        yield made
    delete_nodes(shared_plane.api, made.names)


def test_a_canary_checks_the_gpus_that_it_was_given(
    shared_plane: ControlPlane, postgres_server: TestServer, real_nodes: ProcessNodes,
    installed: object,
) -> None:  # fmt: skip
    """Here a program of that name says there are none; a node without GPUs only has to run it."""
    dsn = postgres_server.clone()
    kubeconfig = shared_plane.account_kubeconfig("gpu-controlplane", "odcd")
    try:
        with on_kubernetes(dsn, kubeconfig, real_nodes.names) as stack:
            execute(
                stack,
                "insert into odc.node_quarantine "
                "(node_id, since, evidence, reason, drained, try_at) "
                "select id, now(), 'tests', 'quarantined: tests', true, now() from odc.node",
            )
            # Pods of others may be there, too.
            wait(lambda: node(stack, "cpu-x86-0000")["state"] in ("IDLE", "MIXED"), stack.log)
            reason = wait(
                lambda: (
                    (reason := node(stack, "t4-0000")["reason"])
                    and "its canary" in reason
                    and reason
                ),
                stack.log,
            )
            # 126: not found in a PATH with folders that others may not enter.
            assert re.search(r"its canary failed: exit code 12[67]", reason)
            assert "orphan" not in stack("events")
    finally:
        postgres_server.drop(dsn)


def test_a_quarantined_node_is_tested_by_canaries_until_it_works(
    stack: Stack, shared_plane: ControlPlane
) -> None:
    api = shared_plane.api
    kubelet = Kubelet(api)
    bad, *others = stack.nodes
    kubelet.broken[bad] = "no GPUs found"
    with playing(kubelet):
        for name in others:
            for number in range(2):
                script = f"echo {name} {number}"
                stack.submit("--gpus", "1", "--nodelist", name, script=script)
        wait(lambda: not stack.json("queue")["jobs"], stack.log)
        for number, (user, uid) in enumerate([(USER, UID), ("bob", UID + 1), ("carol", UID + 2)]):
            with as_user(stack, user, uid):
                job = stack.submit("--gpus", "1", "--nodelist", bad, script=f"echo {number}")
                assert stack.end(job)["state"] == "FAILED"

        def quarantined() -> str | None:
            reason = node(stack, bad)["reason"]
            return reason if reason and reason.startswith("quarantined") else None

        assert wait(quarantined, stack.log) == (
            "quarantined: 3 of its last 3 jobs failed within 120 s (3 scripts of 3 users); on "
            "other h100 nodes, 0 of 6 did"
        )
        waits = stack.submit("--gpus", "1", "--nodelist", bad, script="true")
        wait(lambda: "3 of its last 3 jobs failed" in stack("why", str(waits)), stack.log)

        execute(stack, "update odc.node_quarantine set try_at = now()")
        assert wait(
            lambda: (
                (reason := node(stack, bad)["reason"]) and "its canary failed" in reason and reason
            ),
            lambda: f"{node(stack, bad)} {canary_of(api)}{stack.log()}",
        ).endswith("; its canary failed: exit code 6: no GPUs found")
        wait(lambda: canary_of(api) is None, stack.log)

    # The next one continues while its leader is killed.
    execute(stack, "update odc.node_quarantine set try_at = now()")
    pod = wait(lambda: canary_of(api), stack.log)
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    stack.kill()
    stack.start()
    wait(lambda: stack.json("nodes"), stack.log)
    assert node(stack, bad)["state"] == "DRAIN"
    del kubelet.broken[bad]
    with playing(kubelet):
        wait(lambda: node(stack, bad)["reason"] is None, stack.log)
        assert stack.end(waits)["state"] == "COMPLETED"
        wait(lambda: canary_of(api) is None, stack.log)
    found = api.items(PODS)
    assert [one for one in found if one["metadata"]["name"].startswith("odc-0-")] == []
    events = stack("events")
    for kind in ("node_quarantined", "canary_failed", "node_returned"):
        assert kind in events
    assert "orphan" not in events
