from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness.workers import ONE_WORKER, TRIED_AGAIN

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("start", [*ONE_WORKER, *TRIED_AGAIN])
def test_a_group_names_tests_that_exist(start: str) -> None:
    path, _, name = start.partition("::")
    found = list(ROOT.glob(f"{path.rstrip('/')}*"))
    assert found
    assert not name or f"def {name}" in found[0].read_text("utf-8")
