"""The terminal of a job over a WebSocket."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from odcd.api.http.identity import Peer
from odcd.records.dispatch import Dispatch
from tests.odcd.api.service import Service, on_socket, serve, until


class Terminal:
    """Echoes its input in capitals; "exit" ends it."""

    def __init__(self) -> None:
        self._shown: asyncio.Queue[bytes] = asyncio.Queue()
        self.size: tuple[int, int] | None = None
        self.closed = False

    async def attach(self, dispatch: Dispatch, rank: int) -> Terminal:
        assert rank == 0
        await self._shown.put(b"$ ")
        return self

    async def read(self) -> bytes:
        return await self._shown.get()

    async def write(self, data: bytes) -> None:
        await self._shown.put(b"" if data == b"exit" else data.upper())

    async def resize(self, rows: int, cols: int) -> None:
        self.size = rows, cols

    async def close(self) -> None:
        self.closed = True


def connect(path: Path, job_id: int) -> unix_connect:
    return unix_connect(str(path), f"ws://odc/v1/jobs/{job_id}/attach", open_timeout=60)


async def refused(path: Path, job_id: int) -> tuple[int, dict[str, str]]:
    with pytest.raises(InvalidStatus) as caught:
        async with connect(path, job_id):
            pass
    response = caught.value.response
    return response.status_code, json.loads(response.body)


async def last_words(connection: ClientConnection) -> dict[str, int | None]:
    """The text frame before the end."""
    messages: list[str | bytes] = [message async for message in connection]
    assert isinstance(messages[-1], str)
    return json.loads(messages[-1])


def test_a_terminal_carries_input_and_output_until_the_job_ends(
    database_url: str, folder: Path
) -> None:
    terminal = Terminal()

    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"), asyncio.timeout(60):
            job_id = await service.submit(pty=True)
            await service.plan()
            async with connect(folder / "s", job_id) as connection:
                assert await connection.recv() == b"$ "
                await connection.send(b"ls")
                assert await connection.recv() == b"LS"
                await connection.send('{"resize": [50, 132]}')
                await until(lambda: terminal.size == (50, 132))
                # A terminal without a window has no size to apply, which is no reason to
                # disconnect.
                await connection.send('{"resize": [0, 0]}')
                await connection.send(b"pwd")
                assert await connection.recv() == b"PWD"
                assert terminal.size == (50, 132)
                await connection.send(b"exit")
                await service.end(job_id, exit_code=3)
                assert await last_words(connection) == {"exit_code": 3, "signal": None}
            assert terminal.closed

    serve(database_url, work, executor_of=lambda: terminal)


def test_a_client_that_disconnects_frees_the_terminal_and_the_job_continues(
    database_url: str, folder: Path
) -> None:
    terminal = Terminal()

    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"), asyncio.timeout(60):
            job_id = await service.submit(pty=True)
            await service.plan()
            async with connect(folder / "s", job_id) as connection:
                assert await connection.recv() == b"$ "
            await until(lambda: terminal.closed)
            async with service.client() as client:
                [job] = (await client.get(f"/v1/jobs/{job_id}")).json()["jobs"]
                assert job["state"] == "CONFIGURING"

    serve(database_url, work, executor_of=lambda: terminal)


@pytest.mark.parametrize("frame", ["nonsense", "{}", '{"resize": [-1, 5]}', '{"resize": 3}'])
def test_a_text_frame_that_is_not_a_resize_ends_the_session(
    database_url: str, folder: Path, frame: str
) -> None:
    terminal = Terminal()

    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"), asyncio.timeout(60):
            job_id = await service.submit(pty=True)
            await service.plan()
            async with connect(folder / "s", job_id) as connection:
                await connection.recv()
                await connection.send(frame)
                with pytest.raises(ConnectionClosed):
                    await connection.recv()
            await until(lambda: terminal.closed)

    serve(database_url, work, executor_of=lambda: terminal)


def test_attaching_to_a_job_without_terminal_is_refused_before_the_handshake(
    database_url: str, folder: Path
) -> None:
    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"), asyncio.timeout(60):
            plain, waiting = await service.submit(gpus=8), await service.submit(gpus=8, pty=True)
            await service.plan()
            refusals = [(plain, 409, "OD012"), (waiting, 409, "OD012"), (99, 404, "OD006")]
            for job_id, status, code in refusals:
                answered, problem = await refused(folder / "s", job_id)
                assert (answered, problem["code"]) == (status, code)
                assert problem["hint"]

    serve(database_url, work, executor_of=Terminal)


def test_only_the_owner_and_operators_attach(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"), asyncio.timeout(60):
            job_id = await service.submit(Peer(64009, 64009), pty=True)
            await service.plan()
            # For a daemon of another user, the user who runs this test is neither.
            answered, problem = await refused(folder / "s", job_id)
            assert (answered, problem["code"]) == (403, "OD013")

    serve(database_url, work, executor_of=Terminal, serves_uid=64009)


def test_a_daemon_that_stops_ends_sessions(database_url: str, folder: Path) -> None:
    terminal = Terminal()

    async def work(service: Service) -> None:
        async with asyncio.timeout(60):
            async with on_socket(service, folder / "s"):
                job_id = await service.submit(pty=True)
                await service.plan()
                connection = await connect(folder / "s", job_id)
                assert await connection.recv() == b"$ "
            with pytest.raises(ConnectionClosed):
                await connection.recv()
            assert terminal.closed

    serve(database_url, work, executor_of=lambda: terminal)
