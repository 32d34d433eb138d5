from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness.workers import ONE_WORKER, TRIED_AGAIN

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("start", [*ONE_WORKER, *TRIED_AGAIN])
def test_a_group_names_tests_that_exist(start: str) -> None:
    assert list(ROOT.glob(f"{start.rstrip('/')}*"))
