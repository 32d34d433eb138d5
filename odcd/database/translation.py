"""Translate the errors of the database driver into those of odcd.errors."""

from __future__ import annotations

from typing import Any

import asyncpg

from odcd.errors import BY_CODE, BadRequest, DatabaseBusy, DatabaseDown, TooLarge

# After these errors everything was rolled back, so the statement may run again.
ROLLED_BACK = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)

# Driver errors for a lost connection, and for bugs in odc.
BROKEN = (asyncpg.InterfaceError, asyncpg.InternalClientError)

# SQLSTATE classes of a server that is down, stopping, starting, full or not usable by odc.
DOWN_CLASSES = frozenset({"08", "53", "58"})
DOWN_STATES = frozenset(
    {"57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04", "25006", "3D000", "XX001"}
)
LOGIN_CLASS = "28"
LOCK_WAIT = "55P03"
OUT_OF_TIME = "57014"
# Text that PostgreSQL cannot store: a NUL, or invalid UTF-8.
TEXT_STATES = frozenset({"22021", "22P05"})
# A number or time that PostgreSQL cannot compute with: reported to the sender.
RANGE_STATES = frozenset({"22003", "22008"})
# More than PostgreSQL works with at once: 256 MiB of JSON in one array, 1 GiB in one value.
SIZE_STATE = "54000"
# New sessions of a server with a full disk report this text in an internal error (XX000).
NO_SPACE = "No space left on device"
POOLER_WORD = "unsupported startup parameter"
TRY_AGAIN = "Nothing was changed. Try again in a moment."
POOLERS = "Connect odcd to PostgreSQL itself: see docs/operating/connection-poolers.md."


def translate(error: BaseException) -> BaseException:
    """Return the OdcError for an error of the driver; an unexpected error is returned unchanged."""
    if isinstance(error, asyncpg.PostgresError):
        return _of_server(error)
    if isinstance(error, (OSError, TimeoutError)):
        return DatabaseDown(
            f"PostgreSQL cannot be reached: {error or type(error).__name__}",
            "Nothing was lost; try again. `odcd doctor` checks the PostgreSQL of a home; check "
            "your own PostgreSQL with `psql DSN`.",
        )
    return error


def translate_on(connection: Any, error: Exception) -> BaseException:
    """Like translate(), for an error on this connection, which may have been closed in the
    meantime."""
    if isinstance(error, BROKEN) and connection.is_closed():
        return closed(error)
    return translate(error)


def closed(error: Exception) -> DatabaseDown:
    return DatabaseDown(f"the connection to PostgreSQL is gone: {error}", "Try again.")


def _of_server(error: asyncpg.PostgresError) -> BaseException:
    state: str = getattr(error, "sqlstate", None) or ""
    message: str = getattr(error, "message", None) or str(error)
    hint: str | None = getattr(error, "hint", None)
    if state in BY_CODE:
        return BY_CODE[state](message, hint)
    if state == "53100" or NO_SPACE in message:
        return DatabaseDown(
            f"the database has no disk space left: {message}",
            "Nothing accepted was lost. Free space for the data folder; odcd then continues.",
        )
    if POOLER_WORD in message:
        return DatabaseDown(f"a connection pooler refuses the settings: {message}", POOLERS)
    if state in DOWN_STATES or state[:2] in DOWN_CLASSES:
        return DatabaseDown(f"PostgreSQL cannot serve: {message}", hint or "Try again.")
    if state[:2] == LOGIN_CLASS:
        return DatabaseDown(
            f"PostgreSQL refuses the login: {message}", "Check user and password in --dsn."
        )
    if busy := _busy(error, state, message):
        return busy
    if state in RANGE_STATES:
        return BadRequest(
            f"a number or a moment is out of range: {message}",
            "Give a number closer to zero, or a moment closer to now.",
        )
    if state == SIZE_STATE:
        return TooLarge(
            f"this is more than the database can process at once: {message}",
            "Request fewer jobs or tasks at once.",
        )
    if state in TEXT_STATES:
        return BadRequest(
            f"a text cannot be stored: {message}", "Texts are UTF-8 without NUL characters."
        )
    return error


def _busy(error: asyncpg.PostgresError, state: str, message: str) -> DatabaseBusy | None:
    """The error of a statement that was rolled back because it waited too long, or conflicted."""
    if state == LOCK_WAIT:
        return DatabaseBusy(f"the database is busy: {message}", TRY_AGAIN)
    if state == OUT_OF_TIME:
        return DatabaseBusy(f"the database took too long: {message}", TRY_AGAIN, too_slow=True)
    if isinstance(error, ROLLED_BACK):
        return DatabaseBusy(f"another change was made first: {message}", TRY_AGAIN)
    return None
