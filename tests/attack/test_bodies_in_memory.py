"""No client can make the daemon keep gigabytes of unfinished request bodies in memory."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from odcd.api.http.routing import MAX_BODY_BYTES
from odcd.errors import DaemonBusy, TooManyRequests
from odcd.fairness.bodies import IN_ALL, PER_USER, Bodies, Receipt
from odcd.fairness.limits import Fairness
from odcd.records.job import Identity
from tests.attack.front import BOB, FORKS, MALLORY, limited
from tests.attack.strangers import over_socket
from tests.odcd.api.service import ALICE, OPERATOR, Service, serve, until
from tests.odcd.api.service import BOB as BOBS
from tests.support.harness.daemon import new_odc, wait

MIB = 1024 * 1024
PIECE = b" " * 65_536
PIECES = 64
JOB = b'{"script":"#!/bin/sh","work_dir":"/"}'
LARGE = JOB + PIECE * PIECES
"""Several pieces."""


def user(uid: int, *, operator: bool = False) -> Identity:
    return Identity(user=f"u{uid}", uid=uid, gid=uid, operator=operator)


def bodies_of(service: Service) -> Bodies:
    return service.api.fairness.bodies


async def never_ends(size: int) -> AsyncGenerator[bytes]:
    for _ in range(size // len(PIECE)):
        yield PIECE
    await asyncio.Event().wait()


def post(client: httpx.AsyncClient, content: Any) -> asyncio.Task[httpx.Response]:
    return asyncio.create_task(client.post("/v1/jobs", content=content))


def test_bodies_of_one_user_are_limited_and_those_of_others_are_accepted(database_url: str) -> None:
    bodies = Bodies(per_user=3 * len(LARGE) // 2, in_all=100 * MIB)

    async def work(service: Service) -> None:
        async with service.client(ALICE) as alice, service.client(BOBS) as bob:
            waits = post(alice, never_ends(len(LARGE)))
            await until(lambda: bodies.size >= PIECES * len(PIECE))
            refused = await alice.post("/v1/jobs", content=LARGE)
            assert (refused.status_code, refused.json()["code"]) == (429, "OD041")
            assert int(refused.headers["retry-after"]) >= 1
            assert refused.json()["hint"]
            assert (await alice.post("/v1/jobs", content=JOB)).status_code == 201
            assert (await bob.post("/v1/jobs", content=LARGE)).status_code == 201
            waits.cancel()
            await asyncio.wait([waits])
            await until(lambda: bodies.size == 0)
            assert (await alice.post("/v1/jobs", content=LARGE)).status_code == 201
            assert bodies.size == 0

    serve(database_url, work, fairness=Fairness(bodies=bodies))


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (LARGE, 201), (b"{" + LARGE, 400), (LARGE * 4, 413), (b"[" * 300_000, 413),
        (JOB[:-1] + b',"partitions":["nowhere"]}' + PIECE * 4, 404),
    ],
    ids=["taken", "malformed", "too large", "too many values", "refused"],
)  # fmt: skip
@pytest.mark.parametrize("declared", [True, False])
def test_a_body_is_no_longer_counted_after_the_response(
    database_url: str, content: bytes, status: int, *, declared: bool
) -> None:
    async def pieces() -> AsyncGenerator[bytes]:
        for at in range(0, len(content), len(PIECE)):
            yield content[at : at + len(PIECE)]

    async def work(service: Service) -> None:
        headers = {"content-length": str(len(content))} if declared else {}
        async with service.client() as client:
            answer = await client.post("/v1/jobs", content=pieces(), headers=headers)
        assert answer.status_code == status, answer.text
        assert bodies_of(service).size == 0

    serve(database_url, work)


def test_a_body_is_no_longer_counted_after_its_client_disconnects(database_url: str) -> None:
    async def work(service: Service) -> None:
        messages = [{"type": "http.request", "body": PIECE, "more_body": True}] * 3

        async def receive() -> dict[str, Any]:
            sizes.append(bodies_of(service).size)
            return messages.pop() if messages else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            raise AssertionError(message)

        sizes: list[int] = []
        scope = {
            "type": "http", "method": "POST", "path": "/v1/jobs", "query_string": b"",
            "headers": [(b"content-length", b"%d" % (10 * MIB))], "state": {"peer": ALICE},
        }  # fmt: skip
        await service.app(scope, receive, send)
        assert sizes == [0, 10 * MIB, 10 * MIB, 10 * MIB]
        assert bodies_of(service).size == 0

    serve(database_url, work)


def test_the_body_of_a_command_is_counted_until_the_command_ends(database_url: str) -> None:
    """Before: 500 commands of one user could keep gigabytes while they waited."""

    async def work(service: Service) -> None:
        async with service.client() as client:
            job = (await client.post("/v1/jobs", content=JOB)).json()["id"]
        body = json.dumps({"argv": ["wait_job", str(job)], "files": {"x": "y" * MIB}}).encode()
        messages = [
            {"type": "http.request", "body": body[: MIB // 2], "more_body": True},
            {"type": "http.request", "body": body[MIB // 2 :], "more_body": False},
        ]
        begun, leaves = asyncio.Event(), asyncio.Event()

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop(0)
            await leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            begun.set()

        scope = {
            "type": "http", "method": "POST", "path": "/v1/slurm/scontrol", "query_string": b"",
            "headers": [], "state": {"peer": ALICE},
        }  # fmt: skip
        command = asyncio.ensure_future(service.app(scope, receive, send))
        await begun.wait()
        assert bodies_of(service).size >= MIB // 2
        leaves.set()
        await command
        assert bodies_of(service).size == 0

    serve(database_url, work)


def test_a_body_that_fails_or_is_cancelled_is_no_longer_counted(database_url: str) -> None:
    async def work(service: Service) -> None:
        async def breaks() -> AsyncGenerator[bytes]:
            yield PIECE
            yield PIECE
            raise ConnectionResetError

        async with service.client(OPERATOR) as client:
            with suppress(ConnectionResetError):
                await client.post("/v1/jobs", content=breaks())
            assert bodies_of(service).size == 0
            waits = post(client, never_ends(MIB))
            await until(lambda: bodies_of(service).size)
            waits.cancel()
            await asyncio.wait([waits])
        assert bodies_of(service).size == 0

    serve(database_url, work)


def test_a_user_without_open_requests_can_always_send_the_largest_body() -> None:
    assert MAX_BODY_BYTES <= PER_USER
    bodies = Bodies()
    for uid in range(1, 9):
        for _ in range(IN_ALL // MAX_BODY_BYTES):
            with suppress(TooManyRequests, DaemonBusy):
                Receipt(bodies, user(uid)).expect(MAX_BODY_BYTES)
        newcomer = Receipt(bodies, user(64001))
        newcomer.expect(MAX_BODY_BYTES)
        newcomer.release()
        newcomer.release()  # once is enough
    assert bodies.size <= IN_ALL


def test_the_bodies_of_all_users_together_are_limited() -> None:
    bodies = Bodies(per_user=64, in_all=256)
    for uid in range(1, 100):
        for _ in range(4):
            with suppress(TooManyRequests, DaemonBusy):
                Receipt(bodies, user(uid)).expect(16)
    with pytest.raises(DaemonBusy) as busy:
        Receipt(bodies, user(100)).expect(16)
    assert busy.value.status == 503
    assert busy.value.hint
    operator = Receipt(bodies, user(0, operator=True))
    with pytest.raises(DaemonBusy):
        operator.expect(257)
    assert bodies.size == 256


def rss(pid: int) -> int:
    """Bytes of memory that a process has."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def sending(path: str, uid: int, count: int) -> Generator[None]:
    """A process of that user whose requests lack the last byte of the largest body. It has sent
    everything else, or was refused."""
    ours, theirs = socket.socketpair()

    def attack() -> None:
        os.setgid(uid)
        os.setuid(uid)
        kept: list[socket.socket] = []
        for _ in range(count):
            one = socket.socket(socket.AF_UNIX)
            one.settimeout(60)
            kept.append(one)
            with suppress(OSError):
                one.connect(path)
                one.sendall(
                    b"POST /v1/jobs HTTP/1.1\r\nHost: odc\r\nContent-Length: %d\r\n\r\n"
                    % MAX_BODY_BYTES
                )
                for _ in range(MAX_BODY_BYTES // len(PIECE) - 1):
                    one.sendall(PIECE)
                one.sendall(PIECE[:-1])
        theirs.sendall(b"done")
        theirs.recv(1)

    process = FORKS.Process(target=attack, daemon=True)
    process.start()
    theirs.close()
    try:
        ours.settimeout(120)
        assert ours.recv(4) == b"done"
        yield
    finally:
        process.kill()
        process.join()
        ours.close()


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="acts as two users")
def test_many_unfinished_bodies_use_little_memory_and_block_no_other_user() -> None:
    """Before: each connection had its 12 MiB."""
    with new_odc() as odc, limited(odc) as pid, ExitStack() as stack:
        path, before = odc.home / "odcd.sock", rss(pid)
        for uid in (MALLORY, MALLORY + 10, MALLORY + 11):
            stack.enter_context(sending(str(path), uid, 40))
        # Three users; the read buffer of a request is larger than the request.
        assert rss(pid) - before < 400 * MIB
        job = {"script": "#!/bin/sh\n" + " " * 3 * MIB, "work_dir": "/"}
        assert "id" in over_socket(path, BOB, "POST", "/v1/jobs", job)
        refused = over_socket(path, MALLORY, "POST", "/v1/jobs", job)
        assert refused["code"] in ("OD041", "OD044")
        stack.close()
        wait(
            lambda: "id" in over_socket(path, MALLORY, "POST", "/v1/jobs", job) or None, odc.log
        )  # fmt: skip
