from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runner import RunnerHome


@pytest.fixture
def home(tmp_path: Path) -> Iterator[RunnerHome]:
    """A runner that runs; whatever it started is gone after the test."""
    home = RunnerHome(tmp_path / "runner")
    home.launch()
    yield home
    home.end()


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
