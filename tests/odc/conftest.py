from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odc import Client
from tests.support.harness.daemon import Odc, new_odc

NODES = ("--node", "gpu-01=h100:8", "--node", "self")


@pytest.fixture(scope="session")
def odc(seed: Path) -> Iterator[Odc]:
    """A daemon of the user who runs the tests."""
    with new_odc(seed=seed) as found:
        found.up(*NODES)
        yield found


@pytest.fixture
def client(odc: Odc, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Finds the daemon as odcctl does, in the environment of a user."""
    for name, value in odc.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(odc.work)
    return Client()
