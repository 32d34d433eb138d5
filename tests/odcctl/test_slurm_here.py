"""What salloc and sbcast do on this machine, where the server may belong to another user."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odcctl.remote import exchange, here, upstream
from odcctl.remote.interactive import converse
from odcctl.remote.upstream import Upstream

SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The client replaces handlers, and then ends."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


ALLOC = {"argv": ["id"], "chdir": None, "env": {}, "job": 7, "release": "/r", "quiet": True}


@pytest.mark.parametrize(
    ("argv", "command", "chdir", "allowed"),
    [
        (["-n1", "make", "all"], ["make", "all"], None, True),
        (["-n1"], [], None, True),
        (["-D/tmp", "make"], ["make"], "/tmp", True),
        (["--chdir=/tmp", "make"], ["make"], "/tmp", True),
        (["-n1", "make", "all"], ["make", "clean"], None, False),
        (["-n1", "make", "all"], ["make"], None, False),
        (["make"], ["sh", "-c", "x", "make"], None, False),
        (["make"], ["make"], "/home/eve", False),
    ],
)
def test_salloc_runs_only_its_own_command(
    argv: list[str], command: list[str], chdir: str | None, allowed: bool
) -> None:
    order = {**ALLOC, "argv": command, "chdir": chdir}
    assert here.is_command_of(order, argv) is allowed


def test_sbcast_copies_only_what_it_was_told_to() -> None:
    argv = ["-f", "data", "/tmp/data"]
    assert here.is_copy_of({"source": "data", "target": "/tmp/data"}, argv)
    assert not here.is_copy_of({"source": "/home/me/.ssh/id", "target": "/tmp/data"}, argv)


def frame(kind: bytes, content: bytes) -> bytes:
    return kind + len(content).to_bytes(4) + content


@pytest.mark.parametrize(
    ("name", "kind", "order"),
    [
        ("srun", b"c", b'{"argv":["touch","made"],"chdir":null,"env":{},"quiet":true}'),
        ("salloc", b"c", b'{"argv":["touch","made"],"chdir":null,"env":{},"quiet":true}'),
        ("sattach", b"k", b'{"source":"secret","target":"made","force":true,"preserve":false}'),
        ("sbcast", b"k", b'{"source":"secret","target":"made","force":true,"preserve":false}'),
        ("sbcast", b"u", b"secret"),
        ("srun", b"u", b"mine"),
    ],
)
def test_another_order_of_the_server_is_refused(
    name: str, kind: bytes, order: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text("secret")

    def send(body: bytes, key: str) -> Any:
        yield frame(kind, order) + frame(b"x", b"0")

    def post(path: str, body: bytes) -> bytes:
        raise AssertionError(path)

    assert converse(name, ["mine"], send, post) == 1
    assert not (tmp_path / "made").exists()
    assert "the server asked for something else" in capfd.readouterr().err


def test_variables_that_load_code_are_not_taken_from_the_server(tmp_path: Path) -> None:
    env = {"SLURM_JOB_ID": "7", "LD_PRELOAD": "/tmp/evil.so", "PATH": "/tmp/evil"}
    script = f'echo "$SLURM_JOB_ID $LD_PRELOAD $PATH" > {tmp_path}/seen'
    assert here.run_child({**ALLOC, "argv": ["sh", "-c", script], "env": env}) == 0
    assert (tmp_path / "seen").read_text() == f"7  {os.environ['PATH']}\n"


def copy(source: Path, target: Path, *, force: bool = False) -> int:
    return here.copy_file(
        {
            "source": str(source),
            "target": str(target),
            "force": force,
            "preserve": False,
            "node": "gpu1",
        }
    )


def test_a_copy_keeps_its_mode_and_leaves_nothing_else(tmp_path: Path) -> None:
    source, folder = tmp_path / "from", tmp_path / "to"
    folder.mkdir()
    source.write_text("data")
    source.chmod(0o750)
    assert copy(source, folder / "to") == 0
    assert (folder / "to").stat().st_mode & 0o777 == 0o750
    assert copy(source, folder / "to") == 17, "it replaced a file unasked"
    assert copy(source, folder / "to", force=True) == 0
    assert copy(tmp_path / "none", folder / "other") == 255
    assert copy(tmp_path, folder / "other") == 255
    assert [path.name for path in folder.iterdir()] == ["to"]


def test_a_message_is_repeated_while_the_daemon_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_pause(_: float) -> None: ...

    monkeypatch.setattr(upstream.time, "sleep", no_pause)
    answers = iter([exchange.Lost("away"), exchange.Lost("away"), b"done"])

    def post(path: str, body: bytes) -> bytes:
        answer = next(answers)
        if isinstance(answer, exchange.Lost):
            raise answer
        return answer

    assert Upstream(post, lambda _: None).insist("/path", b"{}") == b"done"
    with pytest.raises(exchange.Lost):
        upstream.post_to([str(tmp_path / "none.sock")], "/path", b"{}")


def answering(path: Path, head: bytes) -> socket.socket:
    """A server that answers one request with this head."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(head + b"\r\ncontent-length: 2\r\n\r\n{}")

    threading.Thread(target=answer, daemon=True).start()
    return listener


@pytest.mark.parametrize("status", [b"429 Too Many Requests", b"503 Service Unavailable"])
def test_a_message_that_was_not_taken_is_lost_and_not_refused(
    status: bytes, tmp_path: Path
) -> None:
    """Before: input that came while the user had too many requests was dropped."""
    with (
        answering(tmp_path / "sock", b"HTTP/1.1 " + status),
        pytest.raises(exchange.Lost),
    ):
        upstream.post_to([str(tmp_path / "sock")], "/path", b"{}")
