"""Calls are timed under a few fixed names, and names chosen by users never become labels."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from odcd.database.session import _operation
from odcd.errors import RunnerDown
from odcd.executor.kubernetes.api_operations import operation_of
from odcd.executor.kubernetes.cluster import ApiRefused, Status, is_trouble
from odcd.executor.kubernetes.settings import KubernetesSettings
from odcd.executor.link import Link, RunnerRefused
from odcd.metrics import Metrics
from odcd.runner import protocol

POD = "/api/v1/namespaces/gpu-dev/pods"


@pytest.mark.parametrize(
    ("method", "path", "query", "operation"),
    [
        ("GET", f"{POD}/odc-7-1-0", (), "get pods"),
        ("GET", POD, (), "list pods"),
        ("GET", POD, [("watch", "true")], "watch pods"),
        ("GET", "/api/v1/pods", [("watch", "true"), ("limit", 5)], "watch pods"),
        ("GET", "/api/v1/nodes", (), "list nodes"),
        ("GET", f"{POD}/odc-7-1-0/log", [("follow", "true")], "get pods/log"),
        ("POST", POD, (), "create pods"),
        ("DELETE", f"{POD}/odc-7-1-0", (), "delete pods"),
        ("PATCH", "/api/v1/persistentvolumes/x", (), "patch persistentvolumes"),
        ("GET", "/api/v1/namespaces/gpu-batch", (), "get namespaces"),
        ("POST", "/apis/batch/v1/namespaces/n/jobs", (), "create jobs"),
        ("GET", "/apis/batch/v1/namespaces/n/jobs/b-1", (), "get jobs"),
        ("GET", "/version", (), "get about"),
    ],
)
def test_requests_to_kubernetes_are_timed_by_verb_and_kind(
    method: str, path: str, query: Any, operation: str
) -> None:
    assert operation_of(method, path, query) == operation


def test_not_found_and_conflict_are_not_counted_as_errors_of_kubernetes() -> None:
    statuses = {
        s: is_trouble(ApiRefused(s, Status(), None)) for s in (404, 409, 410, 403, 429, 500)
    }
    assert statuses == {404: False, 409: False, 410: False, 403: True, 429: True, 500: True}
    assert is_trouble(RunnerDown("x"))
    assert not is_trouble(ValueError("x"))


def test_statements_are_timed_by_the_function_that_they_call() -> None:
    assert _operation("select a from odc.list_jobs(p_now => $1)") == "list_jobs"
    assert _operation("select id from odc.job where id = any ($1)") == "other"


def test_runner_requests_are_timed_by_operation() -> None:
    metrics = Metrics()

    async def work() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for answer in ({"id": 1, "ok": {}}, {"id": 2, "error": {"code": "x", "message": "y"}}):
                await reader.readline()
                writer.write(protocol.encode(answer))
            await reader.read()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        link = Link(reader, writer, metrics.backend("runner"))
        await link.ask("start")
        with pytest.raises(RunnerRefused):
            await link.ask("start")
        link.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()

    asyncio.run(work())
    labels = {"backend": "runner", "operation": "start"}
    value_of = metrics.registry.get_sample_value
    assert value_of("odcd_backend_request_seconds_count", labels) == 2
    assert value_of("odcd_backend_errors_total", labels) == 1


def test_only_the_leader_reports_passes() -> None:
    metrics = Metrics()
    metrics.leading(True)
    metrics.passed(0.01, 7, 1000.0)
    assert metrics.last_pass == (1000.0, 7)
    metrics.leading(False)
    assert metrics.last_pass is None


def test_phases_have_the_limits_that_are_set() -> None:
    metrics = Metrics()
    metrics.limit_phases(KubernetesSettings(start_budget=timedelta(hours=2)).phase_limits)

    def limit(phase: str) -> float | None:
        name = "odcd_reservation_phase_limit_seconds"
        return metrics.registry.get_sample_value(name, {"phase": phase})

    assert [limit(phase) for phase in ("scheduling", "image_pull", "ssh")] == [660, 7200, 600]
    # All of what the others have still before them.
    assert limit("gang_barrier") == 660 + 7200 + 600
    assert limit("queued") is None


def test_failures_of_measures_are_counted_from_zero() -> None:
    """Otherwise the first one would not count as an increase."""
    text = Metrics().expose(None, None)[0].decode()
    for name in ("measure_queue", "fold_tally", "render_job_info"):
        assert f'odcd_sample_errors_total{{measure="{name}"}} 0.0\n' in text
