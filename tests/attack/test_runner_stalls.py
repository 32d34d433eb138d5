"""No user keeps the root runner from starting, or from answering others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odcd.runner import protocol
from tests.support.database import make_home, remove_home
from tests.support.runner import RunnerHome
from tests.support.users import needs_root

pytestmark = needs_root

ANN = {"uid": 64101, "gid": 64101}


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = make_home()
    yield folder
    remove_home(folder)


@pytest.fixture
def home(folder: Path) -> Iterator[RunnerHome]:
    home = RunnerHome(folder / "runner")
    home.launch()
    yield home
    home.end()


def test_no_user_can_lock_the_runners_lock(folder: Path) -> None:
    home = RunnerHome(folder / "runner")
    home.run_dir.mkdir(mode=0o711)
    lock = home.run_dir / protocol.LOCK_NAME
    lock.touch(0o644)
    home.launch()
    try:
        assert lock.stat().st_mode & 0o777 == 0o600
    finally:
        home.end()
