"""Careful clients: each repeats a request under its key, at either daemon, until it is answered."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.support.harness.nemesis.ledger import SCRIPT, uptime
from tests.support.harness.nemesis.pair import Daemon, Pair

ASK_S = 5.0
PAUSE_S = 0.1
PATIENCE_S = 90.0
"""After all faults are over."""


@dataclass(slots=True)
class Submission:
    """One submitted job or array. It has ids after odc answered."""

    name: str
    tasks: int = 1
    ranks: int = 1
    gpus: int = 1
    exit_code: int = 0
    after: tuple[int, ...] = ()
    """Ids of jobs that must end before it starts."""
    id: int | None = None
    cancelled: str | None = None
    """odc's answer to the request to cancel it."""
    cancelled_at: float = 0.0


@dataclass
class Clients:
    pair: Pair
    seed: int
    number: int
    """The number of clients."""
    longest_s: float
    """The longest run time of a job."""
    submissions: list[Submission] = field(default_factory=list)
    repeats: Counter[str] = field(default_factory=Counter)
    """The reasons for which requests were repeated."""
    wrong: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _calm_at: float | None = None

    def start(self) -> None:
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"client {number}", daemon=True)
            for number in range(self.number)
        ]
        for thread in self._threads:
            thread.start()

    def calm(self) -> None:
        """All faults are over: every request should be answered soon."""
        self._calm_at = time.monotonic()
        self._over.set()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        chance = random.Random(f"{self.seed}/client {number}")
        mine: list[Submission] = []
        count = 0
        try:
            while not self._over.wait(chance.uniform(0.1, 1.5)):
                if mine and chance.random() < 0.12:
                    self._cancel(chance, chance.choice(mine[-8:]))
                    continue
                made = self._submit(chance, f"{self.seed}-{number}-{count}", mine)
                mine += made
                count += 1
        except Exception as error:
            self.wrong.append(f"client {number}: {type(error).__name__}: {error}")

    # -- requests -----------------------------------------------------------------------------

    def _submit(self, chance: random.Random, key: str, mine: list[Submission]) -> list[Submission]:
        path, body, made = self._a_request(chance, key, mine)
        self.submissions += made
        status, answer = self._send(chance, "POST", path, body, key)
        if status != 201:
            raise AssertionError(f"{key}: {status}: {answer}")
        ids = answer.get("ids") or [answer["id"]]
        for one, job_id in zip(made, ids, strict=True):
            one.id = job_id
        if chance.random() < 0.1:
            _, again = self._send(chance, "POST", path, body, key)
            if again != answer:
                self.wrong.append(f"{key}: one key, two answers: {answer}, {again}")
        return made

    def _a_request(
        self, chance: random.Random, key: str, mine: list[Submission]
    ) -> tuple[str, dict[str, Any], list[Submission]]:
        kind = chance.choice(["job", "job", "array", "gang", "batch", "chain"])
        count = chance.randint(2, 4) if kind == "batch" else 1
        made: list[Submission] = []
        bodies: list[dict[str, Any]] = []
        for number in range(count):
            one = Submission(f"{key}.{number}", gpus=chance.choice([1, 1, 2]))
            one.exit_code = chance.choice([0] * 9 + [7])
            one.ranks = chance.randint(2, 3) if kind == "gang" else 1
            run_s = chance.uniform(0, 1) if chance.random() < 0.95 else self.longest_s
            body: dict[str, Any] = {
                "script": SCRIPT, "name": one.name, "work_dir": str(self.pair.work),
                "args": [f"{run_s:.2f}", str(one.exit_code)], "stdout": "/dev/null",
                "gpus_per_node": one.gpus, "node_count": one.ranks, "launch": "all",
                "time_limit_s": 7200,
                "requeue": chance.random() < 0.5,
            }  # fmt: skip
            if kind == "array":
                one.tasks = 4
                body["array"] = chance.choice(["0-3", "1-7:2%2"])
            if kind == "chain":
                one.after = tuple(a.id for a in mine[-chance.randint(1, 2) :] if a.id is not None)
                if one.after:
                    body["dependency"] = "afterany:" + ":".join(map(str, one.after))
                    if chance.random() < 0.5:
                        body["dependency"] += f",after:{one.after[0]}"
            made.append(one)
            bodies.append(body)
        if kind == "batch":
            return "/v1/jobs/batch", {"jobs": bodies}, made
        return "/v1/jobs", bodies[0], made

    def _cancel(self, chance: random.Random, one: Submission) -> None:
        status, answer = self._send(chance, "POST", f"/v1/jobs/{one.id}/cancel", {}, None)
        if status != 200:
            raise AssertionError(f"cancel of {one.id}: {status}: {answer}")
        if one.cancelled is None:
            one.cancelled_at = uptime()
            one.cancelled = ",".join(sorted({job["outcome"] for job in answer["jobs"]}))

    def _send(
        self, chance: random.Random, method: str, path: str, body: object, key: str | None
    ) -> tuple[int, Any]:
        """The first answer other than 429 and 503. Raises AssertionError without an answer."""
        daemons = chance.sample(self.pair.daemons, 2)
        if key is not None and chance.random() < 0.05:
            # Its answer is lost, whatever happens to it.
            with suppress(OSError), daemons[0].odc.asking(method, path, body, key=key, timeout_s=1):
                self.repeats["thrown away"] += 1
        turn = 0
        while True:
            daemon = daemons[turn % 2]
            turn += 1
            found = self._ask(daemon, method, path, body, key)
            if found is not None:
                return found
            if self._calm_at is not None and time.monotonic() > self._calm_at + PATIENCE_S:
                raise AssertionError(f"{path} {key} was never answered")
            time.sleep(PAUSE_S)

    def _ask(
        self, daemon: Daemon, method: str, path: str, body: object, key: str | None
    ) -> tuple[int, Any] | None:
        try:
            status, answer = daemon.odc.request(method, path, body, key=key, timeout_s=ASK_S)
        except TimeoutError:
            self.repeats["no answer in time"] += 1
            return None
        except (OSError, http.client.HTTPException, ValueError):
            self.repeats["no answer"] += 1
            return None
        if status in (429, 503):
            self.repeats[str(status)] += 1
            if not answer.get("hint"):
                self.wrong.append(f"{status} without a hint: {answer}")
            return None
        return status, answer
