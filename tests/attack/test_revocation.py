"""Connections opened with a key end within seconds after the key, however the key ends."""

from __future__ import annotations

import asyncio
import http.client
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from odcd.api.http import credentials
from odcd.records.api_keys import new_key
from odcd.records.job import Identity
from tests.attack.strangers import free_port
from tests.odcd.api.service import ALICE, Service, on_socket, serve, until
from tests.odcd.api.test_tunnel import Keys, a_dev_server, closed, reserved
from tests.support.harness.daemon import Odc, wait
from tests.support.harness.users import account, folder_of, needs_root
from tests.support.harness.warm import cool

USER = "games"


class Stream(threading.Thread):
    """Reads an answer to its end; ended: how the stream ended."""

    def __init__(self, port: int, path: str, key: str) -> None:
        super().__init__(daemon=True)
        self.ended: str | None = None
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        self.start()

    def run(self) -> None:
        ended = "whole"
        try:
            while self._answer.read1(4096):
                pass
        except (http.client.HTTPException, OSError):
            ended = "broken"
        self._answer.close()
        self._connection.close()
        self.ended = ended


@contextmanager
def listening(odc: Odc) -> Iterator[int]:
    port = free_port()
    odc.environment["ODC_LISTEN"] = f"127.0.0.1:{port}"
    with odc.serving("up", "--node", "n1=h100:8"):
        yield port


def key_of(odc: Odc) -> str:
    return odc.odcd("token", USER).stdout.strip()


def by_key(odc: Odc, port: int, key: str, *argv: str) -> subprocess.CompletedProcess[str]:
    odc.environment["ODC_TOKEN"] = key
    try:
        return odc.odcctl("--server", f"http://127.0.0.1:{port}", *argv)
    finally:
        del odc.environment["ODC_TOKEN"]


def call(port: int, method: str, path: str, key: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, headers={"Authorization": f"Bearer {key}"})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.long
@needs_root
def test_streams_end_with_the_key_that_opened_them(odc: Odc) -> None:
    work = folder_of(account(USER), odc.work / "of-user")
    with listening(odc) as port:
        keys = [key_of(odc) for _ in range(4)]
        submitted = by_key(odc, port, keys[0], "submit", "--parsable", "-D", str(work), "--wrap",
                      "echo begun; sleep 600")  # fmt: skip
        job = int(submitted.stdout)
        odc.wait_for(job, "RUNNING")
        paths = ("/v1/events", f"/v1/jobs/{job}/events", f"/v1/jobs/{job}/logs?follow=true")
        streams = [[Stream(port, path, key) for path in paths] for key in keys]

        def ended(of: list[Stream]) -> bool:
            return all(stream.ended == "broken" for stream in of)

        def how() -> str:
            return f"{[[stream.ended for stream in of] for of in streams]}"

        assert call(port, "DELETE", "/v1/keys/current", keys[0]) == 204
        wait(lambda: ended(streams[0]), how)
        assert call(port, "POST", "/v1/keys/rotate", keys[1]) == 201
        wait(lambda: ended(streams[1]), how)
        assert {stream.ended for of in streams[2:] for stream in of} == {None}, how()
        odc.odcctl("logout", "--user", USER)
        wait(lambda: ended(streams[2]) and ended(streams[3]), how)
        odc.odcctl("cancel", str(job))


@pytest.mark.long
@needs_root
def test_odcctl_reports_why_a_terminal_was_closed(odc: Odc) -> None:
    work = folder_of(account(USER), odc.work / "of-user")
    with listening(odc) as port:
        ours, theirs = pty.openpty()
        environment = {**odc.environment, "ODC_TOKEN": key_of(odc)}
        arguments = ["run", "--pty", "-D", str(work), "sh", "-c", "echo $((6 * 7))begun; cat"]
        with subprocess.Popen(
            [sys.executable, "-m", "odcctl", "--server", f"http://127.0.0.1:{port}", *arguments],
            env=environment, cwd=odc.work, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:  # fmt: skip
            os.close(theirs)
            shown = b""
            while b"42begun" not in shown:
                shown += os.read(ours, 4096)
            odc.odcctl("logout", "--user", USER)
            with suppress(OSError):
                while os.read(ours, 4096):
                    pass
            assert process.stderr is not None
            stderr = process.stderr.read().decode()
            os.close(ours)
        assert process.returncode == 1
        assert "the terminal was closed: the API key has ended" in stderr
        [job] = [row["job_id"] for row in odc.rows("select job_id from odc.running")]
        odc.odcctl("cancel", str(job))


@pytest.mark.parametrize("end", ["ended", "login over"])
def test_a_tunnel_ends_with_its_login(
    warm_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Its key may expire in the meantime: a tunnel cannot be resumed with a new one."""
    monkeypatch.setattr(credentials, "LOOK_S", 0.02)

    async def work(service: Service) -> None:
        api = service.api
        looking = asyncio.create_task(api.credentials.run(api.store.keys, api.clock))
        number, made, now = await reserved(service, ALICE), new_key(), api.clock.now()
        who = Identity(user="64001", uid=64001, gid=64001, operator=False)
        await api.store.keys.create(who, made, now, timedelta(hours=1))
        await change(service, "until_at = $1", now + timedelta(hours=5))
        async with on_socket(service, folder / "s", listen=("127.0.0.1", 0)) as server:
            port = server.addresses[0][1]
            address = f"ws://127.0.0.1:{port}/v1/reservations/{number}/ssh"
            key = {"Authorization": f"Bearer {made.key}"}
            async with connect(address, additional_headers=key, compression=None) as tunnel:
                await tunnel.send(b"hello")
                assert await tunnel.recv() == b"hello"
                await until(lambda: api.credentials.open)
                await change(service, "expires_at = $1", now)
                await asyncio.sleep(5 * credentials.LOOK_S)
                await tunnel.send(b"again")
                assert await tunnel.recv() == b"again"
                if end == "ended":
                    await api.store.keys.end_all(
                        Identity(user="root", uid=0, gid=0, operator=True), "64001", now
                    )
                else:
                    await change(service, "until_at = $1", now)
                assert await closed(tunnel) == credentials.ENDED
                assert tunnel.close_reason == credentials.WHY_ENDED
        looking.cancel()
        await asyncio.wait([looking])

    with_dev_server(warm_url, work)


async def change(service: Service, what: str, value: object) -> None:
    await service.database.execute(f"update odc.api_key set {what}", value)


def with_dev_server(url: str, work: Callable[[Service], Awaitable[None]]) -> None:
    async def outer(service: Service) -> None:
        async with a_dev_server() as dialling, asyncio.timeout(60):
            object.__setattr__(service.api, "executor_of", lambda: dialling)
            await work(service)

    serve(url, outer, keys=Keys())


@pytest.fixture
def warm_url(database_url: str) -> Iterator[str]:
    yield database_url
    cool()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_one_statement_checks_the_keys_of_500_streams(
    warm_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "LOOK_S", 0.02)

    async def work(service: Service) -> None:
        api, batch_sizes = service.api, list[int]()
        made = [new_key() for _ in range(500)]
        who = Identity(user="64001", uid=64001, gid=64001, operator=False)
        for key in made:
            await api.store.keys.create(who, key, api.clock.now(), timedelta(hours=1))
        events = [api.credentials.watch(key.digest) for key in made]
        ask = api.store.keys.list_open

        async def counted(digests: list[str]) -> object:
            batch_sizes.append(len(digests))
            return await ask(digests)

        monkeypatch.setattr(api.store.keys, "list_open", counted)
        looking = asyncio.create_task(api.credentials.run(api.store.keys, api.clock))
        await until(lambda: len(batch_sizes) > 3)
        assert set(batch_sizes) == {500}
        assert not any(event.is_set() for event in events)
        await api.store.keys.end(made[7].digest, api.clock.now())
        await until(events[7].is_set)
        assert sum(event.is_set() for event in events) == 1
        await until(lambda: batch_sizes[-1] == 499)
        looking.cancel()
        await asyncio.wait([looking])

    serve(warm_url, work)
