"""Requests that fail are repeated if that is safe, with a daemon whose answers the test chooses."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from odc import AsyncClient, Client, Refused, Unreachable
from tests.odcctl.peer import Peer, Reply, problem, serving

BUSY = problem(503, "DatabaseDown", "OD023", "the database is not reached")
JOB = {"id": 7, "warnings": []}


@pytest.fixture
def peer() -> Iterator[Peer]:
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as folder,
        serving(Peer(Path(folder) / "odcd.sock")) as server,
    ):
        yield server


def new_client(peer: Peer, retry_for_s: float = 60) -> Client:
    return Client(str(peer.server_address), retry_for_s=retry_for_s)


def test_a_submit_without_an_answer_is_repeated_with_the_same_key(peer: Peer) -> None:
    peer.on("POST", "/v1/submit-argv", Reply(lose=True), BUSY, Reply(JOB, status=201))
    assert new_client(peer).submit(["true"]).id == 7
    keys = [request.headers["idempotency-key"] for request in peer.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_the_asynchronous_client_repeats_too(peer: Peer) -> None:
    peer.on("POST", "/v1/submit-argv", Reply(lose=True), BUSY, Reply(JOB, status=201))

    async def work() -> int | str:
        return (await AsyncClient(str(peer.server_address)).submit(["true"])).id

    assert asyncio.run(work()) == 7
    assert len({request.headers["idempotency-key"] for request in peer.requests}) == 1


def test_a_requeue_is_not_repeated(peer: Peer) -> None:
    """The job may have been requeued, and run again already."""
    peer.on("POST", "/v1/jobs/requeue", Reply(lose=True))
    with pytest.raises(Unreachable, match="may have been carried out"):
        new_client(peer).requeue(7)
    peer.on("POST", "/v1/jobs/requeue", BUSY)
    with pytest.raises(Refused):
        new_client(peer).requeue(7)
    assert len(peer.requests) == 2


def test_repeating_ends_after_a_while(peer: Peer) -> None:
    peer.on("GET", "/v1/nodes", BUSY)
    with pytest.raises(Refused, match="OD023"):
        new_client(peer, retry_for_s=0.3).list_nodes()
    assert len(peer.requests) > 1


def test_other_refusals_are_not_repeated(peer: Peer) -> None:
    peer.on("GET", "/v1/nodes", problem(500, "InternalError", "OD000", "odcd failed"))
    with pytest.raises(Refused, match="OD000"):
        new_client(peer).list_nodes()
    assert len(peer.requests) == 1
