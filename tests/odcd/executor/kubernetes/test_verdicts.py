"""A pod that is removed because it cannot start keeps the reason, however late its end is seen."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, cast

from odcd.clock import Clock
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.ends import Ends
from odcd.executor.kubernetes.fence import Fence
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from odcd.records.dispatch import Fact
from tests.odcd.executor.kubernetes.test_lost_members import KEY, Watch, a_pod, facts
from tests.support.fakes.followers import NotFollowed

PENDING: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}


class Api:
    async def remove(self, *_: object, **__: object) -> bool:
        return True

    async def keep(self, *_: object, **__: object) -> None: ...


def test_a_removal_that_the_watch_reports_late_keeps_its_reason() -> None:
    """Before: the reason was dropped if the watch was slower than the answer to the removal, and
    the start counted as a failed launch."""
    ledger, clock, api = Ledger(), cast("Clock", Watch()), cast("Any", Api())
    members = Members(clock, ledger)
    pod = a_pod(PENDING, "Pending")
    members.see(pod, KEY)

    async def work() -> None:
        background = Background(ledger.wake, clock)
        fence = Fence({}, clock, None, timedelta())
        ends = Ends(members, {}, api, api, background, clock, 1.0, api, fence, NotFollowed())
        fact = Fact(
            job_id=7, attempt=1, rank=1, kind="start_failed", at=clock.now(), cause="unscheduled"
        )
        ends.condemn(pod, KEY, fact)
        for _ in range(20):
            await asyncio.sleep(0)
        await background.close()

    asyncio.run(work())
    members.forget(pod, KEY)
    [fact] = facts(ledger)
    assert fact.cause == "unscheduled"
