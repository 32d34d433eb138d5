from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.odcd.api.conftest import _api_database, database_url, folder
from tests.support.fakes.sts import Sts, serving_sts

__all__ = ["_api_database", "database_url", "folder"]


@pytest.fixture
def sts() -> Iterator[Sts]:
    with serving_sts() as server:
        yield server
