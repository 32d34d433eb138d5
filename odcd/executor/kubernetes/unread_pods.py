"""Pods that odc cannot read, although the API server sent them: users decide much of their status.

Such a pod is read again later. If it still cannot be read, it is removed and its job ends with the
reason: otherwise the job would hold its nodes without an end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from odcd.clock import Clock
from odcd.executor.kubernetes.api_retries import insist
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import Key
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.isolation import Isolation, IsolationWatch
from odcd.records.dispatch import Fact

MAX_TRIES = 2


class UnreadPods:
    def __init__(
        self, members: Members, pod_writer: PodWriter, background: Background, clock: Clock,
        watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        self._members = members
        self._pod_writer = pod_writer
        self._background = background
        self._clock = clock
        self._isolation = Isolation[Key]("pods", clock, watch)

    @contextmanager
    def guard(self, key: Key) -> Generator[None]:
        """Around the processing of a pod's change."""
        with self._isolation.guard(key, job_id=key[0]):
            yield

    def judge(self, read: Callable[[Key, Pod], None]) -> None:
        """Read pods again whose time has come, and give up those that fail again."""
        for key in self._isolation.due():
            pod = self._members.pod(key)
            if pod is None:
                self._end_gone(key)
                continue
            with self.guard(key):
                read(key, pod)
            if self._isolation.tries(key) >= MAX_TRIES:
                self._give_up(key, pod)

    def _end_gone(self, key: Key) -> None:
        """The pod is gone, and how it ended could not be read."""
        if key not in self._members.over:
            self._members.end(key, self._fact(key))
        self._isolation.clear(key)

    def _give_up(self, key: Key, pod: Pod) -> None:
        if key in self._members.over or key in self._members.verdicts:
            return
        # Reported once the pod is gone: until then it uses its node.
        self._members.verdicts[key] = self._fact(key)
        self._background.spawn(insist(self._clock, lambda: self._pod_writer.remove(pod, 0)))

    def _fact(self, key: Key) -> Fact:
        begun = key in self._members.begun
        return Fact(
            job_id=key[0], attempt=key[1], rank=key[2], at=self._clock.now(),
            kind="exited" if begun else "start_failed", exit_code=1 if begun else None,
            detail=f"odc could not read its pod: {self._isolation.why(key)}",
        )  # fmt: skip
