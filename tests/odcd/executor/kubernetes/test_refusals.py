"""Temporary and permanent refusals of the API server."""

from __future__ import annotations

import pytest

from odcd.executor.kubernetes.api_retries import may_pass
from odcd.executor.kubernetes.cluster import ApiRefused, Status


@pytest.mark.parametrize(
    ("status", "message", "passes"),
    [
        pytest.param(500, "etcdserver: leader changed", True, id="trouble"),
        pytest.param(429, "slow down", True, id="too-many"),
        pytest.param(409, "the object has been modified", True, id="conflict"),
        pytest.param(404, 'namespaces "gpu-batch" not found', True, id="no-namespace"),
        pytest.param(403, 'pods "a" is forbidden: exceeded quota: jobs-only', True, id="quota"),
        pytest.param(403, 'User "odcd" cannot create resource "pods"', True, id="no-create"),
        pytest.param(403, 'User "odcd" cannot patch resource "pods"', True, id="no-patch"),
        pytest.param(403, 'violates PodSecurity "baseline:latest"', False, id="pod-security"),
        pytest.param(422, "spec.hostname: Invalid value", False, id="invalid"),
    ],
)
def test_only_temporary_refusals_are_retried(status: int, message: str, passes: bool) -> None:
    assert may_pass(ApiRefused(status, Status(message=message), None)) is passes
