"""Output of jobs as the executor returns it: complete, followed, of all ranks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from odcd.errors import RunnerDown, WrongState
from odcd.executor.output import shares_file
from odcd.records.dispatch import Dispatch
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, on_socket, over, serve, until


class Output:
    """An executor that only has output: pieces by rank; at None a follower waits."""

    def __init__(self, *ranks: list[bytes | Exception | None]) -> None:
        self._ranks = ranks
        self.go_on = asyncio.Event()
        self.open = 0
        self.most_open = 0
        self.calls: list[tuple[int, bool, bool]] = []

    def shares_output(self, dispatch: Dispatch, *, stderr: bool) -> bool:
        return shares_file(dispatch, stderr=stderr)

    async def logs(
        self, dispatch: Dispatch, rank: int, *, stderr: bool, follow: bool
    ) -> AsyncGenerator[bytes]:
        self.calls.append((rank, stderr, follow))
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        try:
            for piece in self._ranks[rank]:
                if isinstance(piece, Exception):
                    raise piece
                if piece is None:
                    if not follow:
                        return
                    await self.go_on.wait()
                else:
                    yield piece
        finally:
            self.open -= 1


def test_output_is_sent_unchanged_to_owner_and_operators(database_url: str) -> None:
    executor = Output([b"one\n", b"\xff\x00two"])

    async def work(service: Service) -> None:
        job_id = await service.submit(ALICE)
        await service.plan()
        for peer, status in ((ALICE, 200), (OPERATOR, 200), (BOB, 403)):
            async with service.client(peer) as client:
                answer = await client.get(f"/v1/jobs/{job_id}/logs", params={"stream": "stderr"})
                assert answer.status_code == status
                if status == 200:
                    assert answer.content == b"one\n\xff\x00two"
        assert executor.calls == [(0, True, False)] * 2

    serve(database_url, work, executor_of=lambda: executor)


def test_a_job_that_has_not_started_has_no_output(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit()
        async with service.client() as client:
            answer = await client.get(f"/v1/jobs/{job_id}/logs")
            assert (answer.status_code, answer.json()["code"]) == (409, "OD012")
            assert answer.json()["hint"] == f"`odcctl logs --follow {job_id}` waits for its start."
            array = await service.submit(array="0-3")
            answer = await client.get(f"/v1/jobs/{array}_2/logs")
            assert answer.json()["detail"].startswith(f"job {array}_2 has not started")

    serve(database_url, work, executor_of=Output)


def test_following_waits_for_the_start_and_ends_with_the_job(
    database_url: str, folder: Path
) -> None:
    executor = Output([b"first\n", None, b"last\n"])

    async def work(service: Service) -> None:
        job_id = await service.submit()
        async with (
            on_socket(service, folder / "s"),
            over(folder / "s") as client,
            client.stream("GET", f"/v1/jobs/{job_id}/logs", params={"follow": "true"}) as answer,
        ):
            assert answer.status_code == 200
            pieces = answer.aiter_bytes()
            assert await service.plan() == [job_id]
            async with asyncio.timeout(60):
                assert await anext(pieces) == b"first\n"
                executor.go_on.set()
                assert b"".join([piece async for piece in pieces]) == b"last\n"
        assert executor.open == 0

    serve(database_url, work, executor_of=lambda: executor)


def test_following_a_job_that_is_cancelled_unstarted_ends_empty(
    database_url: str, folder: Path
) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit()
        async with (
            on_socket(service, folder / "s"),
            over(folder / "s") as client,
            client.stream("GET", f"/v1/jobs/{job_id}/logs", params={"follow": "true"}) as answer,
        ):
            async with over(folder / "s") as other:
                await other.post(f"/v1/jobs/{job_id}/cancel")
            async with asyncio.timeout(60):
                assert await answer.aread() == b""

    serve(database_url, work, executor_of=Output)


def test_a_follower_that_disconnects_leaves_nothing_open(database_url: str, folder: Path) -> None:
    executor = Output([b"first\n", None])

    async def work(service: Service) -> None:
        job_id = await service.submit()
        await service.plan()
        async with on_socket(service, folder / "s"), over(folder / "s") as client:
            path = f"/v1/jobs/{job_id}/logs"
            async with client.stream("GET", path, params={"follow": "true"}) as answer:
                assert await anext(answer.aiter_bytes()) == b"first\n"
                assert executor.open == 1
            await until(lambda: executor.open == 0)

    serve(database_url, work, executor_of=lambda: executor)


def test_output_of_all_ranks_is_merged_by_line_with_the_rank(
    database_url: str, folder: Path
) -> None:
    executor = Output([b"a1\na", b"2\n", None, b"end"], [b"b1\n", b"x" * 100_000, None])

    async def work(service: Service) -> None:
        job_id = await service.submit(node_count=2, gpus=None, gpus_per_node=8, stdout="%t.out")
        await service.plan()
        async with on_socket(service, folder / "s"), over(folder / "s") as client:
            path = f"/v1/jobs/{job_id}/logs"
            executor.go_on.set()
            answer = await client.get(path, params={"rank": "all", "follow": "true"})
            lines = answer.content.splitlines()
            first = [line for line in lines if line.startswith(b"0: ")]
            assert first == [b"0: a1", b"0: a2", b"0: end"]
            rest = [line for line in lines if line.startswith(b"1: ")]
            assert rest[0] == b"1: b1"
            assert b"".join(line[3:] for line in rest[1:]) == b"x" * 100_000
            answer = await client.get(path, params={"rank": "1"})
            assert answer.content.startswith(b"b1\n")
            answer = await client.get(path, params={"rank": "2"})
            assert answer.status_code == 400
            assert "0 to 1" in answer.json()["hint"]
            executor.go_on.clear()
            params = {"rank": "all", "follow": "true"}
            async with client.stream("GET", path, params=params) as follower:
                await anext(follower.aiter_bytes())
                await until(lambda: executor.open == 2)
            await until(lambda: executor.open == 0)

    serve(database_url, work, nodes=2, executor_of=lambda: executor)


def test_unreadable_output_is_an_error_and_not_empty(database_url: str) -> None:
    executor = Output([WrongState("the output cannot be read: Permission denied")])

    async def work(service: Service) -> None:
        job_id = await service.submit()
        await service.plan()
        async with service.client() as client:
            for rank in ("0", "all"):
                answer = await client.get(f"/v1/jobs/{job_id}/logs", params={"rank": rank})
                assert (answer.status_code, answer.json()["code"]) == (409, "OD012")

    serve(database_url, work, executor_of=lambda: executor)


def test_truncated_output_is_not_mistaken_for_complete_output(
    database_url: str, folder: Path
) -> None:
    executor = Output([b"first\n", None, RunnerDown("the runner is gone")])

    async def work(service: Service) -> None:
        job_id = await service.submit()
        await service.plan()
        async with on_socket(service, folder / "s"), over(folder / "s") as client:
            path = f"/v1/jobs/{job_id}/logs"
            async with client.stream("GET", path, params={"follow": "true"}) as answer:
                pieces = answer.aiter_bytes()
                assert await anext(pieces) == b"first\n"
                executor.go_on.set()
                with pytest.raises(httpx.RemoteProtocolError):
                    await anext(pieces)

    serve(database_url, work, executor_of=lambda: executor)


def test_a_daemon_that_stops_cuts_followers_off(database_url: str, folder: Path) -> None:
    executor = Output([b"first\n", None])

    async def work(service: Service) -> None:
        job_id = await service.submit()
        await service.plan()
        async with over(folder / "s") as client:
            async with on_socket(service, folder / "s"):
                request = client.build_request("GET", f"/v1/jobs/{job_id}/logs?follow=true")
                answer = await client.send(request, stream=True)
                pieces = answer.aiter_bytes()
                assert await anext(pieces) == b"first\n"
            with pytest.raises(httpx.RemoteProtocolError):
                await anext(pieces)
            await answer.aclose()

    serve(database_url, work, executor_of=lambda: executor)


def test_without_an_executor_logs_are_unavailable(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit()
        await service.plan()
        async with service.client() as client:
            answer = await client.get(f"/v1/jobs/{job_id}/logs")
            assert (answer.status_code, answer.json()["code"]) == (503, "OD024")

    serve(database_url, work)


def test_a_file_shared_by_all_ranks_is_sent_once_unchanged(database_url: str) -> None:
    executor = Output([b"a\nb\n"], [b"a\nb\n"])

    async def work(service: Service) -> None:
        gang = {"node_count": 2, "gpus": None, "gpus_per_node": 8}
        job_id = await service.submit(**gang, stderr="%t.err")
        await service.plan()
        async with service.client() as client:
            for stream, content in (("stdout", b"a\nb\n"), ("stderr", b"0: a\n0: b\n1: a\n1: b\n")):
                params = {"rank": "all", "stream": stream}
                answer = await client.get(f"/v1/jobs/{job_id}/logs", params=params)
                assert b"".join(sorted(answer.content.splitlines(True))) == content

    serve(database_url, work, nodes=2, executor_of=lambda: executor)


class TaskOutput(Output):
    """The output of each task of an array."""

    def __init__(self, tasks: dict[int, list[bytes | Exception | None]]) -> None:
        super().__init__()
        self._tasks = tasks

    async def logs(
        self, dispatch: Dispatch, rank: int, *, stderr: bool, follow: bool
    ) -> AsyncGenerator[bytes]:
        assert dispatch.array_task_id is not None
        self._ranks = (self._tasks[dispatch.array_task_id],)
        pieces = super().logs(dispatch, rank, stderr=stderr, follow=follow)
        async for piece in pieces:
            yield piece


def test_output_of_an_array_is_that_of_its_tasks_by_line_with_the_task(database_url: str) -> None:
    executor = TaskOutput({
        0: [b"a\nb", b"c\n"], 1: [WrongState("its output cannot be read: No such file")],
        2: [b"end"],
    })  # fmt: skip

    async def work(service: Service) -> None:
        job = await service.submit(array="0-3%3", gpus_per_node=1, gpus=None)
        async with service.client() as client:
            answer = await client.get(f"/v1/jobs/{job}/logs")
            assert (answer.status_code, answer.json()["code"]) == (409, "OD012")
            await service.plan()
            answer = await client.get(f"/v1/jobs/{job}/logs")
            assert answer.text == (
                f"{job}_0: a\n{job}_0: bc\n"
                f"{job}_1: odc: its output cannot be read: No such file\n{job}_2: end\n"
            )
            answer = await client.get(f"/v1/jobs/{job}_[0,2-3]/logs")
            assert answer.text == f"{job}_0: a\n{job}_0: bc\n{job}_2: end\n"
            assert (await client.get(f"/v1/jobs/{job}_0/logs")).text == "a\nbc\n"
        async with service.client(BOB) as client:
            for selector in (job, f"{job}_[0-2]"):
                assert (await client.get(f"/v1/jobs/{selector}/logs")).status_code == 403

    serve(database_url, work, executor_of=lambda: executor)


def test_following_an_array_shows_every_task_also_one_that_starts_later(
    database_url: str, folder: Path
) -> None:
    executor = TaskOutput({0: [b"a\n"], 1: [b"b\n", None, b"c\n"], 2: [b"later\n"]})

    async def work(service: Service) -> None:
        job = await service.submit(array="0-2%2", gpus_per_node=1, gpus=None)
        async with (
            on_socket(service, folder / "s"),
            over(folder / "s") as client,
            client.stream("GET", f"/v1/jobs/{job}/logs", params={"follow": "true"}) as answer,
        ):
            lines = answer.aiter_lines()
            first, second = await service.plan()
            async with asyncio.timeout(60):
                assert {await anext(lines) for _ in range(2)} == {f"{job}_0: a", f"{job}_1: b"}
                await service.end(first)
                await service.plan()
                assert await anext(lines) == f"{job}_2: later"
                executor.go_on.set()
                assert await anext(lines) == f"{job}_1: c"
                await service.end(second)
                await service.end(job)
                assert [line async for line in lines] == []
        assert executor.open == 0

    serve(database_url, work, executor_of=lambda: executor)


def test_following_an_array_ends_when_its_tasks_are_cancelled(
    database_url: str, folder: Path
) -> None:
    async def work(service: Service) -> None:
        job = await service.submit(array="0-5")
        async with (
            on_socket(service, folder / "s"),
            over(folder / "s") as client,
            client.stream("GET", f"/v1/jobs/{job}/logs", params={"follow": "true"}) as answer,
        ):
            async with over(folder / "s") as other:
                await other.post(f"/v1/jobs/{job}/cancel")
            async with asyncio.timeout(60):
                assert await answer.aread() == b""

    serve(database_url, work, executor_of=Output)


def test_a_daemon_that_stops_cuts_the_followers_of_an_array_off(
    database_url: str, folder: Path
) -> None:
    async def work(service: Service) -> None:
        job = await service.submit(array="0-1", hold=True)
        async with over(folder / "s") as client:
            async with on_socket(service, folder / "s"):
                request = client.build_request("GET", f"/v1/jobs/{job}/logs?follow=true")
                answer = await client.send(request, stream=True)
                pieces = answer.aiter_bytes()
            with pytest.raises(httpx.RemoteProtocolError):
                await anext(pieces)
            await answer.aclose()

    serve(database_url, work, executor_of=Output)
