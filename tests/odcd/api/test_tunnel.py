"""The connection to a dev server: its SSH keys, and the tunnel to its SSH port."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from odcd.api import tunnel
from odcd.api.http.identity import Peer
from odcd.clock import SystemClock
from odcd.jobs.github_keys import GithubKeys
from tests.odcd.api.service import ALICE, BOB, Service, on_socket, serve, until
from tests.odcd.api.test_reservations import ask, read, started
from tests.support.fakes.github import ED25519, Github, a_github
from tests.support.fakes.streams import Dialling

ME = Peer(os.getuid(), os.getgid())
OTHER = ED25519.replace(
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC"
)
EOF = '{"eof":true}'
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Echoes its input; at the end of that, "bye"."""
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.write(b"bye")


@asynccontextmanager
async def a_dev_server(talk: Talk = echo) -> AsyncGenerator[Dialling]:
    handlers: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        with suppress(OSError):
            await talk(reader, writer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield Dialling(server.sockets[0].getsockname()[1])
        if handlers:
            await asyncio.wait(handlers, timeout=60)


class Keys:
    """Keys that every user has."""

    async def of(self, user: str) -> list[str]:
        return [ED25519]

    async def close(self) -> None: ...


async def reserved(service: Service, peer: Peer = ME, **body: Any) -> int:
    """An active reservation; its id."""
    body = {"github_user": "octocat", **body}
    made = read(await ask(service, "POST", "/v1/reservations", body, peer=peer), 201)
    await started(service, made.id)
    return made.id


def to(path: Path, job_id: int | str, query: str = "") -> unix_connect:
    address = f"ws://odc/v1/reservations/{job_id}/ssh{query}"
    return unix_connect(str(path), address, compression=None, open_timeout=60)


async def closed(connection: ClientConnection) -> int | None:
    async with asyncio.timeout(60):
        with suppress(ConnectionClosed):
            async for _ in connection:
                pass
        await connection.wait_closed()
    return connection.close_code


# -- keys at submit -------------------------------------------------------------------------------


def with_github(url: str, work: Callable[[Service, Github], Awaitable[None]], **more: Any) -> None:
    async def outer(service: Service) -> None:
        async with a_github(octocat=f"{ED25519} home\n{OTHER}\n", empty="") as github:
            keys = GithubKeys(github.url, SystemClock(), timeout_s=60)
            object.__setattr__(service.api, "keys", keys)
            try:
                await work(service, github)
            finally:
                await keys.close()

    serve(url, outer, **more)


def test_a_reservation_stores_all_ssh_keys_of_its_user(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """ACC-01, AUT-10: of the body's GitHub user, else of the one that was set; never logged."""
    caplog.set_level(logging.DEBUG)

    async def work(service: Service, github: Github) -> None:
        unset = await ask(service, "POST", "/v1/reservations", {})
        assert unset.status_code == 400
        assert "odcctl config set github_user" in unset.json()["hint"]
        assert github.requested == []
        for wrong in ("-a", "a/../b", 7):
            response = await ask(service, "PUT", "/v1/users/me", {"github_user": wrong})
            assert response.status_code == 400
        response = await ask(service, "PUT", "/v1/users/me", {"github_user": "octocat"})
        assert response.json() == {"user": "64001", "uid": 64001, "github_user": "octocat"}
        made = read(await ask(service, "POST", "/v1/reservations", {}, key="k"), 201)
        assert made.github_user == "octocat"
        kept = await service.database.fetchval(
            "select ask -> 'ssh_keys' from odc.reservation where job_id = $1", made.id
        )
        assert ED25519 in kept
        assert OTHER in kept
        # GitHub's answer is not part of the request.
        github.answers["octocat"] = ED25519
        service.api.keys._kept.clear()  # type: ignore[union-attr]
        again = read(await ask(service, "POST", "/v1/reservations", {}, key="k"), 201)
        assert again.id == made.id

    with_github(database_url, work)
    assert ED25519.split()[1] not in caplog.text


@pytest.mark.parametrize(
    ("name", "status", "word"),
    [("nobody", 404, "GitHub has no user"), ("empty", 400, "no SSH keys"), ("down", 502, "500")],
)
def test_without_ssh_keys_nothing_is_queued(
    database_url: str, name: str, status: int, word: str
) -> None:
    """ACC-02: refused at once and clearly, a dry run too, and before there is a job."""

    async def work(service: Service, github: Github) -> None:
        github.answers["down"] = 500
        for path in ("/v1/reservations", "/v1/reservations?dry_run=true"):
            response = await ask(service, "POST", path, {"github_user": name})
            assert (response.status_code, word in response.json()["detail"]) == (status, True), (
                response.text
            )
        assert await service.database.fetchval("select count(*) from odc.job") == 0

    with_github(database_url, work)


def test_keys_of_an_added_user_are_stored_and_sent_to_the_dev_server(database_url: str) -> None:
    """ACC-18, ACC-19, ACC-20, BUG-33: stored, once each; errors reach the owner; no other user may
    add keys."""
    dev_server = Dialling(0)

    async def work(service: Service, github: Github) -> None:
        github.answers["hubot"] = f"{OTHER}\n{ED25519}"
        number = await reserved(service, ALICE)
        path = f"/v1/reservations/{number}"
        shared = read(await ask(service, "PATCH", path, {"add_user": "hubot", "name": "ours"}))
        assert (shared.secondary_users, shared.name) == (["hubot"], "ours")
        assert dev_server.key_updates == [(number, 1, [ED25519, OTHER])]
        read(await ask(service, "PATCH", path, {"add_user": "Hubot"}))
        assert dev_server.key_updates[1:] == dev_server.key_updates[:1]
        for name, status in (("nobody", 404), ("empty", 400), ("a b", 400)):
            response = await ask(service, "PATCH", path, {"add_user": name})
            assert response.status_code == status
        other = await ask(service, "PATCH", path, {"add_user": "hubot"}, peer=BOB)
        assert other.status_code == 403

    with_github(database_url, work, executor_of=lambda: dev_server)


def test_reservations_without_ssh_need_no_keys(database_url: str) -> None:
    """ACC-18: for a dev server with a terminal."""

    async def work(service: Service) -> None:
        named = await ask(service, "POST", "/v1/reservations", {"github_user": "octocat"})
        assert named.status_code == 400
        assert "does not use SSH" in named.json()["detail"]
        number = await reserved(service, ALICE, github_user=None)
        response = await ask(service, "PATCH", f"/v1/reservations/{number}", {"add_user": "hubot"})
        assert (response.status_code, response.json()["code"]) == (409, "OD012")

    serve(database_url, work)


# -- the tunnel -----------------------------------------------------------------------------------


def test_a_tunnel_carries_both_directions_and_each_can_end_alone(
    database_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ACC-07: what was sent before the end still arrives, and the answer to it."""
    monkeypatch.setattr(tunnel, "LINGER_S", 600.0)

    async def work(service: Service) -> None:
        async with (
            a_dev_server() as dev_server,
            on_socket(service, folder / "s"),
            asyncio.timeout(60),
        ):
            object.__setattr__(service.api, "executor_of", lambda: dev_server)
            number = await reserved(service)
            async with to(folder / "s", number) as connection:
                await connection.send(b"hello")
                assert await connection.recv() == b"hello"
                await connection.send(EOF)
                assert [await connection.recv(), await connection.recv()] == [b"bye", EOF]
                assert await closed(connection) == 1000
            assert dev_server.opened == [(number, 1, 0, tunnel.PORTS["ssh"])]
            await until(lambda: dev_server.streams[0].closed)

    serve(database_url, work, keys=Keys())


@pytest.mark.long
def test_a_tunnel_applies_backpressure(database_url: str, folder: Path) -> None:
    """Backpressure in both directions: the daemon does not buffer."""
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while True:
            writer.write(bytes(65_536))
            await writer.drain()
            sent += 65_536

    async def work(service: Service) -> None:
        async with (
            a_dev_server(flood) as dev_server,
            on_socket(service, folder / "s"),
            asyncio.timeout(60),
        ):
            object.__setattr__(service.api, "executor_of", lambda: dev_server)
            number = await reserved(service)
            async with to(folder / "s", number) as connection:
                before = 0
                while sent < 32 * 1024 * 1024 and not 0 < sent == before:
                    before = sent
                    await asyncio.sleep(0.1)
                assert sent == before < 32 * 1024 * 1024
                pushed = 0
                with suppress(TimeoutError):
                    while pushed < 64 * 1024 * 1024:
                        async with asyncio.timeout(1):
                            await connection.send(bytes(262_144))
                        pushed += 262_144
                assert pushed < 32 * 1024 * 1024
                connection.transport.abort()
            await until(lambda: dev_server.streams[0].closed)

    serve(database_url, work, keys=Keys())


def test_a_tunnel_ends_when_its_client_or_its_pod_disappears(
    database_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tunnel, "LINGER_S", 0.2)

    async def work(service: Service) -> None:
        async with (
            a_dev_server() as dev_server,
            on_socket(service, folder / "s"),
            asyncio.timeout(60),
        ):
            object.__setattr__(service.api, "executor_of", lambda: dev_server)
            number = await reserved(service)
            async with to(folder / "s", number) as connection:
                await connection.send(b"x")
                await connection.recv()
                connection.transport.abort()
            await until(lambda: dev_server.streams[0].closed)
            async with to(folder / "s", number) as connection:
                await connection.send(b"x")
                await connection.recv()
                dev_server.streams[1].cut()
                assert await closed(connection) in (1000, 4500)
            await until(lambda: dev_server.streams[1].closed)
            async with to(folder / "s", number) as connection:
                await connection.send('{"resize":[1,2]}')
                assert await closed(connection) == 4400

    serve(database_url, work, keys=Keys())


def test_sockets_are_counted_by_route_and_by_how_they_ended(
    database_url: str, folder: Path
) -> None:
    async def work(service: Service) -> None:
        value = service.api.metrics.registry.get_sample_value
        route = "/v1/reservations/{id}/ssh"

        def is_open() -> float | None:
            return value("odcd_websockets_open", {"route": route})

        def ended(code: str) -> float | None:
            return value("odcd_websockets_total", {"route": route, "code": code})

        async with (
            a_dev_server() as dev_server,
            on_socket(service, folder / "s"),
            asyncio.timeout(60),
        ):
            object.__setattr__(service.api, "executor_of", lambda: dev_server)
            number = await reserved(service)
            assert (is_open(), ended("1000")) == (0, 0)
            async with to(folder / "s", number) as one, to(folder / "s", number) as other:
                for connection in (one, other):
                    await connection.send(b"x")
                    await connection.recv()
                assert is_open() == 2
                await one.send(EOF)
                assert await closed(one) == 1000
                await until(lambda: (is_open(), ended("1000")) == (1, 1))
                # With a code of its own, which is no label.
                await other.close(4321)
            await until(lambda: (is_open(), ended("left")) == (0, 1))
            async with to(folder / "s", 99) as connection:
                assert await closed(connection) == 4004
            await until(lambda: (is_open(), ended("4004")) == (0, 1))
            with pytest.raises(InvalidStatus):
                async with unix_connect(str(folder / "s"), "ws://odc/v1/jobs/99/attach"):
                    pass
            labels = {"route": "/v1/jobs/{id}/attach", "code": "404"}
            await until(lambda: value("odcd_websockets_total", labels) == 1)
        assert ended("4321") is None

    serve(database_url, work, keys=Keys())


def test_an_unreachable_reservation_closes_the_tunnel_with_a_code(
    database_url: str, folder: Path
) -> None:
    """ACC-08, CLI-27: 4004 unknown, 4409 not active, 4400 no such member, 4500 internal."""

    async def work(service: Service) -> None:
        async with (
            a_dev_server() as dev_server,
            on_socket(service, folder / "s"),
            asyncio.timeout(60),
        ):
            object.__setattr__(service.api, "executor_of", lambda: dev_server)
            number = await reserved(service)
            waiting = read(
                await ask(
                    service, "POST", "/v1/reservations",
                    {"gpus": 8, "github_user": "octocat"}, peer=ME,
                ),
                201,
            ).id  # fmt: skip
            cases = [
                (99, "", 4004), (waiting, "", 4409), (number, "?rank=1", 4400),
                (number, "?rank=x", 4400), ("x", "", 4400),
            ]  # fmt: skip
            for named, query, code in cases:
                async with to(folder / "s", named, query) as connection:
                    assert await closed(connection) == code, named
            object.__setattr__(service.api, "executor_of", lambda: None)
            async with to(folder / "s", number) as connection:
                assert await closed(connection) == 4500
            object.__setattr__(service.api, "executor_of", lambda: Dialling(9))
            async with to(folder / "s", number) as connection:
                assert await closed(connection) == 4409
            assert dev_server.opened == []

    serve(database_url, work, keys=Keys())


def test_only_the_owner_operators_and_added_users_can_open_a_tunnel(
    database_url: str, folder: Path
) -> None:
    """ACC-18, ACC-19, AUT-08."""
    dev_server = Dialling(9)

    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"), asyncio.timeout(60):
            number = await reserved(service, Peer(64009, 64009))
            # For a daemon of another user, the user who runs this test is neither.
            with pytest.raises(InvalidStatus) as caught:
                async with to(folder / "s", number):
                    pass
            assert caught.value.response.status_code == 403
            assert dev_server.opened == []

    serve(database_url, work, keys=Keys(), executor_of=lambda: dev_server, serves_uid=64009)
