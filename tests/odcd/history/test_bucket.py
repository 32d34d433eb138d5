"""Exports in an S3 bucket, served by moto."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from odcd.errors import OdcError
from odcd.history.restore import restore
from odcd.history.targets import open_target
from tests.odcd.history.past import Site
from tests.odcd.history.test_export import contents
from tests.odcd.history.test_retention import delete
from tests.support.builders.jobs import NOW
from tests.support.fakes.aws import running_moto
from tests.support.fakes.clock import VirtualClock
from tests.support.harness.database import Sql

pytestmark = pytest.mark.long

BUCKET = "odc-history"
TARGET = f"s3://{BUCKET}/some/prefix"


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with running_moto(tmp_path) as port:
        url = f"http://127.0.0.1:{port}"
        client: Any = boto3.client("s3", endpoint_url=url)  # pyright: ignore[reportUnknownMemberType]
        client.create_bucket(Bucket=BUCKET)
        yield url


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    with Sql(database_url) as sql:
        yield Site(sql)


@pytest.mark.long
def test_an_export_in_a_bucket_can_be_restored(site: Site, endpoint: str) -> None:
    before = contents(site)
    assert delete(site, export_target=TARGET, endpoint=endpoint).jobs == len(site.old)
    assert site.jobs() == site.recent

    async def back() -> tuple[list[str], int]:
        async with open_target(TARGET, endpoint) as target:
            names = list(await target.exports())
            _, rows = await restore(site.sql.dsn, target, names[0], VirtualClock(NOW))
            return names, rows

    names, rows = asyncio.run(back())
    assert [name.split("-")[0] for name in names] == ["jobs"]
    assert rows > 0
    assert contents(site) == before


def test_a_bucket_that_is_absent_keeps_every_job(site: Site, endpoint: str) -> None:
    with pytest.raises(OdcError, match="cannot be used"):
        delete(site, export_target="s3://absent-bucket", endpoint=endpoint)
    assert site.jobs() == site.old + site.recent


def test_an_export_that_is_absent_from_a_bucket_is_named(site: Site, endpoint: str) -> None:
    async def back() -> None:
        async with open_target(TARGET, endpoint) as target:
            await restore(
                site.sql.dsn, target, "jobs-1-2-20260101T000000000000Z", VirtualClock(NOW)
            )

    with pytest.raises(OdcError, match="does not exist, or was cut short"):
        asyncio.run(back())
