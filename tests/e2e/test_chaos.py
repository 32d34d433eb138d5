"""kill -9 of the daemon, the runner and PostgreSQL at random moments: nothing accepted is lost."""

from __future__ import annotations

import os

import pytest

from tests.e2e.storm import Storm, weather
from tests.support.harness.daemon import new_odc

JOBS = int(os.environ.get("ODC_CHAOS_JOBS", "40"))


@pytest.mark.long
def test_every_accepted_job_ends_once_while_processes_are_killed() -> None:
    with new_odc() as odc:
        storm = Storm(odc, seed=1, jobs=12)
        weather(odc, storm)
        assert storm.killed.keys() == {"daemon", "runner", "postgres"}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 102))
def test_every_accepted_job_ends_once_during_many_kills(seed: int) -> None:
    with new_odc() as odc:
        weather(odc, Storm(odc, seed, jobs=JOBS, shims=seed % 2 == 1))
