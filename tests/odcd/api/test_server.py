"""HTTP as the daemon runs it: its socket, its shutdown, and its monitoring."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from odcd.api.http.server import HttpServer
from odcd.errors import OdcError
from tests.odcd.api.service import BODY, Service, on_socket, over, serve


@pytest.mark.parametrize("mode", [0o600, 0o666])
def test_the_socket_permissions_do_not_depend_on_the_umask(
    database_url: str, folder: Path, mode: int
) -> None:
    async def work(service: Service) -> None:
        before = os.umask(0o077)
        try:
            async with on_socket(service, folder / "s", mode):
                assert stat.S_IMODE((folder / "s").stat().st_mode) == mode
        finally:
            os.umask(before)
        assert not (folder / "s").exists()

    serve(database_url, work)


def test_a_socket_left_over_is_replaced_and_a_file_is_not(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        left = HttpServer(service.app, path=folder / "s", mode=0o600)
        left.bind()
        async with on_socket(service, folder / "s"), over(folder / "s") as client:
            assert (await client.get("/health")).status_code == 200
        left._close()
        (folder / "f").write_text("precious")
        with pytest.raises(OdcError, match="cannot listen"):
            HttpServer(service.app, path=folder / "f", mode=0o600).bind()
        assert (folder / "f").read_text() == "precious"

    serve(database_url, work)


def test_an_old_server_leaves_its_successors_socket_alone(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        old = HttpServer(service.app, path=folder / "s", mode=0o600)
        old.bind()
        async with on_socket(service, folder / "s"), over(folder / "s") as client:
            old._close()
            assert (await client.get("/health")).status_code == 200

    serve(database_url, work)


def test_a_port_in_use_is_reported(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s", listen=("127.0.0.1", 0)) as server:
            taken = server.addresses[0]
            other = HttpServer(service.app, path=folder / "t", mode=0o600, listen=taken)
            with pytest.raises(OdcError, match="cannot listen on"):
                other.bind()
            assert not (folder / "t").exists()

    serve(database_url, work)


def test_the_first_free_port_of_several_is_used(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s", listen=("127.0.0.1", 0)) as server:
            taken = server.addresses[0]
            places = (taken, ("127.0.0.1", 0), ("127.0.0.1", 0))
            other = HttpServer(service.app, path=folder / "t", mode=0o600, listen_first=places)
            other.bind()
            assert len(other.addresses) == 1
            assert other.addresses != [taken]
            other._close()
            none = HttpServer(service.app, path=folder / "t", mode=0o600, listen_first=[taken])
            none.bind()
            assert none.addresses == []
            none._close()

    serve(database_url, work)


def test_a_response_in_progress_is_finished_before_the_server_stops(
    database_url: str, folder: Path
) -> None:
    async def work(service: Service) -> None:
        began, go_on = asyncio.Event(), asyncio.Event()
        real = service.store.nodes.list

        async def slow(*when: Any) -> str:
            began.set()
            await go_on.wait()
            return await real(*when)

        service.store.nodes.list = slow  # type: ignore[method-assign]
        async with over(folder / "s") as client:
            async with on_socket(service, folder / "s"):
                answer = asyncio.create_task(client.get("/v1/nodes"))
                async with asyncio.timeout(60):
                    await began.wait()
                asyncio.get_running_loop().call_later(0.3, go_on.set)
            assert (await answer).status_code == 200

    serve(database_url, work)


def test_the_server_installs_no_signal_handlers(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        async with on_socket(service, folder / "s"), over(folder / "s") as client:
            await client.get("/health")
            now = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
            assert now == before

    serve(database_url, work)


def test_several_requests_can_share_one_connection(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"):
            reader, writer = await asyncio.open_unix_connection(str(folder / "s"))
            for _ in range(3):
                writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n" * 2)
                for _ in range(2):
                    head = await reader.readuntil(b"\r\n\r\n")
                    assert head.startswith(b"HTTP/1.1 200")
                    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                    await reader.readexactly(length)
            writer.close()

    serve(database_url, work)


def test_a_broken_request_does_no_harm(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"), over(folder / "s") as client:
            short = b"POST /v1/jobs HTTP/1.1\r\ncontent-length: 9\r\n\r\nx"
            for broken in (b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", short):
                reader, writer = await asyncio.open_unix_connection(str(folder / "s"))
                writer.write(broken)
                writer.write_eof()
                writer.close()
                del reader
            assert (await client.post("/v1/jobs", json=BODY)).status_code == 201

    serve(database_url, work)


def test_ready_reports_what_is_missing(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(None) as client:
            answer = await client.get("/ready")
            while not answer.json()["checks"]["listener"]:
                answer = await client.get("/ready")
            assert (answer.status_code, answer.json()["ready"]) == (200, True)
            await service.database.close()
            answer = await client.get("/ready")
            assert (answer.status_code, answer.json()["ready"]) == (503, False)
            assert answer.json()["checks"]["database"] is False
            assert (await client.get("/health")).status_code == 200
            response = await client.get("/metrics")
            assert (response.status_code, "odcd_database_up 0.0\n" in response.text) == (200, True)
            await service.database.open()

    serve(database_url, work)


def test_requests_are_counted_by_route_and_not_by_path(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit(gpus=8)
        async with service.client() as client:
            await client.get(f"/v1/jobs/{job_id}")
        async with service.client(None) as client:
            await client.get("/v1/jobs")
            lines = (await client.get("/metrics")).text.splitlines()
        for line in (
            'odcd_http_requests_total{code="201",method="POST",route="/v1/jobs"} 1.0',
            'odcd_http_requests_total{code="401",method="GET",route="/v1/jobs"} 1.0',
            'odcd_http_request_duration_seconds_count{method="GET",route="/v1/jobs/{id}"} 1.0',
            'odcd_database_request_seconds_count{operation="submit_jobs"} 1.0',
            "odcd_database_up 1.0",
            "odcd_leader 0.0",
        ):
            assert line in lines, line

    serve(database_url, work)


def test_the_cluster_summary_counts_jobs_and_partitions(database_url: str) -> None:
    async def work(service: Service) -> None:
        await service.submit()
        async with service.client() as client:
            cluster = (await client.get("/v1/cluster")).json()
            assert cluster["jobs"]["PENDING"] == 1
            partitions = (await client.get("/v1/partitions")).json()["partitions"]
            assert [partition["name"] for partition in partitions] == ["main"]

    serve(database_url, work)


def test_a_large_answer_waits_for_its_reader(database_url: str, folder: Path) -> None:
    async def work(service: Service) -> None:
        async with service.client() as client:
            jobs = [{**BODY, "comment": "x" * 4000}] * 500
            await client.post("/v1/jobs/batch", json={"jobs": jobs})
        async with on_socket(service, folder / "s"), over(folder / "s") as client:
            async with client.stream("GET", "/v1/jobs", params={"limit": "500"}) as answer:
                size = sum([len(piece) async for piece in answer.aiter_bytes()])
            assert size > 2_000_000
            with pytest.raises(httpx.ReadTimeout):
                await client.get("/v1/events", timeout=httpx.Timeout(60, read=0.2))

    serve(database_url, work)


@pytest.mark.long
def test_nothing_is_imported_when_it_serves() -> None:
    """A process started as root has dropped root by then, and cannot read a checkout in root's
    folder."""
    script = (
        "import sys; from pathlib import Path; import odcd.daemon\n"
        "from odcd.api.http.server import HttpServer\n"
        "server = HttpServer(lambda *_: None, path=Path('s'), mode=0o600)\n"
        "before = set(sys.modules); server._server.config.load()\n"
        "print(sorted(set(sys.modules) - before))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
