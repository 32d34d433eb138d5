"""A real runner in a folder of its own, and a plain client that speaks its protocol."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pwd
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from odcd.runner import launch, protocol, rules
from odcd.runner.__main__ import Runner

PATIENCE_S = 60.0


def _as_is() -> None:
    """The default: no change."""


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def a_dispatch(job: int, script: str, work_dir: Path, **changes: Any) -> dict[str, Any]:
    """One member, as the runner gets it; sane defaults, for the user who runs the test."""
    members = changes.pop("members", None) or [a_part(0, work_dir)]
    environment = changes.pop("environment_text", '{"PATH": "/usr/bin:/bin"}')
    return {
        "job": job, "attempt": 1, "uid": os.geteuid(), "gid": os.getegid(), "umask": 0o022,
        "work_dir": str(work_dir), "script": digest_of(script),
        "environment": digest_of(environment),
        "env": {}, "args": [], "started_at": time.time() + 1, "ends_at": None, "grace_s": 5.0,
        "signal": None, "spool": False, "pty": False, "members": members,
        "texts": {digest_of(script): script, digest_of(environment): environment},
    } | changes  # fmt: skip


def a_start(*dispatches: dict[str, Any]) -> dict[str, Any]:
    """The request to start them."""
    texts: dict[str, str] = {}
    for dispatch in dispatches:
        texts |= dispatch.get("texts", {})
    bare = [{k: v for k, v in d.items() if k != "texts"} for d in dispatches]
    return {"op": "start", "dispatches": bare, "texts": texts}


def a_part(rank: int, work_dir: Path, **changes: Any) -> dict[str, Any]:
    return {
        "rank": rank, "env": {}, "stdin": None, "stdout": a_file(work_dir / "out"), "stderr": None,
        "shared": False, "limits": None,
    } | changes  # fmt: skip


def a_file(path: Path | str, *, truncate: bool = True, append: bool = False) -> dict[str, Any]:
    return {"path": str(path), "truncate": truncate, "append": append}


class RequestRefused(Exception):
    def __init__(self, error: dict[str, str]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]


class Client:
    """Blocking; keeps the facts that it receives, in order."""

    def __init__(
        self, run_dir: Path, term: int | None = 1, versions: tuple[int, ...] = (1,)
    ) -> None:
        self._sock = launch.connect(run_dir)
        self._sock.settimeout(PATIENCE_S)
        self._received = bytearray()
        self._number = 0
        self.facts: list[dict[str, Any]] = []
        try:
            self.hello = self.ask("hello", versions=list(versions), term=term)
        except BaseException:
            self.close()
            raise

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        return self.ask_with_fd(op, **fields)[0]

    def ask_with_fd(self, op: str, **fields: Any) -> tuple[dict[str, Any], list[int]]:
        self._number += 1
        self._sock.sendall(protocol.encode({"id": self._number, "op": op, **fields}))
        fds: list[int] = []
        while True:
            message = self._next(fds)
            if message.get("id") == self._number:
                if "error" in message:
                    raise RequestRefused(message["error"])
                return message["ok"], fds
            self.facts += message["facts"]

    def ask_together(self, *requests: dict[str, Any]) -> list[dict[str, Any]]:
        """Each with its op: the runner reads them all before it does anything."""
        numbers = range(self._number + 1, self._number + 1 + len(requests))
        self._number += len(requests)
        self._sock.sendall(
            b"".join(
                protocol.encode({"id": number, **request})
                for number, request in zip(numbers, requests, strict=True)
            )
        )
        answers: dict[int, dict[str, Any]] = {}
        while len(answers) < len(requests):
            message = self._next()
            if "facts" in message:
                self.facts += message["facts"]
            elif "error" in message:
                raise RequestRefused(message["error"])
            else:
                answers[message["id"]] = message["ok"]
        return [answers[number] for number in numbers]

    def _next(self, fds: list[int] | None = None) -> dict[str, Any]:
        while b"\n" not in self._received:
            data, got, _, _ = socket.recv_fds(self._sock, 1 << 20, 4)
            if fds is not None:
                fds += got
            if not data:
                raise ConnectionResetError("the runner closed the connection")
            self._received += data
        line, _, rest = bytes(self._received).partition(b"\n")
        self._received = bytearray(rest)
        return json.loads(line)

    def observe(self) -> None:
        self.ask("observe")

    def start(self, *dispatches: dict[str, Any]) -> dict[str, Any]:
        return self.ask(**a_start(*dispatches))

    def wait(self, enough: Callable[[list[dict[str, Any]]], Any]) -> Any:
        """Read facts until enough(facts) is true; returns its value. Fails after PATIENCE_S."""
        deadline = time.monotonic() + PATIENCE_S
        while not (value := enough(self.facts)):
            self._sock.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                self.facts += self._next()["facts"]
            except TimeoutError:
                raise AssertionError(f"not reported within {PATIENCE_S} s: {self.facts}") from None
        self._sock.settimeout(PATIENCE_S)
        return value

    def wait_for(self, job: int, kind: str, rank: int = 0, attempt: int = 1) -> dict[str, Any]:
        expected = (job, attempt, rank, kind)
        return self.wait(
            lambda facts: next(
                (f for f in facts if (f["job"], f["attempt"], f["rank"], f["kind"]) == expected),
                None,
            )
        )

    def wait_end(self, job: int, rank: int = 0, attempt: int = 1) -> dict[str, Any]:
        """The fact that ends the member, of any kind."""
        expected = (job, attempt, rank)
        return self.wait(
            lambda facts: next(
                (
                    f
                    for f in facts
                    if (f["job"], f["attempt"], f["rank"]) == expected and f["kind"] != "started"
                ),
                None,
            )
        )

    def acknowledge(self, *facts: dict[str, Any]) -> None:
        keys = [[f["job"], f["attempt"], f["rank"], f["kind"]] for f in facts]
        self.ask("acknowledge", facts=keys)

    def close(self) -> None:
        self._sock.close()


class RunnerHome:
    """A runner's folder; starts it, kills it, and leaves no process behind."""

    def __init__(self, folder: Path) -> None:
        self.run_dir = folder
        self._clients: list[Client] = []

    def launch(self, **changes: Any) -> None:
        """changes: of the rules. By default jobs of every user run, root's among them."""
        allowed = {"min_uid": 0, "allow_root": True} | changes
        rules.write(self.run_dir, rules.Rules(**allowed))
        launch.launch_runner(self.run_dir, os.geteuid(), os.getegid())

    @property
    def pid(self) -> int:
        return int((self.run_dir / protocol.LOCK_NAME).read_text())

    def client(self, term: int | None = 1, versions: tuple[int, ...] = (1,)) -> Client:
        """With a term, a leader; without one, an observer. Closed at the end."""
        try:
            client = Client(self.run_dir, term, versions)
        except OSError as error:
            log = (self.run_dir / "runner.log").read_text()
            raise AssertionError(f"{error}; the runner's log:\n{log[-5000:]}") from error
        self._clients.append(client)
        if term is not None:
            client.observe()
        return client

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_running(pid))

    def end(self) -> None:
        with contextlib.suppress(OSError, launch.LaunchFailed):
            self.launch()
            client = self.client(self.client(None).hello["term"] + 1)
            client.ask("adopt", expected=[])
            until(lambda: client.ask("quit")["quitting"])
            pid = self.pid
            until(lambda: not is_running(pid))
        for client in self._clients:
            client.close()
        with contextlib.suppress(FileNotFoundError):
            log = (self.run_dir / "runner.log").read_text()
            assert "runner.error" not in log, log


def forked_runner(
    run_dir: Path, *, account: pwd.struct_passwd | None = None, change: Callable[[], None] = _as_is
) -> int:
    """A forked runner for an account that may be unable to read this Python. change: applied to its
    code first, to simulate another version."""
    ready, started = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if account is not None:
                os.setgroups([])
                os.setgid(account.pw_gid)
                os.setuid(account.pw_uid)
            change()
            rules.write(run_dir, rules.Rules(min_uid=0, allow_root=True))
            runner = Runner(run_dir, os.geteuid(), os.getegid())
            os.write(started, b"y")
            runner.run()
        finally:
            os._exit(0)
    os.close(started)
    assert os.read(ready, 1) == b"y"
    os.close(ready)
    return pid


def is_running(pid: int) -> bool:
    """Is there such a process, zombies excluded?"""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def until(true: Callable[[], Any]) -> Any:
    """Check again and again until it is true; fails after PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := true()):
        assert time.monotonic() < deadline, "it did not become true"
        time.sleep(0.01)
    return value
