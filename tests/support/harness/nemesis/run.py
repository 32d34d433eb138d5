"""One run from start to end."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from odcd.errors import OdcError
from tests.support.harness.database import make_home, sow
from tests.support.harness.nemesis import checks
from tests.support.harness.nemesis.clients import Clients
from tests.support.harness.nemesis.faults import KINDS, Nemesis
from tests.support.harness.nemesis.ledger import Ledger
from tests.support.harness.nemesis.pair import Pair
from tests.support.harness.nemesis.server import Server
from tests.support.harness.nemesis.watch import Watch

CLIENTS = 4
REST_S = 180.0
SHOWN = 40


@dataclass
class Run:
    seed: int
    for_s: float
    lease_s: float
    led_s: float
    only: frozenset[str]
    server: Server
    pair: Pair
    watch: Watch
    say: Callable[[str], None] = field(default=lambda line: print(line, flush=True))

    def run(self) -> list[str]:
        """The violations; empty if there were none."""
        self.say(f"\nseed {self.seed}, {self.for_s:.0f} s, lease {self.lease_s:.0f} s")
        self.pair.start()
        clients = Clients(self.pair, self.seed, CLIENTS, longest_s=2 * self.lease_s)
        nemesis = Nemesis(
            self.pair, self.server, self.watch, self.seed, self.lease_s, self.led_s, self.only,
            self.say,
        )  # fmt: skip
        clients.start()
        try:
            nemesis.run(self.for_s)
        finally:
            self.pair.mend()
            clients.calm()
            clients.join()
        calm_at = time.monotonic()
        wrong = [*nemesis.wrong, *clients.wrong, *self._rest()]
        self.say(f"at rest after {time.monotonic() - calm_at:.1f} s")
        wrong += self._check(clients)
        self._summary(nemesis, clients, wrong)
        return wrong

    def _rest(self) -> list[str]:
        """Wait until every job has ended. A long run on a slow machine leaves a long queue, so the
        limit is on the time in which no job ended."""
        live = "select job_id from odc.pending union all select job_id from odc.running"
        deadline = time.monotonic() + REST_S
        left: list[object] = []
        fewest: float = math.inf
        while time.monotonic() < deadline:
            with suppress(OdcError, OSError), self.server.sql() as sql:
                while (left := sql.values(live)) and time.monotonic() < deadline:
                    if len(left) < fewest:
                        fewest, deadline = len(left), time.monotonic() + REST_S
                    time.sleep(0.2)
                if not left:
                    return []
                waiting = sql.rows("select job_id, dependency::text, reason, held::text, begin_at, "
                                   "attempt from odc.pending")  # fmt: skip
                running = sql.rows("select job_id, attempt, state::text from odc.running")
                return [f"not at rest: {waiting}, {running}"]
        return [f"not at rest: {left}"]

    def _check(self, clients: Clients) -> list[str]:
        ledger = Ledger.read(self.pair.work)
        with self.server.sql() as sql:
            wrong = [
                *checks.check_times(sql),
                *checks.check_accepted(sql, clients.submissions, ledger),
                *checks.check_runs(sql, clients.submissions, ledger),
                *checks.check_allocations(sql),
                *checks.check_leaders(sql, self.pair),
                *checks.check_books(sql),
                *checks.check_counters(sql, clients.submissions, self.pair),
            ]
        wrong += ledger.wrong()
        wrong += [f"while it ran: {text}" for text in self.watch.wrong]
        for daemon in self.pair.daemons:
            wrong += daemon.died
            if "Traceback" in daemon.log.read_text(errors="replace"):
                wrong.append(f"daemon {daemon.name} logged a traceback:\n{_traceback(daemon.log)}")
        return wrong

    def _summary(self, nemesis: Nemesis, clients: Clients, wrong: list[str]) -> None:
        gaps = sorted(gap for gap, _ in nemesis.gaps)
        jobs = sum(one.tasks for one in clients.submissions)
        starts = {daemon.name: len(daemon.pids) for daemon in self.pair.daemons}
        self.say(
            f"seed {self.seed}: {len(gaps)} steps of {len(nemesis.kinds)} kinds, "
            f"{len(clients.submissions)} requests for {jobs} jobs, "
            f"repeated {dict(clients.repeats)}\n"
            f"starts of daemons {starts}, last term {self.watch.last.term}; without a leader: "
            f"median {gaps[len(gaps) // 2]:.1f} s, longest {max(nemesis.gaps)}"
        )
        for text in wrong[:SHOWN]:
            self.say(f"WRONG: {text}")


def _traceback(log: Path) -> str:
    text = log.read_text(errors="replace")
    at = text.index("Traceback")
    return text[max(0, at - 500) : at + 4000]


@contextmanager
def a_run(
    seed_home: Path, seed: int, for_s: float, lease_s: float, led_s: float,
    only: frozenset[str] = KINDS,
) -> Iterator[Run]:  # fmt: skip
    """All processes that the run started end here, by their ids."""
    folder = make_home()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        sow(seed_home, folder / "database")
        server = Server(folder / "database")
        stack.callback(server.close)
        server.start()
        server.record()
        pair = Pair(folder, server, lease_s)
        stack.callback(pair.close)
        watch = Watch(server)
        stack.callback(watch.close)
        watch.start()
        yield Run(seed, for_s, lease_s, led_s, only, server, pair, watch)
