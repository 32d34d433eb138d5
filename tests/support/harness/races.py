"""Two connections that meet: one waits for a lock that the other holds."""

from __future__ import annotations

import asyncpg


async def until_it_waits(watcher: asyncpg.Connection, pid: int) -> None:
    """Return when the backend waits for a lock. The server checks, so that nothing here sleeps."""
    await watcher.execute(
        f"""
        do $$ begin
            while not exists (select from pg_locks where pid = {pid} and not granted) loop
                perform pg_sleep(0.001);
            end loop;
        end $$
        """
    )
