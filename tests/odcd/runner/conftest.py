from __future__ import annotations

import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.database import make_home, remove_home
from tests.support.harness.runner import RunnerHome
from tests.support.harness.users import account


@pytest.fixture
def home(tmp_path: Path) -> Iterator[RunnerHome]:
    """A running runner; everything it started is gone after the test."""
    home = RunnerHome(tmp_path / "runner")
    home.launch()
    yield home
    home.end()


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def nobody() -> pwd.struct_passwd:
    return account("nobody")


@pytest.fixture
def other() -> pwd.struct_passwd:
    return account("daemon")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter; not pytest's, which another run makes private when it
    starts."""
    folder = make_home()
    yield folder
    remove_home(folder)


@pytest.fixture
def open_home(open_folder: Path) -> Iterator[RunnerHome]:
    """A runner in a folder that other users can enter."""
    home = RunnerHome(open_folder / "runner")
    home.launch()
    yield home
    home.end()
