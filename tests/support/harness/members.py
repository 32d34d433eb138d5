"""The pods of jobs as a watch reports them, and the rule that a member has at most one live pod."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from dataclasses import dataclass

from tests.support.harness.controlplane.api import Manifest

Key = tuple[int, int, int]
"""Job, attempt, rank."""
OVER = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Pod:
    key: Key
    namespace: str
    name: str
    node: str
    alive: bool


class Members:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: dict[str, Pod] = {}
        self._alive: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
        self._begun: set[str] = set()
        self._ran: dict[Key, str] = {}
        self._created = 0
        self._first = self._last = 0.0
        self._largest = 0
        self.violations: list[str] = []

    def record(self, at: float, kind: str, found: Manifest) -> None:
        """For a Watch."""
        labels, uid = found["metadata"]["labels"], found["metadata"]["uid"]
        job, attempt, rank = (int(labels[f"odc.dev/{n}"]) for n in ("job-id", "attempt", "rank"))
        over = kind == "DELETED" or found["status"].get("phase") in OVER
        with self._lock:
            if uid not in self._pods:
                self._created += 1
                self._first = self._first or at
            if found["status"].get("phase") == "Running" and uid not in self._begun:
                self._begun.add(uid)
                self._last = at
                if self._ran.setdefault((job, attempt, rank), uid) != uid:
                    self.violations.append(f"job {job} ran twice: attempt {attempt} rank {rank}")
            self._pods[uid] = Pod(
                (job, attempt, rank), found["metadata"]["namespace"], found["metadata"]["name"],
                found["spec"].get("nodeName", ""), not over,
            )  # fmt: skip
            alive = self._alive[job, rank]
            if over:
                alive.discard(uid)
            elif uid not in alive:
                alive.add(uid)
                if len(alive) > 1:
                    pods = ", ".join(f"{self._pods[one].name} ({one})" for one in sorted(alive))
                    self.violations.append(f"job {job} has two live pods for rank {rank}: {pods}")
            if kind == "DELETED":
                del self._pods[uid]
            self._largest = max(self._largest, len(self._pods))

    def pods(self) -> list[Pod]:
        with self._lock:
            return list(self._pods.values())

    def alive(self) -> set[tuple[int, int, int, str]]:
        return {(*pod.key, pod.node) for pod in self.pods() if pod.alive}

    def some(self, chance: random.Random) -> Pod | None:
        """One that is alive and on a node."""
        found = [pod for pod in self.pods() if pod.alive and pod.node]
        return chance.choice(found) if found else None

    def rate(self) -> float:
        """Pods started per second, from the first created to the last that started."""
        return len(self._begun) / (self._last - self._first) if self._begun else 0.0

    def counts(self) -> dict[str, int]:
        with self._lock:
            return {"pods created": self._created, "pods started": len(self._begun)}

    def summary(self) -> str:
        return (
            f"{self._created:,} created, {len(self._begun):,} of them ran, at most "
            f"{self._largest:,} at a time, {len(self.violations)} live at the same time as "
            "another pod "
            "of their member"
        )
