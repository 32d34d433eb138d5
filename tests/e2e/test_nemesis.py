"""Two daemons and one PostgreSQL while a nemesis works on them: what was accepted ends once.

`make test-long` runs two minutes; `make test-soak` thirty, with the lease that odcd has by itself.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.nemesis import faults
from tests.support.nemesis.run import a_run

pytestmark = pytest.mark.long

SEED = int(os.environ.get("ODC_NEMESIS_SEED", "1"))
FOR_S = float(os.environ.get("ODC_NEMESIS_S", "120"))
LEASE_S = float(os.environ.get("ODC_NEMESIS_LEASE_S", "4"))
KINDS = frozenset(os.environ.get("ODC_NEMESIS_KINDS", ",".join(faults.KINDS)).split(","))
LED_S = 30.0
"""The longest without a leader. odcd promises 15 s, on a machine that is not busy with this."""


def test_whatever_fails_each_accepted_job_ends_once_under_one_leader(seed: Path) -> None:
    with a_run(seed, SEED, FOR_S, LEASE_S, LED_S, KINDS) as run:
        wrong = run.run()
        assert wrong == [], f"seed {SEED}: {len(wrong)} defects\n{run.pair.log()}"
