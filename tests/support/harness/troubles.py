"""Faults of a cluster and its daemons, drawn from a seed, and the jobs that each fault excuses."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.harness.controlplane.api import Refused
from tests.support.harness.controlplane.kwok import Kwok
from tests.support.harness.controlplane.nodes import lose_node, return_node, until_ready
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.proxy import FaultProxy
from tests.support.harness.members import Members
from tests.support.harness.served import Served, Site

MARGIN = timedelta(seconds=2)
SPOILT = {
    "share_409": 0.01, "share_429": 0.01, "share_500": 0.01, "share_lost": 0.01,
    "drop_watch_s": 20.0,
}  # fmt: skip
"""Faults on all requests of the daemons to the API server, active all the time."""


@dataclass
class Loss:
    """A node was lost."""

    node: str
    since: datetime
    until: datetime | None = None


@dataclass
class Faults:
    plane: ControlPlane
    kwok: Kwok
    proxy: FaultProxy
    site: Site
    daemons: list[Served]
    members: Members
    seed: int
    gap_s: tuple[float, float]
    """Between two faults, minimum and maximum."""
    pause_s: float
    """How long a leader is stopped."""
    losses: list[Loss] = field(default_factory=list)
    deleted: set[tuple[int, int]] = field(default_factory=set)
    """Attempts with a pod that was deleted by hand."""
    count: Counter[str] = field(default_factory=Counter)
    _later: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    _stopped: set[int] = field(default_factory=set)
    _failed: BaseException | None = None

    def __post_init__(self) -> None:
        self._chance = random.Random(f"{self.seed}/faults")
        self._lock = threading.Lock()

    @contextmanager
    def happening(self) -> Iterator[None]:
        """Within the block; on exit everything is repaired."""
        over = threading.Event()
        thread = threading.Thread(target=self._run, args=(over,), name="faults")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        self.check()

    def check(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _run(self, over: threading.Event) -> None:
        try:
            self._go_wrong(over)
            self._mend()
        except BaseException as error:
            self._failed = error

    def _go_wrong(self, over: threading.Event) -> None:
        self.proxy.rules(**SPOILT)
        kinds = self._kinds()
        bag: list[str] = []
        next_at = time.monotonic() + self._chance.uniform(*self.gap_s)
        while not over.wait(0.1):
            self._do_due()
            self._revive()
            if time.monotonic() < next_at:
                continue
            bag = bag or self._chance.sample(list(kinds), len(kinds))
            kind = bag.pop()
            # A request to the API server may hit its restart.
            with suppress(ConnectionError):
                self.count[kind] += bool(kinds[kind]())
            next_at = time.monotonic() + self._chance.uniform(*self.gap_s)

    def _kinds(self) -> Mapping[str, Callable[[], bool]]:
        return {
            "API server killed": self._kill_apiserver,
            "node lost": self._lose_node,
            "another node lost": self._lose_node,
            "pod deleted": lambda: self._delete_pod(0),
            "pod deleted with grace": lambda: self._delete_pod(30),
            "daemon killed": self._kill_daemon,
            "leader stopped": self._stop_leader,
            "connections cut": self._cut,
        }

    def _in(self, seconds: float, act: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + seconds, act))

    def _do_due(self, *, all_of_them: bool = False) -> None:
        now = time.monotonic()
        for due in sorted(self._later, key=lambda one: one[0]):
            if all_of_them or due[0] <= now:
                self._later.remove(due)
                due[1]()

    def remind(self) -> None:
        """A restarted KWOK sometimes misses pods of nodes whose leases it holds. A change of such a
        pod makes KWOK process it again, and odcd ignores the change."""
        for pod in self.members.pods():
            with suppress(Refused, ConnectionError):
                self.plane.api.patch(
                    f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}",
                    {"metadata": {"annotations": {"test.odc.dev/seen": str(time.monotonic())}}},
                )

    # -- the cluster ------------------------------------------------------------------------------

    def _kill_apiserver(self) -> bool:
        if not self.plane.apiserver.running:
            return False
        self.plane.kill_apiserver()
        time.sleep(self._chance.uniform(0.0, 4.0))
        self.plane.start_apiserver()
        self.kwok.restart()
        return True

    def _cut(self) -> bool:
        self.proxy.cut()
        return True

    def _lose_node(self) -> bool:
        pod = self.members.some(self._chance)
        away_s = self._chance.choice([2.0, 25.0])
        if pod is None or any(loss.node == pod.node and not loss.until for loss in self.losses):
            return False
        loss = Loss(pod.node, datetime.now(UTC))
        self.losses.append(loss)
        lose_node(self.plane.api, pod.node)
        self._in(away_s, lambda: self._return_node(loss))
        return True

    def _return_node(self, loss: Loss) -> None:
        try:
            return_node(self.plane.api, loss.node)
        except ConnectionError:
            self._in(1.0, lambda: self._return_node(loss))
        else:
            loss.until = datetime.now(UTC)

    def _delete_pod(self, grace_s: int) -> bool:
        pod = self.members.some(self._chance)
        if pod is None:
            return False
        self.deleted.add(pod.key[:2])
        try:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
            self.plane.api.delete(path, grace_s)
        except Refused as refused:
            if refused.code != 404:
                raise
            return False
        return True

    def _revive(self) -> None:
        """kube-scheduler exits when its cache of pods contradicts the API server after a restart of
        that server. A cluster starts it again, and so does this test."""
        for child in (self.plane.scheduler, self.plane.controllers):
            if not child.running:
                self.count[f"{Path(child.argv[0]).name} ended itself"] += 1
                child.start()

    # -- daemons ----------------------------------------------------------------------------------

    def _leader(self) -> Served | None:
        with self.site.sql() as sql:
            holder = sql.value("select holder from odc.term") or ""
        pid = holder.rpartition(":")[2]
        return next((one for one in self.daemons if one.running and str(one.pid) == pid), None)

    def _kill_daemon(self) -> bool:
        victim = (
            self._leader() if self._chance.random() < 0.7 else self._chance.choice(self.daemons)
        )
        if victim is None or not victim.running or victim.pid in self._stopped:
            return False
        victim.kill()
        self._in(self._chance.uniform(0.0, 3.0), victim.start)
        return True

    def _stop_leader(self) -> bool:
        leader = self._leader()
        if leader is None or self._stopped:
            return False
        pid = leader.pid
        self._stopped.add(pid)
        leader.pause()
        self._in(self.pause_s, lambda: self._continue(pid))
        return True

    def _continue(self, pid: int) -> None:
        self._stopped.discard(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    # -- afterwards -------------------------------------------------------------------------------

    def _mend(self) -> None:
        self.proxy.rules()
        while self._later:
            self._do_due(all_of_them=True)
            time.sleep(0.2)
        for daemon in self.daemons:
            if not daemon.running:
                daemon.start()
        self.plane.mend()
        until_ready(self.plane.api, {loss.node for loss in self.losses})

    def explain(self, attempt: Mapping[str, Any]) -> bool:
        """Whether a fault on its pods or nodes may have ended this attempt."""
        if (attempt["job_id"], attempt["attempt"]) in self.deleted:
            return True
        return any(
            loss.node in attempt["node_names"]
            and loss.since <= attempt["ended_at"] + MARGIN
            and (loss.until is None or attempt["started_at"] - MARGIN <= loss.until)
            for loss in self.losses
        )

    def summary(self) -> str:
        spoilt = {
            f"by the proxy: {rule}": number
            for rule, number in self.proxy.counts().items()
            if rule in SPOILT
        }
        counts = sorted({**self.count, **spoilt}.items())
        return ", ".join(f"{number} {kind}" for kind, number in counts) or "none"
