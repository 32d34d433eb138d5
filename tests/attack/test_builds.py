"""A Dockerfile's steps cannot read the push credential, and cannot affect other users' builds.

tests/kubernetes/test_builds.py tests the same on a real control plane: the policy odc-builds, and a
Dockerfile that searches the pod's containers for the credential.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from odcd.builds.context import own_digest, read_context
from odcd.builds.settings import BuildSettings
from odcd.executor.kubernetes.build import PROGRAM
from odcd.executor.kubernetes.build_jobs import BuildPlace, job_of
from odcd.records.build import Build
from tests.odcd.builds.test_context import packed

REGISTRY = "registry.example/builds"
SECRET = "push"
BUILD = Build(
    id=7, attempt=1, digest="a" * 64, target=REGISTRY, dockerfile="Dockerfile", uid=1001,
    made=False, started_at=datetime(2026, 1, 1, tzinfo=UTC),
)  # fmt: skip


def pod_of(build: Build = BUILD, secret: str | None = SECRET) -> dict[str, Any]:
    place = BuildPlace(settings=BuildSettings(registry=REGISTRY, secret=secret), term=1)
    return job_of(build, place)["spec"]["template"]["spec"]


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container.get("env", [])}


def test_the_credential_is_in_no_container_that_runs_a_dockerfiles_steps() -> None:
    pod = pod_of()
    [buildkit], [client] = pod["initContainers"], pod["containers"]
    secrets = {volume["name"] for volume in pod["volumes"] if "secret" in volume}
    assert len(secrets) == 1
    assert not secrets & {mount["name"] for mount in buildkit["volumeMounts"]}
    assert secrets < {mount["name"] for mount in client["volumeMounts"]}
    assert "env" not in buildkit
    assert "envFrom" not in buildkit
    assert buildkit["restartPolicy"] == "Always", "a sidecar, which ends with the client"
    assert "buildctl-daemonless" not in PROGRAM, "BuildKit would run beside the credential"
    shared = {m["name"] for m in buildkit["volumeMounts"]} & {
        m["name"] for m in client["volumeMounts"]
    }
    assert shared == {"socket"}


def test_the_containers_of_a_build_share_no_processes() -> None:
    """Else /proc/PID/root would lead from a Dockerfile's steps to the credential."""
    for secret in (SECRET, None):
        pod = pod_of(secret=secret)
        for name in ("shareProcessNamespace", "hostPID", "hostIPC", "hostNetwork"):
            assert not pod.get(name)
        assert pod["automountServiceAccountToken"] is False


def test_the_container_with_the_credential_is_restricted() -> None:
    [client] = pod_of()["containers"]
    security = client["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}


def test_a_build_cache_belongs_to_one_user_and_no_request_can_choose_it() -> None:
    """Named by the uid, which the daemon determines; no part of a request goes into a reference."""
    caches = set[str]()
    for uid in (1001, 1002):
        strange = replace(BUILD, uid=uid, dockerfile=f"cache-{3003 - uid}")
        [client] = pod_of(strange)["containers"]
        variables = environment(client)
        assert variables["ODC_CACHE"] == f"{REGISTRY}:cache-{uid}"
        assert re.fullmatch(rf"{REGISTRY}:[0-9a-f]{{32}}", variables["ODC_IMAGE"])
        caches.add(variables["ODC_CACHE"])
    assert len(caches) == 2


def test_a_registry_without_a_credential_has_no_caches() -> None:
    """It accepts pushes from anyone, including the steps of a Dockerfile."""
    pod = pod_of(secret=None)
    assert "ODC_CACHE" not in environment(pod["containers"][0])
    assert all("secret" not in volume for volume in pod["volumes"])


def test_a_dockerfile_names_no_image_of_the_builds_repository() -> None:
    """The credential would read other users' images and caches for it."""
    line = next(line for line in PROGRAM.splitlines() if "policy.json" in line)
    policy = re.search(r"printf '(.*)' \"\$ODC_REPOSITORY\"", line)
    assert policy is not None
    [rule] = json.loads(policy[1].replace("%s", REGISTRY))["rules"]
    assert rule == {"action": "DENY", "selector": {"identifier": f"docker-image://{REGISTRY}*"}}
    assert "--source-policy-file /scratch/policy.json" in PROGRAM
    assert environment(pod_of()["containers"][0])["ODC_REPOSITORY"] == REGISTRY


@pytest.mark.parametrize("uid", [0, 1002])
def test_users_share_no_builds_of_the_same_context(uid: int) -> None:
    """A build may have started with a cache that the same user spoiled."""
    context = read_context(packed(("Dockerfile", b"FROM busybox\n")), "Dockerfile")
    mine, other = own_digest(1001, context.digest), own_digest(uid, context.digest)
    assert mine != other
    assert mine == own_digest(1001, context.digest)
    assert re.fullmatch("[0-9a-f]{64}", mine)
