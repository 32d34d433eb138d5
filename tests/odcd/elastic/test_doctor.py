"""Settings of elastic groups, and their checks by odcd doctor."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from odcd.disks.settings import DiskSettings
from odcd.doctor.elastic import examine_elastic
from odcd.doctor.host import Finding
from odcd.elastic.settings import ElasticSettings, read_elastic
from odcd.errors import BadRequest
from odcd.executor.kubernetes.settings import KubernetesSettings
from tests.odcd.elastic.test_loop import a_group
from tests.support.fakes.aws import REGION, FakeAws


def examine(fake: FakeAws, folder: Path) -> list[Finding]:
    """There is no cluster: other checks report that."""
    return asyncio.run(
        examine_elastic(
            ElasticSettings(elastic_cluster="c"),
            DiskSettings(aws_region=REGION, aws_endpoint=fake.url),
            KubernetesSettings(kubeconfig=folder / "none"),
        )
    )


def test_groups_that_can_be_used_are_named(fake: FakeAws, tmp_path: Path) -> None:
    a_group(fake, "g", most=3)
    [found] = examine(fake, tmp_path)
    assert (found.verdict, found.text) == ("ok", "elastic groups: g (0 to 3 nodes)")


def test_missing_groups_bad_tags_and_missing_rights_are_reported(
    fake: FakeAws, tmp_path: Path
) -> None:
    [found] = examine(fake, tmp_path)
    assert found.verdict == "bad"
    assert "odc.dev/cluster=c" in found.text
    a_group(fake, "g", **{"odc.dev/boot-s": "x"})
    [found] = examine(fake, tmp_path)
    assert found.text == 'g: its tag odc.dev/boot-s="x" is not 0 to 604800 seconds'
    fake.fail("DescribeAutoScalingGroups", "refuse", times=9, code="AccessDenied")
    [found] = examine(fake, tmp_path)
    assert "AccessDenied" in found.text
    assert found.hint is not None
    assert "elastic-groups" in found.hint


def test_settings_are_checked_at_the_start() -> None:
    own = {"ODC_ELASTIC_CLUSTER": "c", "ODC_ELASTIC_S": "5"}
    read = read_elastic(own, REGION, kubernetes=True)
    assert (read.elastic_cluster, read.elastic_every.total_seconds()) == ("c", 5)
    assert read_elastic({}, None, kubernetes=True).elastic_cluster is None
    assert read_elastic(own, REGION, kubernetes=False).elastic_cluster is None
    with pytest.raises(BadRequest, match="needs ODC_AWS_REGION"):
        read_elastic(own, None, kubernetes=True)
    with pytest.raises(BadRequest, match="not the name of a cluster"):
        read_elastic({"ODC_ELASTIC_CLUSTER": "a b"}, REGION, kubernetes=True)
