"""The start phases of dev servers, and restarts of their containers, for the database and for
users."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from odcd.clock import Clock
from odcd.executor.kubernetes import pod_state, status
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import MEMBERS, Key
from odcd.executor.kubernetes.objects import Event, Pod
from odcd.executor.kubernetes.pod_phase import read_phase
from odcd.records.dispatch import DevServerPhase, Fact

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Progress:
    def __init__(
        self, members: Members, ledger: Ledger, clock: Clock, on_oom: Callable[[Key, Fact], None]
    ) -> None:
        """on_oom: called each time that a dev server ran out of memory and runs again."""
        self._members = members
        self._ledger = ledger
        self._clock = clock
        self._on_oom = on_oom
        self._news: dict[str, Event] = {}
        """The last event of each pod, by its uid."""
        self._keys: dict[str, Key] = {}
        self._reported: dict[Key, tuple[str, str]] = {}
        self._ends: dict[Key, datetime] = {}
        """When the container last ended before a restart that was reported."""

    def see(self, pod: Pod, key: Key) -> None:
        """Call this after Members.see()."""
        self._keys[pod.metadata.uid] = key
        if key in self._members.over or pod.metadata.deletion_timestamp is not None:
            return
        self._see_end(pod, key)
        if key in self._members.begun:
            if int(pod.metadata.annotations.get(MEMBERS, "1")) > 1:
                self._report(key, "gang_barrier", "it is ready and waits for the other members")
            return
        event = self._news.get(pod.metadata.uid)
        self._report(key, *read_phase(pod, (event.reason, event.message) if event else None))

    def _see_end(self, pod: Pod, key: Key) -> None:
        fact = status.restarted(pod, key)
        if (
            fact is None
            or not pod_state.is_running(pod)
            or fact.at <= self._ends.get(key, LONG_AGO)
        ):
            return
        self._ends[key] = fact.at
        self._ledger.report(fact)
        if fact.kind == "oom":
            self._on_oom(key, fact)

    def _report(self, key: Key, phase: DevServerPhase, message: str) -> None:
        if self._reported.get(key) == (phase, message):
            return
        self._reported[key] = (phase, message)
        self._ledger.report(
            Fact(
                job_id=key[0],
                attempt=key[1],
                rank=key[2],
                kind=phase,
                at=self._clock.now(),
                detail=message,
            )
        )

    def forget(self, pod: Pod, key: Key) -> None:
        self._keys.pop(pod.metadata.uid, None)
        self._reported.pop(key, None)
        self._ends.pop(key, None)

    def on_event(self, before: Event | None, after: Event | None) -> None:
        """An event was added or removed."""
        event = after or before
        assert event is not None
        uid = event.involved_object.uid
        known = self._news.get(uid)
        if after is None:
            if known is not None and known.key == event.key:
                del self._news[uid]
            return
        if known is not None and _at(known) > _at(after):
            return
        self._news[uid] = after
        key = self._keys.get(uid)
        pod = self._members.pod(key) if key else None
        if key is not None and pod is not None and pod.metadata.uid == uid:
            self.see(pod, key)


def _at(event: Event) -> datetime:
    """In whole seconds, because kubelet reports whole seconds, unlike the scheduler."""
    at = event.last_timestamp or event.event_time or event.metadata.creation_timestamp or LONG_AGO
    return at.replace(microsecond=0)
