"""Names of the driver, for modules that copy tables and attach partitions."""

from asyncpg import Connection, LockNotAvailableError, PostgresError, Record

__all__ = ["Connection", "LockNotAvailableError", "PostgresError", "Record"]
