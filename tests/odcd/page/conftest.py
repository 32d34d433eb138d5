"""One database for all tests of the page, as those of the API have it."""

from tests.odcd.api.conftest import _api_database, database_url

__all__ = ["_api_database", "database_url"]
