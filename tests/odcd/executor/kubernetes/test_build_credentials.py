"""A build gets a credential of its own before its pod can start, and its image is where the build
pushed it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from odcd.builds.settings import BuildSettings, read_builds
from odcd.errors import BadRequest, WrongState
from odcd.executor.kubernetes.build_jobs import REPOSITORY, BuildPlace, job_name, job_of
from odcd.executor.kubernetes.builds import BuildJobs, Sign
from odcd.executor.kubernetes.cluster import Cluster
from odcd.records.build import Build, BuildLook

Json = dict[str, Any]
BUILD = Build(
    id=7, attempt=1, digest="a" * 64, target="registry.example:5000/odc/builds",
    dockerfile="Dockerfile", uid=1001, made=True, started_at=datetime(2026, 1, 1, tzinfo=UTC),
)  # fmt: skip
OWN = BuildSettings(registry=BUILD.target, push="registry.example:5001", key=Path("/unused"))
DIGEST = f"sha256:{'e' * 64}"


class FakeCluster:
    """Keeps what it is asked to make; the Job of the build is complete."""

    def __init__(self, job: Json | None = None) -> None:
        self.made: list[Json] = []
        self._job = job

    async def post(self, path: str, body: Json) -> bytes:
        self.made.append(body)
        return json.dumps({"metadata": {"uid": "of-job"}}).encode()

    async def get(self, path: str, params: Any = None) -> bytes:
        assert self._job is not None
        if path.endswith("/log"):
            return b""
        if path.endswith("/jobs"):
            done = {"conditions": [{"type": "Complete", "status": "True"}]}
            return json.dumps({"items": [self._job | {"status": done}]}).encode()
        ended = {"terminated": {"exitCode": 0, "message": DIGEST}}
        labels = {"batch.kubernetes.io/job-name": job_name(BUILD)}
        pod = {
            "metadata": {"name": "pod", "labels": labels},
            "status": {"containerStatuses": [{"name": "build", "state": ended}]},
        }
        return json.dumps({"items": [pod]}).encode()


def builder(cluster: FakeCluster, own: BuildSettings, sign: Sign | None = None) -> BuildJobs:
    place = BuildPlace(settings=own, term=1)
    return BuildJobs(cast("Cluster", cluster), place, lambda: True, sign)


def test_a_build_gets_a_credential_before_its_context() -> None:
    """Its pod waits for both; all of them belong to the Job, and end with it."""
    cluster = FakeCluster()
    asyncio.run(builder(cluster, OWN, lambda build: f"of build {build.id}").begin(BUILD, b"x"))
    assert [one["kind"] for one in cluster.made] == ["Job", "Secret", "ConfigMap"]
    secret = cluster.made[1]
    assert secret["stringData"] == {".dockerconfigjson": "of build 7"}
    assert secret["metadata"]["ownerReferences"][0]["uid"] == "of-job"
    assert "of build 7" not in json.dumps([cluster.made[0], cluster.made[2]])


def test_without_the_key_only_builds_fail_and_say_why() -> None:
    with pytest.raises(WrongState, match="no credential to push with"):
        asyncio.run(builder(FakeCluster(), OWN).begin(BUILD, b"x"))


def test_builds_without_credentials_of_their_own_need_no_secret() -> None:
    cluster = FakeCluster()
    shared = replace(OWN, key=None, secret="push")
    asyncio.run(builder(cluster, shared).begin(BUILD, b"x"))
    assert [one["kind"] for one in cluster.made] == ["Job", "ConfigMap"]


@pytest.mark.parametrize(
    ("by_old", "repository"),
    [(False, "registry.example:5000/odc/builds/u1001"), (True, "registry.example:5000/odc/builds")],
)
def test_the_image_is_where_the_build_pushed_it(by_old: bool, repository: str) -> None:
    """A build that an older odc began, before an upgrade, pushed it to the repository of all."""
    job = job_of(BUILD, BuildPlace(settings=OWN, term=1))
    if by_old:
        del job["metadata"]["annotations"][REPOSITORY]
    looks: dict[int, BuildLook] = asyncio.run(
        builder(FakeCluster(job), OWN, lambda _: "").survey([BUILD])
    )
    assert looks[7].image == f"{repository}@{DIGEST}"


def test_the_settings_of_credentials_are_read() -> None:
    read = read_builds(
        {
            "ODC_BUILD_REGISTRY": "r.example/b", "ODC_BUILD_KEY": "/key",
            "ODC_BUILD_PUSH": "r.example:5001", "ODC_BUILD_USER_NAMESPACES": "on",
        }
    )  # fmt: skip
    assert (str(read.key), read.push_host, read.user_namespaces) == ("/key", "r.example:5001", True)
    assert read_builds({"ODC_BUILD_REGISTRY": "r.example:5000/b"}).push_host == "r.example:5000"


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"ODC_BUILD_KEY": "/key", "ODC_BUILD_SECRET": "push"}, "ODC_BUILD_SECRET are both set"),
        ({"ODC_BUILD_PUSH": "r.example/path"}, "ODC_BUILD_PUSH"),
        ({"ODC_BUILD_USER_NAMESPACES": "1"}, "ODC_BUILD_USER_NAMESPACES"),
    ],
)
def test_wrong_settings_of_credentials_are_refused(wrong: dict[str, str], named: str) -> None:
    with pytest.raises(BadRequest, match=named):
        read_builds(wrong)
