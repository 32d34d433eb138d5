from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.database import make_home, remove_home


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can enter."""
    home = make_home()
    yield home
    remove_home(home)
