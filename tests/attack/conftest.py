"""The attacks on the API use the database and the folders of the API's tests."""

from tests.odcd.api.conftest import (  # pyright: ignore[reportPrivateUsage]
    _api_database as _api_database,
)
from tests.odcd.api.conftest import database_url as database_url
from tests.odcd.api.conftest import folder as folder
