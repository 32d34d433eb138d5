"""Change functions while daemons call them.

A call that began before the change runs on with the old body of its function, and fails when that
body names a function or column that is gone. Such an error ends a daemon; a lost connection does
not: it connects again, and its clients retry. So the change ends the calls under way.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg

# As in sql/functions/queue/depend/_take_turn.sql.
TURN = 7300196

# Only those of this login: a listener or a report is not in the middle of a function of ours.
CALLS = """
    select pg_terminate_backend(pid)
      from pg_stat_activity
     where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
       and application_name like 'odcd%' and application_name not like 'odcd install%'
       and state <> 'idle'
"""


@asynccontextmanager
async def ending_calls(connection: asyncpg.Connection) -> AsyncGenerator[None]:
    """For the transaction that changes functions. Whatever changes jobs waits until it is over."""
    await connection.execute("select pg_advisory_lock($1)", TURN)
    try:
        yield
        # Calls that began while the transaction committed wait for the turn, or read.
        await end_calls(connection)
    finally:
        if not connection.is_closed():
            await connection.execute("select pg_advisory_unlock($1)", TURN)


async def end_calls(connection: asyncpg.Connection) -> None:
    """Terminate the backends of daemons that are in the middle of a call."""
    await connection.execute(CALLS)
