"""One moto for the tests of a process, emptied for each of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore import loaders

from tests.support.fakes.aws import ZONES, FakeAws, running_moto, serving_aws, set_credentials


@pytest.fixture(scope="session")
def moto_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running_moto(tmp_path_factory.mktemp("moto")) as port:
        with serving_aws(port) as server:
            # The first of its kind takes moto seconds.
            server.ec2.create_volume(AvailabilityZone=ZONES[0], Size=1, Encrypted=True)
            server.ec2.describe_snapshots(OwnerIds=["self"])
            server.make_file_system()
        yield port


@pytest.fixture(scope="session", autouse=True)
def _one_model_of_aws() -> Iterator[None]:
    """The description of AWS's API is megabytes of JSON, which every client of a new session would
    read again."""
    with pytest.MonkeyPatch.context() as patch:
        load = functools.cache(loaders.JSONFileLoader().load_file)
        patch.setattr(loaders.JSONFileLoader, "load_file", lambda _, path: load(path))
        yield


@pytest.fixture
def fake(moto_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAws]:
    set_credentials(monkeypatch)
    folder = tmp_path / "bytes"
    folder.mkdir()
    with serving_aws(moto_port, folder) as server:
        yield server
