"""The known state of members: which have pods, which started, which ended. Changes are reported to
the database as facts."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Set

from odcd.clock import Clock
from odcd.executor.kubernetes import status
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.naming import Attempt, Key, is_dev_server
from odcd.executor.kubernetes.objects import Pod
from odcd.records.dispatch import Dispatch, Fact


class Members:
    """Only keeps records: the modules that start and end members read it, and record their actions.

    A fact is only recorded if the API server confirms it.
    """

    def __init__(self, clock: Clock, ledger: Ledger) -> None:
        self._clock = clock
        self._ledger = ledger
        self._ranks: dict[Attempt, int] = {}
        """The number of members per attempt."""
        self.pods: dict[Attempt, dict[int, Pod]] = {}
        """As reported by the cluster, by rank."""
        self.knows = False
        """Whether the live members of the database were read. Only after that is it known which dev
        servers were ready before."""
        self.unstarted: set[Key] = set()
        """Members with a pod that has not started."""
        self.begun: set[Key] = set()
        self.over: set[Key] = set()
        """Members whose end was reported, including those that never had a pod."""
        self.stops: dict[Attempt, float] = {}
        """Attempts to end, with the grace period of each in seconds."""
        self.verdicts: dict[Key, Fact] = {}
        """The end of pods that are being removed, if their status will not show it."""
        self.removing: set[str] = set()
        """The uids of pods that are being removed."""
        self._trimmed_to: Set[Attempt] = frozenset()

    def pod(self, key: Key) -> Pod | None:
        return self.pods.get(key[:2], {}).get(key[2])

    def of(self, attempt: Attempt) -> range:
        """The ranks of an attempt; only rank 0 if its size is unknown."""
        return range(self._ranks.get(attempt, 1))

    def are_there(self, dispatch: Dispatch) -> bool:
        """Whether each member has a pod or has ended."""
        pods = self.pods.get(dispatch.key, {})
        return all(m.rank in pods or (*dispatch.key, m.rank) in self.over for m in dispatch.members)

    def are_over(self, attempt: Attempt) -> bool:
        """Whether all members with pods have ended."""
        return all((*attempt, rank) in self.over for rank in self.pods.get(attempt, {}))

    def expect(self, dispatch: Dispatch) -> None:
        self._ranks[dispatch.key] = len(dispatch.members)

    def expect_live(self, keys: Iterable[Key]) -> None:
        """Note live members from the database; other members of their attempts may have ended."""
        for job_id, attempt, rank in keys:
            known = self._ranks.get((job_id, attempt), 0)
            self._ranks[job_id, attempt] = max(known, rank + 1)

    def see(self, pod: Pod, key: Key) -> Fact | None:
        """Record the status of a pod and report changes. If the pod can never start and must be
        removed, return that fact."""
        self.pods.setdefault(key[:2], {})[key[2]] = pod
        seen = status.read_pod(pod, key, self._clock.now())
        if seen.begun is not None:
            self.unstarted.discard(key)
            if key not in self.begun:
                self.begun.add(key)
                self._ledger.report(seen.begun)
        if seen.end is not None:
            self.unstarted.discard(key)
            if key not in self.over:
                end = seen.end
                if key[:2] not in self.stops:
                    end = status.by_delete(pod, end)
                self.end(key, self.verdicts.pop(key, end))
        elif seen.begun is None and not (
            is_dev_server(pod) and (key in self.begun or not self.knows)
        ):
            if seen.hopeless is not None and pod.metadata.deletion_timestamp is None:
                return seen.hopeless
            self.unstarted.add(key)
        return None

    def forget(self, pod: Pod, key: Key) -> None:
        """Record that a pod is gone, and report how it ended unless that was reported before."""
        self.unstarted.discard(key)
        self.removing.discard(pod.metadata.uid)
        pods = self.pods.get(key[:2], {})
        pods.pop(key[2], None)
        if not pods:
            self.pods.pop(key[:2], None)
        if key in self.over:
            return
        now = self._clock.now()
        # A pod that could not start counts as that, however it was removed.
        fact = self.verdicts.pop(key, None)
        if fact is None and not (is_dev_server(pod) and key in self.begun):
            fact = status.read_pod(pod, key, now).hopeless
        if fact is None and key[:2] in self.stops and key in self.begun:
            fact = Fact(
                job_id=key[0], attempt=key[1], rank=key[2], kind="exited", at=now,
                signal=signal.SIGTERM,
            )  # fmt: skip
        self.end(key, fact or status.vanished(pod, key, now, begun=key in self.begun))

    def end(self, key: Key, fact: Fact) -> None:
        """Record that a member has ended, and how."""
        self.over.add(key)
        self._ledger.report(fact)

    def trim(self, live: Set[Attempt]) -> None:
        """Forget all attempts except these and those of the last call. An attempt is thus only
        forgotten after it was missing from database and cluster for so long that older orders have
        arrived."""
        live, self._trimmed_to = live | self._trimmed_to, live
        for known in (self._ranks, self.stops):
            for attempt in [a for a in known if a not in live]:
                del known[attempt]
        for keys in (self.begun, self.over):
            keys -= {key for key in keys if key[:2] not in live}
        for key in [key for key in self.verdicts if key[:2] not in live]:
            del self.verdicts[key]
