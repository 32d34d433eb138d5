"""Lists of Slurm's commands: what a request names, and what its answer may become, is bounded."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from odcctl.remote.program import frames
from odcd.api.slurm import fetch, large_lists, squeue
from odcd.api.slurm.large_lists import LargeLists, Place
from odcd.errors import BadRequest, TooLarge
from odcd.slurm.hostlists import expand_hosts
from tests.odcd.api.service import Service, serve


@pytest.mark.parametrize(
    "text",
    [
        ",".join(["n[1-10000]"] * 2),
        ",".join(["n[1-100]"] * 101),
        ",".join(["n1"] * 10_001),
    ],
)
def test_repeated_names_of_nodes_are_counted(text: str) -> None:
    """Before: `scontrol show hostnames` with 11 KB of them stopped the daemon for 61 seconds."""
    with pytest.raises(TooLarge, match="more than 10000 nodes"):
        expand_hosts(text)
    assert expand_hosts(",".join(["n[1-100]"] * 100)) == [f"n{i}" for i in range(1, 101)]


@pytest.mark.parametrize(
    "text",
    [
        "n[1-10000]" + "[1]" * 40_000,
        "n[1-10000]" + "a" * 1_000_000,
        "n[1-10000]" + "a" * 1_000_000 + "[1]",
    ],
)
def test_a_long_name_is_refused_before_it_is_multiplied(text: str) -> None:
    """Before: ten thousand names of a megabyte each, which no machine has memory for."""
    with pytest.raises(BadRequest, match="is not a node name"):
        expand_hosts(text)


async def ask(client: httpx.AsyncClient, command: str, *argv: str) -> tuple[bytes, bytes]:
    """What the command prints to its output and its error."""
    answer = await client.post(f"/v1/slurm/{command}", json={"argv": argv})
    assert answer.status_code == 200, answer.text
    parts: dict[bytes, bytes] = {}
    for kind, content in frames(iter([answer.content])):
        parts[kind] = parts.get(kind, b"") + content
    assert parts[b"x"] == (b"1" if b"e" in parts else b"0")
    return parts.get(b"o", b""), parts.get(b"e", b"")


def test_a_format_is_no_way_to_an_answer_without_bound(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: a format of 10 KB had lines of 7 MB, so 1,000 jobs were 7 GB of memory."""
    monkeypatch.setattr(large_lists, "MAX_CHARS", 15_000)

    async def work(service: Service) -> None:
        for _ in range(30):
            await service.submit()
        async with service.client() as client:
            _, why = await ask(client, "squeue", "-o", "%4096i" * 1000)
            assert b"more than 500 columns" in why
            _, why = await ask(client, "sacct", "-a", f"--format={'UID%4096,' * 900}")
            assert b"more than 500 columns" in why
            _, why = await ask(client, "sacct", "-a", "-P", f"--delimiter={'x' * 101}")
            assert b"the delimiter has more than 100 characters" in why
            for command, argv in (
                ("squeue", ("-o", "%4096i")),
                ("squeue", ("--json",)),
                ("sacct", ("-a", "--format=JobID%4096")),
                ("scontrol", ("show", "job")),
            ):
                out, why = await ask(client, command, *argv)
                assert b"the list has more than 15000 characters" in why, (command, argv)
                assert out == b""

    serve(database_url, work)


def test_tasks_one_by_one_are_counted_for_all_arrays(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: 100,000 rows for each array, made without a pause."""
    monkeypatch.setattr(squeue, "MAX_ROWS", 150)

    async def work(service: Service) -> None:
        for _ in range(2):
            await service.submit(array="0-99")
        async with service.client() as client:
            _, why = await ask(client, "squeue", "-r")
            assert b"more than 150 tasks match" in why
            out, _ = await ask(client, "squeue", "-r", "-h", "-j", "1")
            assert out.count(b"\n") == 100

    serve(database_url, work)


def test_a_long_command_line_that_submits_nothing_is_refused(database_url: str) -> None:
    """Before: 8 MB of columns to sort by, or of bookings to compare each job with."""

    async def work(service: Service) -> None:
        await service.submit()
        async with service.client() as client:
            for argv in (("-S", "i," * 200_000), ("-R", "a," * 200_000)):
                _, why = await ask(client, "squeue", *argv)
                assert b"more than 262144 characters" in why
            assert await ask(client, "squeue", "-h", "-o", "%i", "-S", "i,-i,j") == (b"1\n", b"")

    serve(database_url, work)


def test_a_user_makes_one_large_list_at_a_time() -> None:
    """Before: each of a user's requests took hundreds of megabytes, all at the same time."""

    async def work() -> None:
        lists = LargeLists()
        async with lists.place(1001) as first:
            await first.take()
            await first.take()
            second = asyncio.create_task(take(lists, 1001))
            other = asyncio.create_task(take(lists, 1002))
            await other
            assert not second.done()
        await second

    async def take(lists: LargeLists, uid: int) -> None:
        async with lists.place(uid) as place:
            await place.take()

    asyncio.run(work())


def test_a_list_of_several_pages_takes_a_place(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "PAGE", 2)
    taken: list[Place] = []
    real = Place.take

    async def take(place: Place) -> None:
        taken.append(place)
        await real(place)

    monkeypatch.setattr(Place, "take", take)

    async def work(service: Service) -> None:
        async with service.client() as client:
            for count in range(1, 4):
                await service.submit()
                await ask(client, "squeue", "-h")
                assert bool(taken) == (count > 2)

    serve(database_url, work)
