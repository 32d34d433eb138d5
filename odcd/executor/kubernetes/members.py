"""What is known of members: which have pods, which began, which are over. What is new of it is told
to the database as facts."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Set

from odcd.clock import Clock
from odcd.executor.kubernetes import status
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.naming import Attempt, Key, is_box
from odcd.executor.kubernetes.objects import Pod
from odcd.records.dispatch import Dispatch, Fact


class Members:
    """Only notes: whoever starts and ends members reads it, and writes down what it has done.

    Only what the API server positively says becomes a fact.
    """

    def __init__(self, clock: Clock, ledger: Ledger) -> None:
        self._clock = clock
        self._ledger = ledger
        self._ranks: dict[Attempt, int] = {}
        """How many members an attempt has."""
        self.pods: dict[Attempt, dict[int, Pod]] = {}
        """As the cluster has them, by rank."""
        self.knows = False
        """What the database holds as live has been read: which dev servers were ready before is
        known since."""
        self.unstarted: set[Key] = set()
        """With a pod, which has not begun."""
        self.begun: set[Key] = set()
        self.over: set[Key] = set()
        """Those whose end is told; also of pods that never were."""
        self.stops: dict[Attempt, float] = {}
        """Attempts to end, with the grace of each in seconds."""
        self.verdicts: dict[Key, Fact] = {}
        """How pods that are being removed ended, where their status will not tell."""
        self.removing: set[str] = set()
        """The uids of pods whose removal is under way."""
        self._trimmed_to: Set[Attempt] = frozenset()

    def pod(self, key: Key) -> Pod | None:
        return self.pods.get(key[:2], {}).get(key[2])

    def of(self, attempt: Attempt) -> range:
        """The ranks of an attempt; of one that nobody has named, the first."""
        return range(self._ranks.get(attempt, 1))

    def are_there(self, dispatch: Dispatch) -> bool:
        """Each has a pod, or is over."""
        pods = self.pods.get(dispatch.key, {})
        return all(m.rank in pods or (*dispatch.key, m.rank) in self.over for m in dispatch.members)

    def are_over(self, attempt: Attempt) -> bool:
        """Are all that have pods?"""
        return all((*attempt, rank) in self.over for rank in self.pods.get(attempt, {}))

    def expect(self, dispatch: Dispatch) -> None:
        self._ranks[dispatch.key] = len(dispatch.members)

    def expect_live(self, keys: Iterable[Key]) -> None:
        """Members that the database has; of their attempts others may be over."""
        for job_id, attempt, rank in keys:
            known = self._ranks.get((job_id, attempt), 0)
            self._ranks[job_id, attempt] = max(known, rank + 1)

    def see(self, pod: Pod, key: Key) -> Fact | None:
        """Note what the status of a pod says, and tell what is new; why it will never start, if
        that is so: it is to be removed."""
        self.pods.setdefault(key[:2], {})[key[2]] = pod
        seen = status.read_pod(pod, key, self._clock.now())
        if seen.begun is not None:
            self.unstarted.discard(key)
            if key not in self.begun:
                self.begun.add(key)
                self._ledger.tell(seen.begun)
        if seen.end is not None:
            self.unstarted.discard(key)
            if key not in self.over:
                end = seen.end
                if key[:2] not in self.stops:
                    end = status.by_delete(pod, end)
                self.end(key, self.verdicts.pop(key, end))
        elif seen.begun is None and not (is_box(pod) and (key in self.begun or not self.knows)):
            if seen.hopeless is not None and pod.metadata.deletion_timestamp is None:
                return seen.hopeless
            self.unstarted.add(key)
        return None

    def forget(self, pod: Pod, key: Key) -> None:
        """A pod is gone; how it ended is told, unless it was before."""
        self.unstarted.discard(key)
        self.removing.discard(pod.metadata.uid)
        pods = self.pods.get(key[:2], {})
        pods.pop(key[2], None)
        if not pods:
            self.pods.pop(key[:2], None)
        if key in self.over:
            return
        now = self._clock.now()
        # A pod that was hopeless is so however it went.
        fact = self.verdicts.pop(key, None)
        if fact is None and not (is_box(pod) and key in self.begun):
            fact = status.read_pod(pod, key, now).hopeless
        if fact is None and key[:2] in self.stops and key in self.begun:
            fact = Fact(
                job_id=key[0], attempt=key[1], rank=key[2], kind="exited", at=now,
                signal=signal.SIGTERM,
            )  # fmt: skip
        self.end(key, fact or status.vanished(pod, key, now, begun=key in self.begun))

    def end(self, key: Key, fact: Fact) -> None:
        """It is over, and this is how."""
        self.over.add(key)
        self._ledger.tell(fact)

    def trim(self, live: Set[Attempt]) -> None:
        """Forget all but these, and those of the last time: what is neither in the database nor in
        the cluster, and so long that an order read before its attempt ended has arrived."""
        live, self._trimmed_to = live | self._trimmed_to, live
        for known in (self._ranks, self.stops):
            for attempt in [a for a in known if a not in live]:
                del known[attempt]
        for keys in (self.begun, self.over):
            keys -= {key for key in keys if key[:2] not in live}
        for key in [key for key in self.verdicts if key[:2] not in live]:
            del self.verdicts[key]
