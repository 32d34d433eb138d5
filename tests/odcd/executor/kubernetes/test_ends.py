"""A member's output is stored before the member is asked to end, even if that takes a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from odcd.clock import SystemClock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes import ends
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.ends import Ends
from odcd.executor.kubernetes.fence import Fence
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from tests.odcd.executor.kubernetes.test_contents import a_pod
from tests.support.fakes.followers import NotFollowed

KEY = (7, 1, 0)


class Cluster:
    """Its log opens at once and does not end; reading the existing part takes this many seconds."""

    def __init__(self, read_s: float, error: Exception | None = None) -> None:
        self.done: list[str] = []
        self._read_s = read_s
        self._error = error

    async def keep(
        self, *_: object, follow: bool = False, on_open: Callable[[], None] | None = None
    ) -> None:
        if follow and on_open is not None:
            on_open()
            await asyncio.sleep(60)
        await asyncio.sleep(self._read_s)
        if self._error is not None:
            raise self._error
        self.done.append("kept")

    async def remove(self, *_: object, **__: object) -> None:
        self.done.append("removed")


def stopped(cluster: Cluster) -> list[str]:
    """The actions when a running member was asked to end."""

    async def work() -> list[str]:
        ledger, clock, fake = Ledger(), SystemClock(), cast("Any", cluster)
        members, background = Members(clock, ledger), Background(ledger.wake, clock)
        members.pods[KEY[:2]] = {0: a_pod()}
        members.begun.add(KEY)
        unfenced = Fence({}, clock, None, timedelta())
        unlisted = cast("Any", Cluster(0))
        Ends(
            members, {}, fake, fake, background, clock, 1.0, unlisted, unfenced,
            NotFollowed(),
        ).stop(KEY[:2], 1.0, again=True)  # fmt: skip
        async with asyncio.timeout(60):
            while "removed" not in cluster.done:
                await asyncio.sleep(0.01)
        await background.close()
        return cluster.done

    return asyncio.run(work())


def test_a_slow_log_is_saved_before_the_pod_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy API server takes longer to answer than a log takes to open."""
    monkeypatch.setattr(ends, "LOG_OPEN_S", 0.05)
    assert stopped(Cluster(0.5)) == ["kept", "removed"]


def test_an_unreadable_log_does_not_delay_the_end_of_a_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ends, "KEEP_S", 0.05)
    assert stopped(Cluster(60)) == ["removed"]
    assert stopped(Cluster(0, RunnerDown("away"))) == ["removed"]
