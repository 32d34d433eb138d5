"""An API server that does not answer, or refuses, is no report that a pod is gone: only 404 is."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from odcd.clock import SystemClock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster, Status
from odcd.executor.kubernetes.informer import Expired, Mirror
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.executor.kubernetes.pods import PodSettings

POD = {
    "metadata": {"name": "odc-7-1-0", "namespace": "gpu-dev", "uid": "u", "resourceVersion": "1"},
    "spec": {}, "status": {"phase": "Running"},
}  # fmt: skip
ERRORS = [
    RunnerDown("the API server does not answer"),
    *(ApiRefused(code, Status(code=code), None) for code in (401, 403, 409, 429, 500, 503)),
]


class Answers:
    """A cluster that gives these answers in turn, and the last one from then on."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    async def get(self, _path: str, *_query: Any, **_more: Any) -> bytes:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return msgspec.json.encode(answer)


def mirror(*answers: Any) -> tuple[Mirror[Pod], list[tuple[bool, bool]]]:
    """With the changes that it reports, as (there before, there after)."""
    changes: list[tuple[bool, bool]] = []
    made = Mirror(
        cast("Cluster", Answers(*answers)), "/api/v1/namespaces/gpu-dev/pods", Pod, SystemClock(),
        lambda before, after: changes.append((before is not None, after is not None)),
    )  # fmt: skip
    return made, changes


@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_an_error_of_the_api_server_removes_no_pod(error: Exception) -> None:
    """BUG-02, LIF-11: an active reservation keeps its pod, and so its state, until a list succeeds
    that lacks the pod."""
    pods, changes = mirror({"metadata": {}, "items": [POD]}, error)
    asyncio.run(pods.list())
    for _ in range(3):
        with pytest.raises((RunnerDown, ApiRefused, Expired)):
            asyncio.run(pods.list())
    assert (list(pods.items), changes) == (["gpu-dev/odc-7-1-0"], [(False, True)])


def test_a_list_without_the_pod_is_its_end() -> None:
    pods, changes = mirror({"metadata": {}, "items": [POD]}, {"metadata": {}, "items": []})
    asyncio.run(pods.list())
    asyncio.run(pods.list())
    assert (dict(pods.items), changes) == ({}, [(False, True), (True, False)])


@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_only_404_says_that_a_pod_is_missing(error: Exception) -> None:
    """BUG-03: any other error of the API is an error, also for who asks for one pod."""

    def find(answer: Exception) -> Pod | None:
        writer = PodWriter(cast("Cluster", Answers(answer)), PodSettings())
        return asyncio.run(writer.find_member((7, 1, 0)))

    with pytest.raises((RunnerDown, ApiRefused)):
        find(error)
    assert find(ApiRefused(404, Status(code=404), None)) is None
