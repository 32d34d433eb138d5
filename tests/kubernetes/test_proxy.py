"""The fault proxy disturbs what its rules name and passes the rest unchanged."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.harness.controlplane.api import Api, Refused
from tests.support.harness.controlplane.children import wait_until
from tests.support.harness.controlplane.plane import Cluster
from tests.support.harness.controlplane.proxy import FaultProxy

VERSION = "/version"


@pytest.fixture
def proxy(cluster: Cluster, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(cluster, tmp_path / "proxy", seed=7) as made:
        yield made


@pytest.fixture
def through(proxy: FaultProxy, cluster: Cluster) -> Iterator[Api]:
    made = Api(proxy.kubeconfig(cluster.admin))
    yield made
    made.close()


def _configmap(namespace: str, name: str) -> dict[str, object]:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b"}}


def test_without_rules_all_requests_pass(
    cluster: Cluster, proxy: FaultProxy, through: Api, namespace: str
) -> None:
    made = through.create(_configmap(namespace, "c"))
    assert through.get(f"/api/v1/namespaces/{namespace}/configmaps/c") == made
    listed = cluster.kubectl(
        "get", "configmap", "-n", namespace, kubeconfig=proxy.kubeconfig(cluster.admin)
    )
    assert "kube-root-ca.crt" in listed
    assert proxy.counts()["requests"] > 2


@pytest.mark.parametrize(
    ("code", "reason"),
    [(409, "Conflict"), (429, "TooManyRequests"), (500, "InternalError")],
    ids=["conflict", "too-many", "internal"],
)
def test_a_share_of_writes_is_refused_and_not_done(
    proxy: FaultProxy, through: Api, namespace: str, code: int, reason: str
) -> None:
    done: set[str] = set()
    refusals: set[tuple[int, str]] = set()
    with proxy.spoiling(**{f"share_{code}": 0.3}):
        for number in range(60):
            try:
                through.create(_configmap(namespace, f"c{number}"))
                done.add(f"c{number}")
            except Refused as refused:
                refusals.add((refused.code, refused.reason))
    assert refusals == {(code, reason)}
    assert 5 < proxy.counts()[f"share_{code}"] == 60 - len(done) < 40
    there = through.items(f"/api/v1/namespaces/{namespace}/configmaps")
    assert {one["metadata"]["name"] for one in there} - {"kube-root-ca.crt"} == done


def test_a_write_whose_answer_is_lost_was_done(
    proxy: FaultProxy, through: Api, namespace: str
) -> None:
    with proxy.spoiling(share_lost=1.0), pytest.raises(ConnectionError):
        through.create(_configmap(namespace, "c"))
    assert through.get(f"/api/v1/namespaces/{namespace}/configmaps/c")["data"] == {"a": "b"}


def test_a_dropped_watch_ends_with_an_error(
    proxy: FaultProxy, through: Api, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    proxy.rules(drop_watch_s=0.2)
    with through.stream(path, watch=True) as lines:
        assert json.loads(next(lines))["object"]["kind"] == "ConfigMap"
        with pytest.raises(httpx.TransportError):
            list(lines)
    assert proxy.counts()["drop_watch_s"] == 1


def test_a_stalled_watch_stays_open_and_sends_nothing(
    cluster: Cluster, proxy: FaultProxy, through: Api, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    proxy.rules(stall_watch_s=0.01)
    patient = Api(through.kubeconfig, timeout_s=1)
    seen: list[str] = []
    with patient.stream(path, watch=True) as lines:
        wait_until(lambda: proxy.counts().get("stall_watch_s"), "the watch to stall")
        cluster.api.create(_configmap(namespace, "unseen"))
        with pytest.raises(httpx.ReadTimeout):
            seen.extend(lines)
    patient.close()
    assert "unseen" not in "".join(seen)


def test_connections_are_refused_for_a_while_and_then_accepted(
    proxy: FaultProxy, through: Api
) -> None:
    through.get(VERSION)
    began = time.monotonic()
    proxy.refuse(0.5)
    assert 0.4 < time.monotonic() - began < 30
    with contextlib.suppress(ConnectionError):  # of the pooled connection that was cut
        through.get(VERSION)
    assert through.get(VERSION)["major"] == "1"
