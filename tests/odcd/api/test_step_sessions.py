"""Clients of steps that wait for one another."""

from __future__ import annotations

import asyncio

from odcd.api.slurm.step_sessions import WOKEN, StepSessions


def test_an_end_wakes_those_that_waited_longest_and_no_crowd() -> None:
    async def work() -> None:
        sessions = StepSessions()
        done: list[int] = []

        async def wait(number: int) -> None:
            await sessions.changed(7, 1000.0)
            done.append(number)

        tasks = [asyncio.create_task(wait(number)) for number in range(3 * WOKEN)]
        await asyncio.sleep(0)
        sessions.wake(8)
        sessions.wake(7)
        await asyncio.wait(tasks[:WOKEN])
        assert done == list(range(WOKEN))
        tasks[WOKEN].cancel()
        await asyncio.wait([tasks[WOKEN]])
        sessions.wake(7)
        await asyncio.wait(tasks[: 2 * WOKEN + 1])
        assert done[WOKEN:] == list(range(WOKEN + 1, 2 * WOKEN + 1))
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        sessions.wake(7)

    asyncio.run(work())


def test_a_waiting_client_tries_again_after_a_time() -> None:
    async def work() -> None:
        sessions = StepSessions()
        await sessions.changed(7, 0.001)
        sessions.wake(7)

    asyncio.run(work())
