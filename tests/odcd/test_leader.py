"""Leadership is taken, lost and taken again; losing it never ends the daemon."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from odcd.clock import SystemClock
from odcd.db import Database
from odcd.leader import Lead, Leader


def test_a_leader_whose_connection_breaks_leads_again_under_a_higher_term(
    database_url: str,
) -> None:
    seen: list[int] = []
    beside: list[int] = []

    async def scenario() -> list[int]:
        terms = asyncio.Queue[int]()

        async def lead(lead: Lead) -> None:
            terms.put_nowait(lead.term)
            await asyncio.Event().wait()

        async with Database(database_url) as database:
            leader = Leader(database, SystemClock(), timedelta(seconds=0.4), lead, seen.append)
            follower = Leader(database, SystemClock(), timedelta(hours=1), lead, beside.append)
            running = asyncio.create_task(leader.run())
            try:
                async with asyncio.timeout(60):
                    first = await terms.get()
                    following = asyncio.create_task(follower.run())
                    while not beside:
                        await asyncio.sleep(0.01)
                    following.cancel()
                    await asyncio.wait([following])
                    await database.fetchval(
                        "select pg_terminate_backend(backend_pid) from odc.term"
                    )
                    again = asyncio.create_task(terms.get())
                    await asyncio.wait([running, again], return_when=asyncio.FIRST_COMPLETED)
                    assert again.done(), running.exception()
                    return [first, again.result()]
            finally:
                running.cancel()
                await asyncio.wait([running])

    assert asyncio.run(scenario()) == [1, 2]
    # Who follows knows the term, too.
    assert (sorted(set(seen)), beside) == ([0, 1, 2], [1])
