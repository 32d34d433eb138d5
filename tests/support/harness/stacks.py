"""odc on each of its executors, used only through odcctl."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg

from tests.support.harness.controlplane.children import free_port
from tests.support.harness.daemon import Odc, new_odc, wait

USER, UID = "alice", 5001
LEASE_S = 2
IMAGE = "registry.example/tests:1.0"
ENDED = (
    "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL",
)  # fmt: skip


class Stack:
    """A daemon, which may be killed and restarted, and its user's odcctl.

    nodes: names of two nodes with 8 GPUs each, or more.
    """

    def __init__(
        self, odc: Odc, dsn: str, serve: Sequence[str], nodes: Sequence[str], *, token: bool
    ) -> None:
        self.odc = odc
        self.dsn = dsn
        self.nodes = list(nodes)
        self._token = token
        self._address = f"127.0.0.1:{free_port()}"
        self._serve = ["serve", "--dsn", dsn, "--listen", self._address, *serve]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns when it is ready."""
        log = self.odc.home.with_name("serve.log").open("a")
        with log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "odcd", *self._serve], env=self.odc.environment,
                cwd=self.odc.work, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=log,
            )  # fmt: skip
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert "odcd is ready" in line, line + self.log()
        if self._token:
            made = self.odc.odcd("token", USER, "--uid", str(UID), "--dsn", self.dsn).stdout.strip()
            self.odc.environment |= {"ODC_SERVER": f"http://{self._address}", "ODC_TOKEN": made}
            self._token = False
        wait(
            lambda: {one["name"] for one in self.json("nodes")["nodes"]} >= {*self.nodes}, self.log
        )

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with process:
            process.send_signal(signal.SIGCONT)
            process.send_signal(number)
            process.wait()

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def log(self) -> str:
        return "\n" + self.odc.home.with_name("serve.log").read_text()[-4000:]

    def sql(self, *statements: str) -> None:
        """As if it had happened by itself."""

        async def run() -> None:
            connection = await asyncpg.connect(self.dsn)
            try:
                for statement in statements:
                    await connection.execute(statement)
            finally:
                await connection.close()

        asyncio.run(run())

    def value(self, query: str) -> Any:
        """The result of a query of the database."""

        async def run() -> Any:
            connection = await asyncpg.connect(self.dsn)
            try:
                return await connection.fetchval(query)
            finally:
                await connection.close()

        return asyncio.run(run())

    # -- what a user does -------------------------------------------------------------------------

    def __call__(self, *argv: str, check: bool = True) -> str:
        done = self.odc.odcctl(*argv, check=check)
        return done.stdout if check else done.stdout + done.stderr

    def json(self, *argv: str) -> Any:
        return json.loads(self(*argv, "--json"))

    def submit(self, *options: str, script: str) -> int:
        path = self.odc.work / "job.sh"
        path.write_text(f"#!/bin/sh\n{script}\n")
        return int(self("submit", "--parsable", *options, str(path)))

    def job(self, job: int | str) -> dict[str, Any]:
        return self.json("show", str(job))["jobs"][0]

    def until(self, job: int | str, *states: str) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            found = self.job(job)
            return found if found["state"] in states else None

        return wait(reached, lambda: f"job {job} is {self.job(job)}{self.log()}")

    def end(self, job: int | str) -> dict[str, Any]:
        return self.until(job, *ENDED)

    def wait_for_output(self, job: int, text: str) -> str:
        def found() -> str | None:
            output = self("logs", str(job), check=False)
            return output if text in output else None

        return wait(found, lambda: f"job {job} said {self('logs', str(job), check=False)}")


@contextmanager
def on_local(dsn: str) -> Iterator[Stack]:
    """Processes of this machine, as the user who runs the tests."""
    nodes = ["n1", "n2"]
    with new_odc() as odc:
        odc.environment |= {"ODC_LEASE_S": str(LEASE_S), "ODC_SWEEP_S": "1", "ODC_GRACE_S": "5"}
        with _running(Stack(odc, dsn, ["--node", "n[1-2]=h100:8x64"], nodes, token=False)) as stack:
            yield stack


@contextmanager
def on_kubernetes(
    dsn: str, kubeconfig: Path, nodes: Sequence[str], **environment: str
) -> Iterator[Stack]:
    """Pods of a cluster that has the manifests applied, as a user who is not root."""
    with new_odc() as odc:
        # Processes that drop root must be able to read it.
        own = odc.work / "kubeconfig"
        own.write_bytes(kubeconfig.read_bytes())
        own.chmod(0o644)
        odc.environment |= {
            "ODC_LEASE_S": str(LEASE_S), "ODC_SWEEP_S": "1", "ODC_GRACE_S": "5",
            "ODC_IMAGE": IMAGE, "ODC_ORPHAN_S": "2", **environment,
        }  # fmt: skip
        serve = ["--executor", "kubernetes", "--kubeconfig", str(own)]
        with _running(Stack(odc, dsn, serve, nodes, token=True)) as stack:
            yield stack


@contextmanager
def _running(stack: Stack) -> Iterator[Stack]:
    stack.odc.work.chmod(0o777 if os.geteuid() == 0 else 0o755)
    try:
        stack.start()
        yield stack
    finally:
        stack.kill(signal.SIGTERM)
