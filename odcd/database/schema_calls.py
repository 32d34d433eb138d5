"""Change functions while daemons call them.

A call that began before the change continues with the old body of its function, and fails when that
body names a function or column that is gone. Such an error ends a daemon, but a lost connection
does not: the daemon reconnects, and its clients retry. So the change ends the calls in progress.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg

# Same as in sql/functions/queue/depend/_take_turn.sql.
TURN = 7300196

# Only connections of this login: a listener or a report is not running one of odc's functions.
CALLS = """
    select pg_terminate_backend(pid)
      from pg_stat_activity
     where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
       and application_name like 'odcd%' and application_name not like 'odcd install%'
       and state <> 'idle'
"""


@asynccontextmanager
async def ending_calls(connection: asyncpg.Connection) -> AsyncGenerator[None]:
    """Wrap the transaction that changes functions. Other transactions that change jobs wait until
    it is over."""
    await connection.execute("select pg_advisory_lock($1)", TURN)
    try:
        yield
        # Calls that began during the commit either wait for the turn or only read.
        await end_calls(connection)
    finally:
        if not connection.is_closed():
            await connection.execute("select pg_advisory_unlock($1)", TURN)


async def end_calls(connection: asyncpg.Connection) -> None:
    """Terminate the backends of daemons that are in the middle of a call."""
    await connection.execute(CALLS)
