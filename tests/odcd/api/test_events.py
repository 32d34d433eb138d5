"""Server-sent events: none missed, none repeated, and a slow client delays no other client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx

from odcd.events import EventHub, Heartbeat, Lagged
from tests.odcd.api.service import Service, next_event, on_socket, over, serve, until


@contextlib.asynccontextmanager
async def listening(
    client: httpx.AsyncClient, path: str = "/v1/events", **options: Any
) -> AsyncGenerator[AsyncGenerator[str]]:
    """The lines of a stream, from the time when the server has started it."""
    async with client.stream("GET", path, **options) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.aiter_lines()
        assert (await anext(lines)).startswith("retry:")
        yield lines


def test_events_come_as_they_happen(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"), over(folder / "s") as client:
            await service.submit()
            async with listening(client, params={"after": "0"}) as lines, asyncio.timeout(60):
                first = await next_event(lines)
                assert (first["event"], first["data"]["kind"]) == ("submitted", "submitted")
                assert int(first["id"]) == first["data"]["id"]
                [job_id] = await service.plan()
                started = await next_event(lines)
                assert (started["event"], started["data"]["job_id"]) == ("started", job_id)
                await service.end(job_id)
                assert (await next_event(lines))["event"] == "ended"

    serve(database_url, work)


def test_without_a_start_position_only_new_events_come(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"), over(folder / "s") as client:
            for _ in range(3):
                await service.happen("old")
            await service.final()
            async with listening(client) as lines, asyncio.timeout(60):
                # Headers are sent before the stream's position is set: send events until the first
                # one arrives.
                async def knock() -> None:
                    while True:
                        await service.happen("new")
                        await asyncio.sleep(0.05)

                knocking = asyncio.create_task(knock())
                assert (await next_event(lines))["event"] == "new"
                knocking.cancel()

    serve(database_url, work)


def test_a_client_resumes_where_it_stopped(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with (
            on_socket(service, folder / "s"),
            over(folder / "s") as client,
            asyncio.timeout(60),
        ):
            for number in range(6):
                await service.happen(f"k{number}")
            async with listening(client, params={"after": "0"}) as lines:
                seen = [await next_event(lines) for _ in range(3)]
            last = {"Last-Event-ID": seen[-1]["id"]}
            async with listening(client, headers=last) as lines:
                seen += [await next_event(lines) for _ in range(3)]
                await service.happen("k6")
                seen.append(await next_event(lines))
            assert [event["event"] for event in seen] == [f"k{number}" for number in range(7)]

    serve(database_url, work)


def test_without_follow_the_stream_ends_with_the_last_event(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit()
        await service.plan()
        async with service.client() as client, asyncio.timeout(60):
            for path in ("/v1/events", f"/v1/jobs/{job_id}/events"):
                kinds: list[str] = []
                while len(kinds) < 2:  # Behind an open transaction no event is returned yet.
                    answer = await client.get(path, params={"after": "0", "follow": "false"})
                    lines = answer.text.splitlines()
                    kinds = [line[7:] for line in lines if line.startswith("event:")]
                assert kinds == ["submitted", "started"]

    serve(database_url, work)


def test_a_jobs_stream_has_its_past_and_only_its_own_events(
    database_url: str, folder: Path
) -> None:
    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"), over(folder / "s") as client:
            job_id, other = await service.submit(gpus=4), await service.submit(gpus=4)
            async with listening(client, f"/v1/jobs/{job_id}/events") as lines, asyncio.timeout(60):
                await service.plan()
                await service.end(other)
                await service.end(job_id)
                seen = [await next_event(lines) for _ in range(3)]
                assert [event["event"] for event in seen] == ["submitted", "started", "ended"]
                assert {event["data"]["job_id"] for event in seen} == {job_id}

    serve(database_url, work)


def test_an_arrays_stream_has_its_elements_and_a_tasks_stream_only_that_task(
    database_url: str, folder: Path
) -> None:
    async def work(service: Service) -> None:
        async with (
            on_socket(service, folder / "s"),
            over(folder / "s") as client,
            asyncio.timeout(60),
        ):
            array = await service.submit(array="0-1", gpus=4)
            elements = await service.plan()
            first = min(set(elements) - {array})
            async with (
                listening(client, f"/v1/jobs/{array}/events") as whole,
                listening(client, f"/v1/jobs/{array}_0/events") as task,
            ):
                for job_id in elements:
                    await service.end(job_id)
                seen = [(await next_event(whole))["data"] for _ in range(5)]
                assert [event["kind"] for event in seen] == [
                    "submitted",
                    "started",
                    "started",
                    "ended",
                    "ended",
                ]
                of_task = [(await next_event(task))["data"] for _ in range(2)]
                assert [(event["kind"], event["job_id"]) for event in of_task] == [
                    ("started", first), ("ended", first)
                ]  # fmt: skip

    serve(database_url, work)


def test_events_of_an_unknown_job_are_refused_before_the_stream(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            assert (await client.get("/v1/jobs/99/events")).status_code == 404
            bad = await client.get("/v1/events", headers={"Last-Event-ID": "x"})
            assert bad.status_code == 400

    serve(database_url, work)


def test_many_clients_share_one_reader(database_url: str) -> None:
    async def work(service: Service) -> None:
        reads = 0
        real = service.store.events.list

        async def counted(*args: Any) -> list[tuple[int, str]]:
            nonlocal reads
            reads += 1
            return await real(*args)

        service.hub._store.list = counted  # type: ignore[method-assign]
        await service.happen("zero")
        streams = [service.hub.stream(0) for _ in range(50)]
        async with asyncio.timeout(60):
            await asyncio.gather(*(anext(stream) for stream in streams))
            nexts = [asyncio.create_task(anext(stream)) for stream in streams]
            # Each reads its own past, makes the hub read on, and reads once more to join the
            # others.
            await until(lambda: reads >= 150)
            before = reads
            await service.happen("one")
            events = await asyncio.gather(*nexts)
        assert {getattr(event, "kind", None) for event in events} == {"one"}
        assert reads - before < 25
        for stream in streams:
            await stream.aclose()

    serve(database_url, work)


def test_a_client_that_is_too_slow_is_disconnected_with_a_notice_and_can_resume(
    database_url: str,
) -> None:
    async def work(service: Service) -> None:
        stream = service.hub.stream(0)
        await service.happen("k0")
        async with asyncio.timeout(60):
            first = await anext(stream)
            await service.happen("k1")
            second = await anext(stream)
            # It does not read while more events happen than are kept; other clients continue.
            for number in range(2, 12):
                await service.happen(f"k{number}")
            other = service.hub.stream(0)
            kinds = [getattr(await anext(other), "kind", None) for _ in range(12)]
            assert kinds == [f"k{number}" for number in range(12)]
            await until(lambda: service.hub._published >= 11)
            rest = [event async for event in stream]
            assert isinstance(rest[-1], Lagged)
            last = rest[-2] if len(rest) > 1 else second
            assert rest[-1].last_id == last.id
            assert first.id < second.id
            again = service.hub.stream(rest[-1].last_id, follow=False)
            missed = [event.kind async for event in again]
            assert missed == [f"k{number}" for number in range(12 - len(missed), 12)]
            assert len(missed) + 2 + len(rest) - 1 == 12
            await other.aclose()

    serve(database_url, work, kept=4)


def test_an_idle_stream_sends_heartbeats(database_url: str) -> None:
    async def work(service: Service) -> None:
        stream = service.hub.stream(None, heartbeat_s=0.01)
        assert isinstance(await anext(stream), Heartbeat)
        await stream.aclose()

    serve(database_url, work)


def test_a_disconnected_client_leaves_no_resources_behind(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"):
            job_id = await service.submit()
            async with over(folder / "s") as client:
                async with listening(client, params={"after": "0"}) as lines:
                    await next_event(lines)
                    assert service.hub._clients == 1
                waiting = asyncio.create_task(
                    client.get(f"/v1/jobs/{job_id}", params={"wait": "300"})
                )
                await until(lambda: service.hub._waits)
                waiting.cancel()
            await until(lambda: not service.hub._clients and not service.hub._waits)

    serve(database_url, work)


def test_streams_end_when_the_daemon_stops(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with over(folder / "s") as client:
            async with on_socket(service, folder / "s"):
                stream = listening(client, params={"after": "0"})
                lines = await stream.__aenter__()
            async with asyncio.timeout(60):
                with contextlib.suppress(httpx.RemoteProtocolError):
                    _ = [line async for line in lines]
                with contextlib.suppress(httpx.HTTPError):
                    await stream.__aexit__(None, None, None)

    serve(database_url, work)


def test_events_written_in_many_transactions_reach_every_client_once(database_url: str) -> None:
    async def work(service: Service) -> None:
        hub: EventHub = service.hub
        streams = [hub.stream(0) for _ in range(3)]

        async def write(writer: int) -> None:
            for number in range(30):
                await service.happen(f"w{writer}-{number}")

        async def read(stream: AsyncGenerator[Any]) -> list[str]:
            seen: list[str] = []
            async for event in stream:
                if not isinstance(event, Heartbeat):
                    seen.append(event.kind)
                if len(seen) == 120:
                    break
            await stream.aclose()
            return seen

        async with asyncio.timeout(60):
            readers = [asyncio.create_task(read(stream)) for stream in streams]
            await asyncio.gather(*(write(writer) for writer in range(4)))
            expected = {f"w{writer}-{number}" for writer in range(4) for number in range(30)}
            for seen in await asyncio.gather(*readers):
                assert len(seen) == len(set(seen))
                assert set(seen) == expected

    serve(database_url, work)
