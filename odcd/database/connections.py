"""The kinds of database connections: how long each may wait, and how it notices a dead peer.

PostgreSQL itself ends a statement, a wait for a lock or an idle transaction that takes too long.
The daemon waits slightly longer, then treats the server as gone.
"""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import dataclass, replace
from typing import Any, Literal

import asyncpg

from odcd.database.translation import BROKEN, POOLERS, ROLLED_BACK, translate
from odcd.errors import OdcError

log = logging.getLogger(__name__)

Isolation = Literal["read committed", "repeatable read"]

CONNECT_TIMEOUT_S = 5.0
ANSWER_MARGIN_S = 2.0
"""How much longer than PostgreSQL's own limit the daemon waits for the answer."""
KEEPALIVE_IDLE_S = 4
KEEPALIVE_EVERY_S = 2
KEEPALIVE_COUNT = 2
MAX_NAME = 63
"""PostgreSQL truncates a longer application_name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The limits of one kind of connection. None: no limit."""

    name: str
    """application_name."""
    statement_s: float | None
    """statement_timeout."""
    lock_s: float | None
    """lock_timeout, for each lock."""
    idle_s: float | None = 10.0
    """idle_in_transaction_session_timeout."""
    answer_s: float | None = None
    """How long the daemon waits for an answer; by default statement_s and a margin."""
    silent_s: float | None = 8.0
    """tcp_user_timeout, on both sides: how long sent data may remain unacknowledged."""
    retried: tuple[type[BaseException], ...] = ROLLED_BACK
    """A pool runs the statement again after these errors of the driver."""

    @property
    def client_s(self) -> float | None:
        if self.answer_s is not None or self.statement_s is None:
            return self.answer_s
        return self.statement_s + ANSWER_MARGIN_S

    def limited(self, statement_s: float) -> Kind:
        """A copy with another statement_timeout."""
        return replace(self, statement_s=statement_s, answer_s=None)


API = Kind(name="odcd", statement_s=30, lock_s=5)
"""Requests. A request that waits longer is answered with 503."""
LEADER = Kind(
    name="odcd-loops", statement_s=60, lock_s=10,
    retried=(*ROLLED_BACK, asyncpg.LockNotAvailableError),
)  # fmt: skip
"""The leader's loops: recording facts, sweeps, inventories."""
PASS = Kind(name="odcd-leader", statement_s=60, lock_s=5)
"""The leader's passes. take_term runs here: when this backend ends, the leader is gone."""
BEAT = Kind(name="odcd-beat", statement_s=4, lock_s=4, answer_s=5)
FORECASTER = Kind(name="odcd-forecaster", statement_s=60, lock_s=5)
METRICS = Kind(name="odcd-metrics", statement_s=5, lock_s=2)
LISTENER = Kind(name="odcd listen", statement_s=4, lock_s=4, answer_s=5)
INSTALLER = Kind(name="odcd install", statement_s=None, lock_s=30, idle_s=60)
BACKUP = Kind(name="odc backup", statement_s=None, lock_s=30, idle_s=None, silent_s=300)
"""No limit on a statement: writing the backup file may be slower than reading the database."""
TOOL = Kind(name="odcd", statement_s=None, lock_s=None, idle_s=None, answer_s=120)
"""Commands and tests: only the client has a limit."""

KINDS = (API, LEADER, PASS, BEAT, FORECASTER, METRICS, LISTENER, INSTALLER, BACKUP)


async def connect(
    dsn: str, *, kind: Kind = TOOL, name: str | None = None,
    isolation: Isolation = "read committed", cached: bool = True,
) -> asyncpg.Connection:  # fmt: skip
    """Open one connection of a kind. name: its application_name, by default the kind's.
    cached False: PostgreSQL plans each statement again. Raises DatabaseDown."""
    more: dict[str, Any] = {} if cached else {"statement_cache_size": 0}
    try:
        return await connect_alive(
            dsn,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=kind.client_s,
            server_settings=settings_of(kind, name or kind.name, isolation),
            **more,
        )
    except Exception as error:
        raise translate(error) from error


async def connect_alive(*args: Any, **more: Any) -> Any:
    """Like asyncpg.connect, on a socket that detects when its peer is gone."""
    connection = await asyncpg.connect(*args, **more)
    settings: dict[str, str] = more.get("server_settings") or {}
    keep_alive(connection, int(settings.get("tcp_user_timeout", "0")))
    return connection


def settings_of(kind: Kind, name: str, isolation: Isolation = "read committed") -> dict[str, str]:
    """The settings that are sent to PostgreSQL when the connection opens."""
    return {
        "application_name": name[:MAX_NAME],
        "search_path": "odc, pg_temp",
        "timezone": "UTC",
        "default_transaction_isolation": isolation,
        # Many short statements over small tables: keep planning cheap and start no workers.
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        "plan_cache_mode": "force_generic_plan",
        "statement_timeout": _ms(kind.statement_s),
        "lock_timeout": _ms(kind.lock_s),
        "idle_in_transaction_session_timeout": _ms(kind.idle_s),
        # PostgreSQL ignores these on a Unix socket.
        "tcp_keepalives_idle": str(KEEPALIVE_IDLE_S),
        "tcp_keepalives_interval": str(KEEPALIVE_EVERY_S),
        "tcp_keepalives_count": str(KEEPALIVE_COUNT),
        "tcp_user_timeout": _ms(kind.silent_s),
    }


def _ms(seconds: float | None) -> str:
    return "0" if seconds is None else str(round(seconds * 1000))


def keep_alive(connection: Any, silent_ms: int) -> None:
    """Let the kernel close a TCP connection whose peer does not answer."""
    transport = connection._transport  # asyncpg offers no other way to its socket
    found = transport.get_extra_info("socket")
    if found is None or found.family not in (socket.AF_INET, socket.AF_INET6):
        return
    # uvloop's socket object cannot set options; a duplicate of its descriptor can.
    with socket.socket(fileno=os.dup(found.fileno())) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
            ("TCP_KEEPINTVL", KEEPALIVE_EVERY_S),
            ("TCP_KEEPCNT", KEEPALIVE_COUNT),
            ("TCP_USER_TIMEOUT", silent_ms),
        ):
            if hasattr(socket, option):
                own.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


async def close(connection: asyncpg.Connection) -> None:
    """Close the connection cleanly if the server answers; otherwise cut it."""
    try:
        await connection.close(timeout=2.0)
    except (OSError, TimeoutError, *BROKEN, asyncpg.PostgresError):
        connection.terminate()


async def check_direct(dsn: str) -> None:
    """Reject a connection pooler that drops session settings or shares backends between clients.

    Raises OdcError, or DatabaseDown when PostgreSQL cannot be reached.
    """
    first = await connect(dsn, kind=API, name="odcd check")
    try:
        setting, backend = await _ask(first)
        if setting != settings_of(API, "")["lock_timeout"]:
            raise OdcError(
                "a connection pooler between odcd and PostgreSQL drops the connections' settings",
                POOLERS,
            )
        if backend == first.get_server_pid():
            return
        # The other end of the connection is not PostgreSQL itself.
        second = await connect(dsn, kind=API, name="odcd check")
        try:
            if (await _ask(second))[1] == backend:
                raise OdcError(
                    "a connection pooler between odcd and PostgreSQL gives two connections the "
                    "same backend, as in transaction mode",
                    POOLERS,
                )
        finally:
            await close(second)
        log.warning("database.pooler", extra={"hint": POOLERS})
    finally:
        await close(first)


async def _ask(connection: asyncpg.Connection) -> tuple[str, int]:
    """Return lock_timeout in ms, and the pid of the backend that answers."""
    row = await connection.fetchrow(
        "select setting, pg_backend_pid() as pid from pg_settings where name = 'lock_timeout'"
    )
    assert row is not None
    return row["setting"], row["pid"]
