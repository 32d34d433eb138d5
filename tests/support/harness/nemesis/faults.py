"""Faults, drawn from one seed: pauses, kills, silent and slow networks, clock steps."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.support.harness.nemesis.link import BOTH
from tests.support.harness.nemesis.pair import Daemon, Pair
from tests.support.harness.nemesis.server import Server
from tests.support.harness.nemesis.watch import Beat, Watch

DECK = (
    ("pause", "leader"), ("pause", "leader"), ("pause", "follower"), ("pause", "both"),
    ("kill", "leader"), ("kill", "follower"), ("kill", "both"),
    ("silence", "leader"), ("silence", "leader"), ("silence", "both"),
    ("lose answers", "leader"), ("lose answers", "both"), ("lose requests", "leader"),
    ("slow", "leader"), ("reset", "leader"), ("reset", "both"),
    ("clock", "leader"), ("clock", "both"),
    ("crash", "postgres"), ("freeze", "postgres"),
)  # fmt: skip
KINDS = frozenset(kind for kind, _ in DECK)
CLOCK_S = (1.0, 30.0), (300.0, 10_800.0)
"""Steps that a leader may make, and steps after which it may not lead."""
SECOND = 0.3
"""The probability that a second fault comes with the first."""


@dataclass(frozen=True, slots=True)
class Fault:
    kind: str
    target: str
    after_s: float
    """From the start of the step."""
    for_s: float
    amount: float
    """The clock's step, the network's delay; the lot that says how a silence ends."""

    def __str__(self) -> str:
        by = {"clock": f" by {self.amount:+.0f} s", "slow": f" by {self.amount * 1000:.0f} ms"}
        return f"{self.kind} {self.target}{by.get(self.kind, '')} for {self.for_s:.1f} s"


@dataclass(frozen=True, slots=True)
class Step:
    calm_s: float
    faults: tuple[Fault, ...]


def draw(seed: int, lease_s: float, kinds: frozenset[str]) -> Iterator[Step]:
    """An endless sequence. Each kind comes once before any comes again. kinds: of the first
    faults."""
    chance = random.Random(f"{seed}/faults")
    while True:
        deck = [card for card in DECK if card[0] in kinds]
        chance.shuffle(deck)
        for kind, target in deck:
            faults = [_fault(chance, kind, target, 0.0, lease_s)]
            if chance.random() < SECOND:
                others = [card for card in DECK if card[0] != kind]
                if target == "postgres":
                    others = [card for card in others if card[1] != target]
                more = chance.choice(others)
                faults.append(_fault(chance, *more, chance.uniform(0, lease_s / 2), lease_s))
            yield Step(chance.uniform(0, lease_s / 2), tuple(faults))


def _fault(chance: random.Random, kind: str, target: str, after_s: float, lease_s: float) -> Fault:
    # In leases. Some do not cost the leader its term, most do.
    low, high = {
        "slow": (0.5, 1.5), "clock": (0.5, 1.5), "kill": (0.0, 0.5), "crash": (0.0, 0.5),
        "freeze": (0.1, 0.7), "reset": (0.0, 0.0),
    }.get(kind) or ((0.2, 1.0) if chance.random() < 0.3 else (1.5, 2.3))  # fmt: skip
    amount = {
        "clock": chance.choice([-1, 1]) * chance.uniform(*chance.choice(CLOCK_S)),
        "slow": chance.uniform(0.02, 0.3),
    }.get(kind, chance.random())
    return Fault(kind, target, after_s, lease_s * chance.uniform(low, high), amount)


@dataclass
class Nemesis:
    pair: Pair
    server: Server
    watch: Watch
    seed: int
    lease_s: float
    led_s: float
    """The longest time without a leader that is no defect."""
    only: frozenset[str]
    """The kinds of the first fault of each step."""
    say: Callable[[str], None]
    wrong: list[str] = field(default_factory=list)
    gaps: list[tuple[float, str]] = field(default_factory=list)
    """The duration without a leader, and the fault that caused it."""
    kinds: set[str] = field(default_factory=set)

    def run(self, for_s: float) -> None:
        begun = time.monotonic()
        for step in draw(self.seed, self.lease_s, self.only):
            if time.monotonic() - begun > for_s:
                return
            time.sleep(step.calm_s)
            self._take(step, begun)

    def _take(self, step: Step, begun: float) -> None:
        leader = self.pair.of_holder(self.watch.last.holder) or self.pair.daemons[0]
        at, term = time.monotonic(), self.watch.last.term
        what = " + ".join(map(str, step.faults))
        self.kinds |= {fault.kind for fault in step.faults}
        threads = [
            threading.Thread(target=self._happen, args=(fault, leader), daemon=True)
            for fault in step.faults
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ended = time.monotonic()
        self.pair.mend()
        led = self._wait_for_leader(ended)
        gap_s = led.at - ended
        # A leader that cannot lead is replaced by the other, if that one can.
        first = self.watch.first_after(at, above=term)
        if len(step.faults) == 1 and step.faults[0].target == "leader" and first is not None:
            gap_s = first.at - at
        self.gaps.append((gap_s, what))
        self.say(
            f"{at - begun:7.1f} s  leader {leader.name}: {what}; led after {gap_s:.1f} s, "
            f"term {term} to {led.term}"
        )
        if gap_s > self.led_s:
            self.wrong.append(f"no daemon led for {gap_s:.1f} s: {what}")

    def _wait_for_leader(self, since: float) -> Beat:
        while True:
            if beat := self.watch.first_after(since):
                return beat
            if time.monotonic() - since > 4 * self.led_s:
                raise AssertionError(f"no daemon leads\n{self.pair.log()}")
            time.sleep(0.05)

    # -- faults -------------------------------------------------------------------------------

    def _happen(self, fault: Fault, leader: Daemon) -> None:
        time.sleep(fault.after_s)
        try:
            if fault.target == "postgres":
                self._at_postgres(fault)
            else:
                self._at_daemons(fault, [
                    daemon for daemon in self.pair.daemons
                    if fault.target == "both" or (daemon is leader) == (fault.target == "leader")
                ])  # fmt: skip
        except Exception as error:
            self.wrong.append(f"{fault} failed: {type(error).__name__}: {error}")

    def _at_postgres(self, fault: Fault) -> None:
        if fault.kind == "crash":
            self.server.crash()
            time.sleep(fault.for_s)
            self.server.start()
        else:
            self.server.freeze()
            time.sleep(fault.for_s)
            self.server.thaw()

    def _at_daemons(self, fault: Fault, daemons: list[Daemon]) -> None:
        begin: dict[str, Callable[[Daemon], None]] = {
            "pause": Daemon.pause,
            "kill": Daemon.kill,
            "silence": lambda daemon: daemon.link.hold(*BOTH),
            "lose answers": lambda daemon: daemon.link.hold("down"),
            "lose requests": lambda daemon: daemon.link.hold("up"),
            "slow": lambda daemon: daemon.link.slow(fault.amount),
            "reset": lambda daemon: daemon.link.reset(),
            "clock": lambda daemon: daemon.step_clock(fault.amount),
        }
        for daemon in daemons:
            begin[fault.kind](daemon)
        time.sleep(fault.for_s)
        for daemon in daemons:
            self._end(fault, daemon)

    def _end(self, fault: Fault, daemon: Daemon) -> None:
        if fault.kind == "pause":
            daemon.resume()
        elif fault.kind == "kill":
            daemon.down = False
        elif fault.kind == "clock":
            daemon.step_clock(0.0)
        elif fault.kind != "reset":
            if fault.kind != "slow" and fault.amount < 0.3:
                # Networks forget connections on which nothing passed.
                daemon.link.reset()
            daemon.link.mend()
