"""The attacks on the API use its tests' one database and its folders."""

from tests.odcd.api.conftest import (  # pyright: ignore[reportPrivateUsage]
    _api_database as _api_database,
)
from tests.odcd.api.conftest import database_url as database_url
from tests.odcd.api.conftest import folder as folder
