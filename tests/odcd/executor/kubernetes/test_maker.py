"""Pods are taken away for sure: what an answer leaves open is asked again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest

from odcd.executor.kubernetes.cluster import ApiRefused, Cluster, Status
from odcd.executor.kubernetes.maker import Maker
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pods import PodSettings

POD = msgspec.convert(
    {"metadata": {"name": "odc-7-1-0", "namespace": "gpu-batch", "uid": "first"}}, Pod
)


class Refusing:
    """Refuses every delete; has a pod of that uid, or none."""

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
    asyncio.run(Maker(cluster, PodSettings()).remove(POD, 30, unchanged=unchanged))


@pytest.mark.parametrize(
    ("status", "uid"),
    [
        pytest.param(404, None, id="not-there"),
        pytest.param(409, None, id="gone-meanwhile"),
        pytest.param(409, "second", id="another-of-its-name"),
    ],
)
def test_what_is_not_there_is_removed(status: int, uid: str | None) -> None:
    remove(status, uid)


def test_a_conflict_while_the_pod_is_there_is_no_removal() -> None:
    with pytest.raises(ApiRefused):
        remove(409, "first")


def test_a_pod_that_changed_meanwhile_stays_where_that_was_asked_for() -> None:
    remove(409, "first", unchanged=True)
