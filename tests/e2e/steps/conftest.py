"""A daemon for the tests of one file, Slurm's commands, and a job that holds two nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.daemon import Odc, new_odc
from tests.support.harness.slurm import NODES, Slurm, holding_two, slurm_of


@pytest.fixture(scope="module")
def odc() -> Iterator[Odc]:
    with new_odc() as found:
        found.up(*NODES)
        yield found


@pytest.fixture
def slurm(odc: Odc, tmp_path: Path) -> Iterator[Slurm]:
    with slurm_of(odc, tmp_path / "bin") as made:
        yield made


@pytest.fixture
def two(slurm: Slurm) -> Iterator[Slurm]:
    with holding_two(slurm) as made:
        yield made
