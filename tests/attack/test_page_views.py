"""One user's views of the page delay nobody else's, and take a limited amount of memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odcd.api.http.identity import Peer
from odcd.fairness.answers import Answers
from odcd.fairness.limits import Fairness
from odcd.page import live as module
from odcd.page.fragments import Rendered
from odcd.page.live import Live
from odcd.page.queries import PageOfAll, PageOfQueue
from odcd.records.job import Identity
from tests.odcd.api.service import ALICE, BOB
from tests.odcd.page.browse import Browsed, browse

MANY = 20


def test_users_take_turns_in_the_rendering_of_their_views(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: the view that was due for longest. 40 views of one user that search in a large queue
    for 0.3 s each let the pages of everybody else become 36 s old, without a word about it."""
    for name in ("SHARE", "GAP_S", "AGAIN_S", "REFRESH_S"):
        monkeypatch.setattr(module, name, 0.0)

    async def work(it: Browsed) -> None:
        live: Live = it.page._live  # pyright: ignore[reportPrivateUsage]
        order: list[Any] = []
        gate = asyncio.Semaphore(0)

        async def render(view: Any) -> Rendered:
            order.append(view)
            await gate.acquire()
            return Rendered(parts={"part": str(len(order))})

        live._render = render  # pyright: ignore[reportPrivateUsage]
        searches = [PageOfQueue(text=str(n)) for n in range(MANY)]
        for _ in range(MANY + 1):
            gate.release()
        async with asyncio.TaskGroup() as group:
            leave = asyncio.Event()

            async def look(view: Any, peer: Peer) -> None:
                async with live.watch(view, None, peer.uid):
                    await leave.wait()

            for view in searches:
                group.create_task(look(view, ALICE))
            group.create_task(look(PageOfAll(), BOB))
            while len(live._watched) <= MANY:  # pyright: ignore[reportPrivateUsage]
                await asyncio.sleep(0.01)
            start = len(order)
            for _ in range(12):
                gate.release()
            while len(order) < start + 8:
                await asyncio.sleep(0.01)
            shown = order[start : start + 8]
            leave.set()
        for _ in range(1000):
            gate.release()
        assert sum(isinstance(view, PageOfAll) for view in shown) >= 3, shown

    browse(database_url, work)


def test_pages_that_are_not_read_count_for_their_user(database_url: str) -> None:
    """Before: they were not counted, and the daemon kept all of them in memory."""
    answers = Answers(per_user=1)

    async def work(it: Browsed) -> None:
        name = f"/page/queue?text={'x' * 200}"
        who = Identity(user=str(ALICE.uid), uid=ALICE.uid, gid=ALICE.gid, operator=False)
        async with it.inside(ALICE) as alice, it.inside(BOB) as bob:
            assert (await alice.get(name)).status_code == 200
            with answers.hold(who, 200_000, done=False):
                assert (await alice.get(name)).status_code == 429
                assert (await bob.get(name)).status_code == 200
            assert (await alice.get(name)).status_code == 200
        assert answers.size == 0

    browse(database_url, work, fairness=Fairness(answers=answers))
