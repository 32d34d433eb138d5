"""A Dockerfile's steps cannot read the push credential, and cannot affect other users' builds.

tests/kubernetes/test_builds.py tests the same on a real control plane: the policy odc-builds, and a
Dockerfile that searches the pod's containers for the credential.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from odcd.builds.context import own_digest, read_context
from odcd.builds.settings import BuildSettings
from odcd.errors import NotAllowed
from odcd.executor.kubernetes.build import PROGRAM
from odcd.executor.kubernetes.build_jobs import BuildPlace, credential_of, job_of
from odcd.executor.kubernetes.checks import JobCheck
from odcd.records.build import Build
from odcd.records.job import ReservationSpec
from tests.odcd.builds.test_context import packed
from tests.support.builders.jobs import ALICE, a_job

REGISTRY = "registry.example/builds"
SECRET = "push"
BUILD = Build(
    id=7, attempt=1, digest="a" * 64, target=REGISTRY, dockerfile="Dockerfile", uid=1001,
    made=False, started_at=datetime(2026, 1, 1, tzinfo=UTC),
)  # fmt: skip


KEY = Path("/var/run/odc-build-key")
PUSH = "registry.example:5001"


def pod_of(
    build: Build = BUILD, secret: str | None = SECRET, key: Path | None = None
) -> dict[str, Any]:
    settings = BuildSettings(registry=REGISTRY, secret=None if key else secret, key=key, push=PUSH)
    return job_of(build, BuildPlace(settings=settings, term=1))["spec"]["template"]["spec"]


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
        [client] = pod_of(strange, key=KEY)["containers"]
        variables = environment(client)
        assert variables["ODC_CACHE"] == f"{PUSH}/builds/u{uid}:cache"
        assert re.fullmatch(rf"{PUSH}/builds/u{uid}:[0-9a-f]{{32}}", variables["ODC_IMAGE"])
        caches.add(variables["ODC_CACHE"])
    assert len(caches) == 2


def test_only_builds_with_a_credential_of_their_own_have_caches() -> None:
    """A registry without a credential accepts pushes from anyone, including the steps of a
    Dockerfile. With one credential for all, a build that escapes BuildKit could write to all
    caches."""
    for secret in (None, SECRET):
        pod = pod_of(secret=secret)
        assert "ODC_CACHE" not in environment(pod["containers"][0])
    assert all("secret" not in volume for volume in pod_of(secret=None)["volumes"])


def test_the_credential_of_a_build_is_its_own() -> None:
    job = job_of(BUILD, BuildPlace(settings=BuildSettings(registry=REGISTRY, key=KEY), term=1))
    [named] = [v["secret"] for v in pod_of(key=KEY)["volumes"] if "secret" in v]
    assert named["secretName"] == job["metadata"]["name"]
    made = credential_of(BUILD, BuildSettings(registry=REGISTRY, key=KEY), "{}", "uid-of-job")
    assert made["metadata"]["name"] == job["metadata"]["name"]
    assert [one["uid"] for one in made["metadata"]["ownerReferences"]] == ["uid-of-job"]
    assert made["stringData"] == {".dockerconfigjson": "{}"}


OWN = BuildSettings(registry="registry-builds.odc.svc:5000/odc/builds", key=KEY)


@pytest.mark.parametrize(
    "image",
    [
        "registry-builds.odc.svc:5000/odc/builds/u1002@sha256:" + "a" * 64,
        "registry-builds.odc.svc:5000/odc/builds/u1002:cache",
        "registry-builds.odc.svc:5000/odc/builds@sha256:" + "a" * 64,
        "10.100.0.54:5000/odc/builds/u1002:cache",
        "localhost/odc/builds/u1002:cache",
        "odc/builds/u1002:cache",
        "registry-builds.odc.svc:5000/odc/builds/u1001/x:1",
        "registry-builds.odc.svc:5000/odc/builds/u10011:1",
    ],
)
def test_no_user_runs_the_image_of_another_users_dockerfile(image: str) -> None:
    """Whatever the registry is called: it contains that user's code."""
    server = ReservationSpec(script="", work_dir=Path("/"), image=image)
    for spec in (a_job(image=image), server):
        with pytest.raises(NotAllowed, match="built from a Dockerfile for another user"):
            JobCheck("job:1", "dev:1", OWN)(replace(ALICE, uid=1001), spec)


@pytest.mark.parametrize(
    "image",
    [
        "registry-builds.odc.svc:5000/odc/builds/u1001@sha256:" + "a" * 64,
        "registry-builds.odc.svc:5000/odc/base:1.0",
        "pytorch/pytorch:2.9.1",
        "ghcr.io/odc/builds-of-mine:1.0",
    ],
)
def test_ones_own_images_and_public_ones_can_be_named(image: str) -> None:
    JobCheck("job:1", "dev:1", OWN)(replace(ALICE, uid=1001), a_job(image=image))


def test_with_one_credential_for_all_no_built_image_can_be_named() -> None:
    """Their repository is the same, so the name does not show whose image it is."""
    shared = replace(OWN, key=None, secret="push")
    image = "registry-builds.odc.svc:5000/odc/builds@sha256:" + "a" * 64
    with pytest.raises(NotAllowed):
        JobCheck("job:1", "dev:1", shared)(replace(ALICE, uid=1001), a_job(image=image))


def test_a_dockerfile_names_no_image_of_the_builds_repository() -> None:
    """The credential would read other users' images and caches for it."""
    lines = PROGRAM.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("deny="))
    made = lines[begin : begin + 2]
    assert made[1].endswith(">/scratch/policy.json")
    variables = environment(pod_of(key=KEY)["containers"][0])
    printed = subprocess.run(
        ["sh", "-c", "\n".join(made).replace(">/scratch/policy.json", "")],
        env=variables, capture_output=True, text=True, check=True,
    )  # fmt: skip
    rules = json.loads(printed.stdout)["rules"]
    assert [rule["action"] for rule in rules] == ["DENY", "DENY"]
    assert [rule["selector"]["identifier"] for rule in rules] == [
        f"docker-image://{REGISTRY}*", f"docker-image://{PUSH}/builds*",
    ]  # fmt: skip
    assert "--source-policy-file /scratch/policy.json" in PROGRAM


@pytest.mark.parametrize("uid", [0, 1002])
def test_users_share_no_builds_of_the_same_context(uid: int) -> None:
    """A build may have started with a cache that the same user spoiled."""
    context = read_context(packed(("Dockerfile", b"FROM busybox\n")), "Dockerfile")
    mine, other = own_digest(1001, context.digest), own_digest(uid, context.digest)
    assert mine != other
    assert mine == own_digest(1001, context.digest)
    assert re.fullmatch("[0-9a-f]{64}", mine)
