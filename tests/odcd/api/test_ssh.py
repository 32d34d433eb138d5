"""A real ssh into a real sshd: through `odcctl ssh-proxy`, the daemon's WebSocket and a stream."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from odcd.clock import SystemClock
from odcd.jobs.github_keys import GithubKeys
from tests.odcd.api.service import Service, on_socket, serve, until
from tests.odcd.api.test_reservations import ask, read, started
from tests.odcd.api.test_tunnel import ME
from tests.support.fakes.github import Github, a_github
from tests.support.fakes.streams import Dialling
from tests.support.harness.sshd import NoServer, Sshd, an_sshd

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a user dev")


class SshDevServer(Dialling):
    """A dev server whose SSH server is this one."""

    def __init__(self, sshd: Sshd) -> None:
        super().__init__(sshd.port)
        self._sshd = sshd

    async def set_keys(self, job_id: int, attempt: int, lines: Sequence[str]) -> None:
        await super().set_keys(job_id, attempt, lines)
        self._sshd.admit(*lines)


@dataclass
class Done:
    code: int
    out: str
    err: str


@dataclass
class Laptop:
    """A user's machine, with a key of theirs."""

    home: Path
    service: Service
    github: Github
    sshd: Sshd
    dev_server: SshDevServer
    environment: dict[str, str]
    number: int = 0

    @property
    def key(self) -> Path:
        return self.home / "id"

    async def start(self, *argv: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *argv, env=self.environment, cwd=self.home, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def run(self, *argv: str, stdin: bytes = b"") -> Done:
        process = await self.start(*argv)
        async with asyncio.timeout(60):
            out, err = await process.communicate(stdin)
        assert process.returncode is not None
        return Done(process.returncode, out.decode(), err.decode())

    async def odcctl(self, *argv: str, stdin: bytes = b"") -> Done:
        return await self.run(sys.executable, "-m", "odcctl", *argv, stdin=stdin)

    def ssh(self, *argv: str, program: str = "ssh") -> list[str]:
        conf = str(self.home / f".odc/ssh/{self.number}.conf")
        return [program, "-F", conf, "-i", str(self.key), "-o", f"User={self.sshd.user}",
                "-o", "IdentitiesOnly=yes", *argv]  # fmt: skip

    @property
    def host(self) -> str:
        return f"odc-{self.number}"


def on_laptop(
    url: str, folder: Path, work: Callable[[Laptop], Awaitable[None]], *, nodes: int = 1
) -> None:
    """With an active reservation that accepts the user's key, and the file that ssh needs."""
    home, server_folder = folder / "laptop", folder / "box"
    home.mkdir()
    server_folder.mkdir()
    folder.chmod(0o755)

    async def inside(service: Service) -> None:
        async with a_github() as github, on_socket(service, folder / "s"):
            keys = GithubKeys(github.url, SystemClock())
            object.__setattr__(service.api, "keys", keys)
            with an_sshd(server_folder) as sshd:
                dev_server = SshDevServer(sshd)
                object.__setattr__(service.api, "executor_of", lambda: dev_server)
                environment = {
                    "PATH": os.environ["PATH"], "HOME": str(home), "ODC_SERVER": str(folder / "s"),
                    "TZ": "UTC", "LANG": "C.UTF-8", "HTTPS_PROXY": "http://127.0.0.1:9",
                    "HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "socks5://127.0.0.1:9",
                }  # fmt: skip
                laptop = Laptop(home, service, github, sshd, dev_server, environment)
                try:
                    await _reserve(laptop)
                    await work(laptop)
                except BaseException:
                    print(sshd.log(), file=sys.stderr)
                    raise
                finally:
                    await keys.close()

    try:
        serve(url, inside, nodes=nodes)
    except NoServer as error:
        pytest.skip(str(error))


async def _reserve(laptop: Laptop) -> None:
    made = await laptop.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(laptop.key))
    assert made.code == 0, made.err
    laptop.github.answers["octocat"] = laptop.key.with_suffix(".pub").read_text()
    result = await laptop.odcctl("config", "set", "github_user", "octocat")
    assert result.code == 0, result.err
    one = read(await ask(laptop.service, "POST", "/v1/reservations", {}, peer=ME), 201)
    await started(laptop.service, one.id)
    laptop.number = one.id
    lines = await laptop.service.database.fetchval(
        "select ask -> 'ssh_keys' from odc.reservation where job_id = $1", one.id
    )
    laptop.sshd.admit(*json.loads(lines))
    result = await laptop.odcctl("config", "ssh", str(one.id))
    assert result.out == f"{laptop.home}/.odc/ssh/{one.id}.conf\n", result.err


async def output_has(process: asyncio.subprocess.Process, text: bytes) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        assert text in await process.stdout.readline()


@pytest.mark.long
def test_a_command_runs_and_its_exit_code_comes_back(database_url: str, folder: Path) -> None:
    """ACC-07, ACC-10, BUG-40: without a question, twice, and the environment's proxies do not
    matter; the second time the host key is known."""

    async def work(laptop: Laptop) -> None:
        for _ in range(2):
            done = await laptop.run(*laptop.ssh(laptop.host, "echo hello; cat; exit 3"), stdin=b"x")
            assert (done.code, done.out) == (3, "hello\nx"), done.err
        known = (laptop.home / ".odc/ssh/known_hosts").read_text()
        assert known == f"odc-{laptop.number}-0 {laptop.sshd.host_key}\n"
        named = await laptop.run(*laptop.ssh(f"{laptop.host}-0", "true"))
        assert named.code == 0, named.err
        await until(lambda: all(stream.closed for stream in laptop.dev_server.streams))

    on_laptop(database_url, folder, work)


@pytest.mark.long
def test_files_of_some_mb_are_copied_both_ways(database_url: str, folder: Path) -> None:
    async def work(laptop: Laptop) -> None:
        data = os.urandom(8 * 1024 * 1024)
        (laptop.home / "up").write_bytes(data)
        there = f"{laptop.host}:{laptop.sshd.folder}/home/there"
        up = await laptop.run(*laptop.ssh("-q", "up", there, program="scp"))
        assert up.code == 0, up.err
        down = await laptop.run(*laptop.ssh("-q", there, "down", program="scp"))
        assert down.code == 0, down.err
        copied = (laptop.home / "down").read_bytes()
        assert hashlib.sha256(copied).digest() == hashlib.sha256(data).digest()

    on_laptop(database_url, folder, work)


def test_ports_are_forwarded(database_url: str, folder: Path) -> None:
    """ACC-12, ACC-23: a server in the dev server is reachable from this machine."""

    async def serve_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"jupyter: " + await reader.readline())
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def work(laptop: Laptop) -> None:
        async with await asyncio.start_server(serve_page, "127.0.0.1", 0) as inside:
            port = inside.sockets[0].getsockname()[1]
            local = laptop.home / "forwarded"
            process = await laptop.start(
                *laptop.ssh("-N", "-L", f"{local}:127.0.0.1:{port}", laptop.host)
            )
            await until(lambda: _listens(local))
            reader, writer = await asyncio.open_unix_connection(str(local))
            writer.write(b"hi\n")
            async with asyncio.timeout(60):
                assert await reader.read() == b"jupyter: hi\n"
            writer.close()
            process.send_signal(signal.SIGTERM)
            await process.communicate()
        await until(lambda: all(stream.closed for stream in laptop.dev_server.streams))

    on_laptop(database_url, folder, work)


def _listens(path: Path) -> bool:
    """A socket's file exists a moment before connections are accepted."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


@pytest.mark.long
def test_jupyter_is_reached_through_a_local_port(database_url: str, folder: Path) -> None:
    """ACC-13, ACC-14, ACC-23: over several connections at once, on which the client speaks
    first."""
    token = "0f" * 32

    async def serve_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"lab: " + await reader.readline())
        writer.close()

    async def get(port: int, text: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text)
        answer = await reader.read()
        writer.close()
        return answer

    async def work(laptop: Laptop) -> None:
        database, number = laptop.service.database, laptop.number
        refused = await laptop.odcctl("connect", str(number), "--jupyter")
        assert (refused.code, f"odcctl edit {number} --enable-jupyter" in refused.err) == (1, True)
        edit = {"jupyter": True}
        read(await ask(laptop.service, "PATCH", f"/v1/reservations/{number}", edit, peer=ME))
        await database.execute(
            "insert into odc.box_jupyter values ($1, 1, true, now(), null)", number
        )
        await database.execute(
            "insert into odc.box_key (job_id, host_key, host_public, gang_key, gang_public, "
            "made_at, jupyter_token) values ($1, 'h', '', 'g', '', now(), $2)", number, token,
        )  # fmt: skip
        async with await asyncio.start_server(serve_page, "127.0.0.1", 0) as inside:
            laptop.dev_server.port = inside.sockets[0].getsockname()[1]
            process = await laptop.start(
                sys.executable, "-m", "odcctl", "connect", str(number), "--jupyter"
            )
            assert process.stdout is not None
            try:
                async with asyncio.timeout(60):
                    link = (await process.stdout.readline()).decode().strip()
                found = re.fullmatch(rf"http://127.0.0.1:(\d+)/lab\?token={token}", link)
                assert found is not None, link
                port = int(found[1])
                texts = [f"hello {n}\n".encode() for n in range(8)]
                async with asyncio.timeout(60):
                    answers = await asyncio.gather(*(get(port, text) for text in texts))
                assert answers == [b"lab: " + text for text in texts]
                assert {opened[3] for opened in laptop.dev_server.opened} == {8888}
            finally:
                process.send_signal(signal.SIGINT)
                await process.communicate()
            assert process.returncode == 0
        await until(lambda: all(stream.closed for stream in laptop.dev_server.streams))

    on_laptop(database_url, folder, work)


@pytest.mark.long
def test_the_agent_is_forwarded(database_url: str, folder: Path) -> None:
    """ACC-11: keys stay here, and git in the dev server can use them."""

    async def work(laptop: Laptop) -> None:
        agent = await _with_agent(laptop)
        try:
            done = await laptop.run(*laptop.ssh(laptop.host, "ssh-add -l"))
            assert (done.code, "ED25519" in done.out) == (0, True), done.err
        finally:
            os.kill(agent, signal.SIGTERM)

    on_laptop(database_url, folder, work)


async def _with_agent(laptop: Laptop) -> int:
    made = await laptop.run("ssh-agent", "-s", "-a", str(laptop.home / "agent"))
    pid = re.search(r"SSH_AGENT_PID=(\d+)", made.out)
    assert pid is not None, made.err
    laptop.environment["SSH_AUTH_SOCK"] = str(laptop.home / "agent")
    added = await laptop.run("ssh-add", "-q", str(laptop.key))
    assert added.code == 0, added.err
    return int(pid[1])


@pytest.mark.long
def test_a_lost_connection_is_reported_with_the_state_of_the_reservation(
    database_url: str, folder: Path
) -> None:
    """CLI-27: dropped, but still active."""

    async def work(laptop: Laptop) -> None:
        process = await laptop.start(*laptop.ssh(laptop.host, "echo on; sleep 60"))
        await output_has(process, b"on")
        laptop.dev_server.streams[-1].cut()
        async with asyncio.timeout(60):
            _, err = await process.communicate()
        assert process.returncode == 255
        assert (
            f"the connection to reservation {laptop.number} was lost; it is active" in err.decode()
        )
        assert "add-user" not in err.decode()
        assert (laptop.home / f".odc/ssh/{laptop.number}.conf").exists()

    on_laptop(database_url, folder, work)


@pytest.mark.long
def test_a_connection_that_ends_with_its_reservation_reports_that(
    database_url: str, folder: Path
) -> None:
    """CLI-27: cancelled; and ssh no longer has its configuration."""

    async def work(laptop: Laptop) -> None:
        process = await laptop.start(*laptop.ssh(laptop.host, "echo on; sleep 60"))
        await output_has(process, b"on")
        cancelled = await laptop.odcctl("cancel", str(laptop.number))
        assert cancelled.code == 0, cancelled.err
        assert not (laptop.home / f".odc/ssh/{laptop.number}.conf").exists()
        assert (laptop.home / ".odc/ssh/known_hosts").read_text() == ""
        await laptop.service.end(laptop.number)
        laptop.dev_server.streams[-1].cut()
        async with asyncio.timeout(60):
            _, err = await process.communicate()
        assert process.returncode == 255
        assert f"reservation {laptop.number} has ended" in err.decode()
        again = await laptop.odcctl("ssh-proxy", str(laptop.number))
        assert (again.code, "has ended" in again.err) == (1, True), again.err
        unknown = await laptop.odcctl("ssh-proxy", "999")
        assert (unknown.code, "does not exist" in unknown.err) == (1, True), unknown.err

    on_laptop(database_url, folder, work)


@pytest.mark.long
@needs_root
def test_connect_runs_ssh_with_the_agent_and_gives_its_exit_code(
    database_url: str, folder: Path
) -> None:
    """CLI-25, CLI-27, ACC-11: and distinguishes refused keys from all other errors."""

    async def work(laptop: Laptop) -> None:
        agent = await _with_agent(laptop)
        try:
            done = await laptop.odcctl("connect", stdin=b"ssh-add -l; exit 4\n")
            assert (done.code, "ED25519" in done.out) == (4, True), done.err
            laptop.sshd.admit()
            refused = await laptop.odcctl("connect")
            assert refused.code == 1
            assert "Permission denied" in refused.err
            assert f"reservation {laptop.number} accepts none of your SSH keys" in refused.err
            assert "--add-user" in refused.err
            # Its owner adds the user again: the dev server gets the key at once.
            added = await laptop.odcctl("edit", "--add-user", "octocat")
            assert added.code == 0, added.err
            done = await laptop.odcctl("connect", stdin=b"exit 5\n")
            assert done.code == 5, done.err
        finally:
            os.kill(agent, signal.SIGTERM)

    on_laptop(database_url, folder, work)


@pytest.mark.long
def test_connect_tries_an_unavailable_daemon_three_times(database_url: str, folder: Path) -> None:
    """ACC-08: retries with pauses, and then reports it."""

    async def work(laptop: Laptop) -> None:
        laptop.environment["ODC_SERVER"] = str(folder / "nobody")
        begun = asyncio.get_running_loop().time()
        done = await laptop.odcctl("ssh-proxy", str(laptop.number))
        assert (done.code, "no daemon answers" in done.err) == (3, True), done.err
        assert asyncio.get_running_loop().time() - begun > 1.4

    on_laptop(database_url, folder, work)
