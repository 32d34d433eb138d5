"""The known state of members: which have pods, which started, which ended. Changes are reported to
the database as facts."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Set

from odcd.clock import Clock
from odcd.executor.kubernetes import status
from odcd.executor.kubernetes.image_pulls import Denials
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.losses import disrupted_by, doomed_by
from odcd.executor.kubernetes.naming import MEMBERS, Attempt, Key, is_dev_server
from odcd.executor.kubernetes.objects import Pod
from odcd.records.dispatch import Dispatch, Fact


class Members:
    """Only keeps records: the modules that start and end members read it, and record their actions.

    A fact is only recorded if the API server confirms it.
    """

    def __init__(self, clock: Clock, ledger: Ledger, denials: Denials | None = None) -> None:
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
        self.moving: set[Attempt] = set()
        """Of these, the attempts whose jobs may run again elsewhere."""
        self.verdicts: dict[Key, Fact] = {}
        """The end of pods that are being removed, if their status will not show it."""
        self.removing: set[str] = set()
        """The uids of pods that are being removed."""
        self.forced: set[str] = set()
        """Of these, the pods that are removed without the confirmation of their nodes."""
        self.doomed: set[Key] = set()
        """Members that something other than odc is ending."""
        self.denials = denials or Denials()
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
                if key[:2] not in self.stops or key in self.doomed:
                    end = status.by_delete(pod, end)
                self.end(key, self.verdicts.pop(key, end))
            return None
        self._see_doom(pod, key)
        if seen.begun is None and not (
            is_dev_server(pod) and (key in self.begun or not self.knows)
        ):
            if (hopeless := self.hopeless(pod, key, seen)) is not None:
                return hopeless
            self.unstarted.add(key)
        return None

    def hopeless(self, pod: Pod, key: Key, seen: status.Seen) -> Fact | None:
        """The fact that a pod can never start and must be removed, if this is known."""
        now_s = self._clock.monotonic()
        self.denials.note(pod, key, now_s)
        if pod.metadata.deletion_timestamp is not None:
            return None
        if seen.denied and not self.denials.persists(key, now_s):
            return None
        return seen.hopeless

    def _see_doom(self, pod: Pod, key: Key) -> None:
        ours = key[:2] in self.stops or pod.metadata.uid in self.removing or key in self.verdicts
        if ours or key in self.doomed or key in self.over:
            return
        if (why := doomed_by(pod)) is not None:
            self.doomed.add(key)
            self.doom(pod, key, why)

    def doom(self, pod: Pod, key: Key, why: str) -> None:
        """Report that a member of a gang is about to be lost."""
        if key not in self.over and int(pod.metadata.annotations.get(MEMBERS, "1")) > 1:
            self._ledger.report(
                Fact(
                    job_id=key[0], attempt=key[1], rank=key[2], kind="doomed",
                    at=self._clock.now(), detail=why,
                )
            )  # fmt: skip

    def forget(self, pod: Pod, key: Key) -> None:
        """Record that a pod is gone, and report how it ended unless that was reported before."""
        self.unstarted.discard(key)
        self.denials.forget(key)
        self.removing.discard(pod.metadata.uid)
        forced = pod.metadata.uid in self.forced
        self.forced.discard(pod.metadata.uid)
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
            seen = status.read_pod(pod, key, now)
            fact = None if seen.denied else seen.hopeless
        lost = forced or key in self.doomed or disrupted_by(pod) is not None
        if fact is None and not lost and key[:2] in self.stops and key in self.begun:
            fact = Fact(
                job_id=key[0], attempt=key[1], rank=key[2], kind="exited", at=now,
                signal=signal.SIGTERM,
            )  # fmt: skip
        begun = key in self.begun
        self.end(key, fact or status.vanished(pod, key, now, begun=begun, forced=forced))

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
        self.denials.trim(live)
        self.moving &= live
        for keys in (self.begun, self.over, self.doomed):
            keys -= {key for key in keys if key[:2] not in live}
        for key in [key for key in self.verdicts if key[:2] not in live]:
            del self.verdicts[key]
