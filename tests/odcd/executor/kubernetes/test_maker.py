"""Pods are removed reliably: a request without a clear answer is repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest

from odcd.errors import RunnerDown
from odcd.executor.kubernetes.attempt_objects import INLINE_BYTES
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster, Status
from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.executor.kubernetes.pods import PodSettings
from tests.support.builders.dispatches import a_dispatch_of, a_member

OFFER = NodeOffer(gpus=8, efa=0, hugepages_mib=0)
BESIDE = ("NetworkPolicy", "ConfigMap")
POD = msgspec.convert(
    {"metadata": {"name": "odc-7-1-0", "namespace": "gpu-batch", "uid": "first"}}, Pod
)


class Refusing:
    """Refuses every delete; has a pod with that uid, or none."""

    def __init__(self, status: int, uid: str | None) -> None:
        self._status = status
        self._uid = uid

    async def delete(self, path: str, body: Mapping[str, Any]) -> bytes:
        raise ApiRefused(self._status, Status(reason="Conflict"), None)

    async def get(self, path: str) -> bytes:
        if self._uid is None:
            raise ApiRefused(404, Status(reason="NotFound"), None)
        return msgspec.json.encode({"metadata": {"name": "odc-7-1-0", "uid": self._uid}})


def remove(status: int, uid: str | None, *, unchanged: bool = False) -> None:
    cluster = cast("Cluster", Refusing(status, uid))
    asyncio.run(PodWriter(cluster, PodSettings()).remove(POD, 30, unchanged=unchanged))


@pytest.mark.parametrize(
    ("status", "uid"),
    [
        pytest.param(404, None, id="not-there"),
        pytest.param(409, None, id="gone-meanwhile"),
        pytest.param(409, "second", id="another-of-its-name"),
    ],
)
def test_a_pod_that_no_longer_exists_counts_as_removed(status: int, uid: str | None) -> None:
    remove(status, uid)


def test_a_conflict_does_not_count_as_removed_while_the_pod_exists() -> None:
    with pytest.raises(ApiRefused):
        remove(409, "first")


def test_a_changed_pod_is_kept_if_it_must_be_unchanged() -> None:
    remove(409, "first", unchanged=True)


class Taking:
    """Accepts every request, and records the pods that it should create and change."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.changed: list[str] = []

    async def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        self.made.append(f"{body['kind']} {body['metadata']['name']}")
        return msgspec.json.encode({"metadata": {"uid": "one"}})

    async def patch(self, path: str, body: Any) -> bytes:
        self.changed.append(path.rpartition("/")[2])
        return b"{}"


class Existing(Taking):
    """The pod exists: another leader, perhaps of an earlier release, created it."""

    started_at = ""

    async def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        await super().post(path, body)
        if body["kind"] == "Pod":
            self.started_at = body["metadata"]["annotations"]["odc.dev/started-at"]
            raise ApiRefused(409, Status(reason="AlreadyExists"), None)
        return b"{}"

    async def get(self, path: str) -> bytes:
        meta = {"uid": "one", "annotations": {"odc.dev/started-at": self.started_at}}
        return msgspec.json.encode({"metadata": meta})


def kinds(taking: Taking, *, script: str = "#!/bin/sh\ntrue\n") -> list[str]:
    """The objects created for a job on one node."""
    member = a_member(0, virtual=False, cpus=1)
    dispatch, texts = a_dispatch_of(script, members=(member,), uid=1001, gid=100)
    maker = PodWriter(cast("Cluster", taking), PodSettings(image="registry.example/job:1.0"))
    asyncio.run(maker.make(dispatch, texts, {member.node: OFFER}))
    return [one.split()[0] for one in taking.made]


def test_the_start_of_a_job_on_one_node_is_one_request() -> None:
    """Before: two, a pod and a ConfigMap; the API server's writes limit how many jobs start."""
    assert kinds(Taking()) == ["Pod"]
    assert kinds(Taking(), script=f"#!/bin/sh\n# {'x' * INLINE_BYTES}\n") == ["Pod", "ConfigMap"]


def test_a_pod_of_an_earlier_release_gets_its_script() -> None:
    assert kinds(Existing()) == ["Pod", "ConfigMap"]


@pytest.mark.parametrize(
    ("but", "made", "changed"),
    [
        pytest.param(set[int](), ["Pod 0", "Pod 1", "Pod 2", *BESIDE], ["0", "1", "2"],
                     id="none-has-begun"),
        pytest.param({1}, ["Pod 0", "Pod 2", *BESIDE], ["0", "2"], id="one-has"),
        pytest.param({0, 1}, ["Pod 2"], ["2"], id="the-first-has-and-so-has-its-script"),
        pytest.param({0, 1, 2}, [], [], id="all-have"),
    ],
)  # fmt: skip
def test_a_started_member_is_not_created_again(
    but: set[int], made: list[str], changed: list[str]
) -> None:
    """An order is repeated when any part of it failed, and its first members may have ended."""
    members = tuple(a_member(rank, virtual=False, cpus=1) for rank in range(3))
    dispatch, texts = a_dispatch_of(members=members, uid=1001, gid=100)
    taking = Taking()
    offers = {member.node: OFFER for member in members}
    maker = PodWriter(cast("Cluster", taking), PodSettings(image="registry.example/job:1.0"))
    asyncio.run(maker.make(dispatch, texts, offers, but))
    pod = f"odc-{dispatch.job_id}-{dispatch.attempt}-"
    named = [one.replace(pod, "") for one in taking.made]
    assert [one if one.startswith("Pod") else one.split()[0] for one in named] == made
    assert [one.removeprefix(pod) for one in taking.changed] == changed


class Pausing(Taking):
    """The daemon is suspended during its first request, and another one leads afterwards."""

    leads = True

    async def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        answer = await super().post(path, body)
        self.leads = False
        return answer


def test_a_daemon_that_was_replaced_during_a_start_creates_no_further_pods() -> None:
    """The new leader may have started the job and removed its pods meanwhile."""
    members = tuple(a_member(rank, virtual=False, cpus=1) for rank in range(3))
    dispatch, texts = a_dispatch_of(members=members, uid=1001, gid=100)
    taking = Pausing()
    settings = PodSettings(image="registry.example/job:1.0")
    maker = PodWriter(cast("Cluster", taking), settings, lambda: taking.leads)
    with pytest.raises(RunnerDown):
        asyncio.run(maker.make(dispatch, texts, {member.node: OFFER for member in members}))
    assert len(taking.made) == 1
    assert taking.changed == []
