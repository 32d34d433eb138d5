"""The runner without daemon and database: jobs started and watched to their end per second."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from odcd.runner import launch, protocol, rules

JOBS = 300
DISPATCHES_AT_ONCE = 50
ENDED = frozenset({"exited", "start_failed", "lost"})


def trues(runs: int) -> list[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="odc-bench-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        rules.write(folder / "runner", rules.Rules(min_uid=0, allow_root=True))
        launch.launch_runner(folder / "runner", os.geteuid(), os.getegid())
        runner = Speaker(folder / "runner")
        rates = [_run(runner, folder, first=run * JOBS + 1) for run in range(runs + 1)][1:]
        runner.ask("quit")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [
        Figure(
            f"{JOBS} `true` jobs through the runner alone", rates, "jobs/s", at_least=True,
            note="from start requests of 50 jobs to the last reported exit; forks dominate",
        )
    ]  # fmt: skip


class Speaker:
    """A client of the runner's socket that observes."""

    def __init__(self, run_dir: Path) -> None:
        self._sock: socket.socket = launch.connect(run_dir)
        self._lines = self._sock.makefile("rb")
        self._number = 0
        self.facts: list[dict[str, Any]] = []
        self.ask("hello", versions=list(protocol.VERSIONS), term=1)
        self.ask("observe")

    def ask(self, op: str, **fields: object) -> None:
        self._number += 1
        self._sock.sendall(protocol.encode({"id": self._number, "op": op, **fields}))
        while self.read().get("id") != self._number:
            pass

    def read(self) -> dict[str, Any]:
        """The next message; its facts are kept. Raises RuntimeError for an error."""
        message: dict[str, Any] = json.loads(self._lines.readline())
        if "error" in message:
            raise RuntimeError(message["error"])
        self.facts += message.get("facts", [])
        return message


def _run(runner: Speaker, folder: Path, first: int) -> float:
    script = "#!/bin/true\n"
    environment = json.dumps({f"SETTING_{n:02}": "x" * 50 for n in range(28)})
    texts = {hashlib.sha256(text.encode()).hexdigest(): text for text in (script, environment)}
    jobs = [_dispatch(number, list(texts), folder) for number in range(first, first + JOBS)]
    begin = time.perf_counter()
    for at in range(0, JOBS, DISPATCHES_AT_ONCE):
        runner.ask("start", dispatches=jobs[at : at + DISPATCHES_AT_ONCE], texts=texts)
    while sum(fact["kind"] in ENDED for fact in runner.facts) < JOBS:
        runner.read()
    took = time.perf_counter() - begin
    facts, runner.facts = runner.facts, []
    wrong = [fact for fact in facts if fact["kind"] in ENDED and fact.get("exit_code") != 0]
    if wrong:
        raise RuntimeError(f"{len(wrong)} jobs did not end well, such as {wrong[0]}")
    keys = [[fact["job"], fact["attempt"], fact["rank"], fact["kind"]] for fact in facts]
    runner.ask("acknowledge", facts=keys)
    return JOBS / took


def _dispatch(job: int, digests: list[str], folder: Path) -> dict[str, Any]:
    null = {"path": "/dev/null", "truncate": True, "append": False}
    member = {
        "rank": 0, "env": {}, "stdin": None, "stdout": null, "stderr": None, "shared": False,
        "limits": None,
    }  # fmt: skip
    return {
        "job": job, "attempt": 1, "uid": os.geteuid(), "gid": os.getegid(), "umask": 0o022,
        "work_dir": str(folder), "script": digests[0], "environment": digests[1], "env": {},
        "args": [], "started_at": time.time() + 1, "ends_at": None, "grace_s": 5.0, "signal": None,
        "spool": False, "pty": False, "members": [member],
    }  # fmt: skip
