"""The identity of a caller: peer credentials on the Unix socket, API keys over TCP."""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import socket
import threading
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from odcd.api.http.identity import Peer
from odcd.records.api_keys import NewKey, digest_of
from odcd.records.job import Identity
from tests.odcd.api.service import ALICE, BOB, BODY, OPERATOR, Service, on_socket, over, serve
from tests.support.harness.users import needs_root


def test_the_kernel_identifies_the_user_of_the_socket(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"), over(folder / "s") as client:
            answer = await client.post("/v1/jobs", json=BODY)
            [job] = (await client.get(f"/v1/jobs/{answer.json()['id']}")).json()["jobs"]
            assert job["uid"] == os.geteuid()

    serve(database_url, work)


def test_a_uid_known_only_to_the_accounts_has_its_name_there(database_url: str) -> None:
    async def work(service: Service) -> None:
        before = await service.submit()
        async with service.client(OPERATOR) as client:
            member = {"user": "ann", "uid": ALICE.uid}
            answer = await client.post("/v1/accounts/default/users", json=member)
            assert answer.status_code == 201
        job = await service.submit()
        async with service.client(ALICE) as client:
            for ended in ("false", "true"):
                params = {"user": "ann", "ended": ended}
                shown = (await client.get("/v1/jobs", params=params)).json()["jobs"]
                users = {one["id"]: one["user"] for one in shown}
                assert users == {before: str(ALICE.uid), job: "ann"}
            refused = await client.post("/v1/accounts", json={"name": "lab"})
            assert refused.json()["detail"] == "user ann may not create accounts", "no operator"
            gone = await client.post("/v1/jobs/cancel", json={"user": "ann"})
            assert [one["job_id"] for one in gone.json()["jobs"]] == [before, job]

    serve(database_url, work, operators=frozenset(["ann"]))


@needs_root
def test_another_uid_on_the_socket_is_another_user(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s", mode=0o666):
            connection = _connect_as(folder / "s", ALICE)
            reader, writer = await asyncio.open_unix_connection(sock=connection)
            writer.write(b"GET /v1/jobs?user=x HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 403")
            writer.close()
        async with on_socket(service, folder / "t", mode=0o600):
            with pytest.raises(PermissionError):
                _connect_as(folder / "t", ALICE)

    serve(database_url, work, serves_uid=0)


def _connect_as(path: Path, peer: Peer) -> socket.socket:
    """Connect as another user: to the kernel, a thread has user ids of its own."""
    connection = socket.socket(socket.AF_UNIX)
    failed: list[OSError] = []
    set_uid, set_gid = (117, 119) if platform.machine() == "x86_64" else (147, 149)

    def connect() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.syscall(set_gid, -1, peer.gid, -1) == 0
        assert libc.syscall(set_uid, -1, peer.uid, -1) == 0
        try:
            connection.connect(str(path))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    if failed:
        connection.close()
        raise failed[0]
    connection.setblocking(False)
    return connection


def test_tcp_requests_require_a_key(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(None) as client:
            for headers in (
                {},
                {"Authorization": "Basic eDp5"},
                {"Authorization": "Bearer"},
                {"Authorization": "Bearer nonsense"},
            ):
                answer = await client.get("/v1/jobs", headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (401, "OD015")
                assert answer.headers["www-authenticate"] == "Bearer"
            for public in ("/health", "/ready", "/metrics", "/openapi.json", "/docs"):
                assert (await client.get(public)).status_code == 200

    serve(database_url, work)


def test_a_key_authenticates_its_owner_until_it_expires(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        carol = Identity(user="carol", uid=64003, gid=64003, operator=False)
        now = service.api.clock.now()
        for key, made in (("good", now), ("old", now - timedelta(hours=3))):
            kept = NewKey(key, digest_of(key.encode()), key)
            await service.store.keys.create(carol, kept, made, timedelta(hours=2))
        async with on_socket(service, folder / "s", listen=("127.0.0.1", 0)) as server:
            [(host, port)] = server.addresses
            async with httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
                client.headers["Authorization"] = "Bearer good"
                answer = await client.post("/v1/jobs", json=BODY)
                [job] = (await client.get(f"/v1/jobs/{answer.json()['id']}")).json()["jobs"]
                assert (job["user"], job["uid"]) == ("carol", 64003)
                client.headers["Authorization"] = "Bearer old"
                assert (await client.get("/v1/jobs")).status_code == 401

    serve(database_url, work)


def test_the_daemon_of_a_user_serves_only_that_user(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(ALICE) as client:
            assert (await client.get("/v1/jobs")).status_code == 200
        for peer in (BOB, OPERATOR):
            async with service.client(peer) as client:
                answer = await client.get("/v1/jobs")
                assert (answer.status_code, answer.json()["code"]) == (403, "OD013")
                assert (await client.get("/health")).status_code == 200

    serve(database_url, work, own_uid=ALICE.uid, serves_uid=ALICE.uid)


def test_operators_are_root_the_daemons_user_and_those_named(database_url: str) -> None:
    async def work(service: Service) -> None:
        named = Peer(64009, 64009)
        for peer, may in ((OPERATOR, True), (BOB, True), (named, True), (ALICE, False)):
            async with service.client(peer) as client:
                answer = await client.post("/v1/jobs", json={**BODY, "nice": -5})
                assert answer.status_code == (201 if may else 403)

    serve(database_url, work, own_uid=BOB.uid, operators=frozenset({"64009"}))


def test_a_client_cannot_set_its_own_identity(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(ALICE) as client:
            for field in ("user", "uid", "operator"):
                answer = await client.post("/v1/jobs", json={**BODY, field: 0})
                assert answer.status_code == 400
                assert f'"{field}"' in answer.json()["detail"]

    serve(database_url, work)
