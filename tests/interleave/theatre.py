"""A scene is set up once; programs are then played on it in many orders, each from its start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.interleave.photo import FINGERPRINT, Photo
from tests.interleave.programs import Program
from tests.interleave.promises import Promises
from tests.interleave.rest import Rest
from tests.interleave.stage import Played, Stage
from tests.interleave.world import World
from tests.support.builders.jobs import Queue, a_cluster
from tests.support.harness.database import Sql

Choose = Callable[[int], int]


class Theatre:
    """rolled_back: SQLSTATEs of transactions that had to be run again, over all schedules."""

    def __init__(self, dsn: str) -> None:
        self.sql = Sql(dsn)
        self.stage = Stage(dsn)
        self._nothing = Photo(self.sql, "nothing")
        self._nothing.take()
        self._scene = Photo(self.sql, "scene")
        self.clear()

    def clear(self) -> None:
        """As if nothing had ever happened."""
        self._nothing.restore()
        self.sql.execute("vacuum analyze")
        self.queue = Queue(self.sql)
        self.world = World()
        self.schedules = 0
        self._rested: set[str] = set()
        self.passes_rolled_back: Counter[str] = Counter()
        self.others_rolled_back: Counter[str] = Counter()

    def close(self) -> None:
        self.stage.close()
        self.sql.close()

    @contextmanager
    def scene(self) -> Iterator[Queue]:
        """Two nodes of 8 H100 and one of 4 L4, and what the block adds by the queue and world."""
        a_cluster(self.sql, h100=2, l4=1)
        yield self.queue
        self._scene.take()
        self._rested = set()

    def play(self, programs: Sequence[Program], choose: Choose, known: int = 0) -> Played:
        self._scene.restore()
        self.schedules += 1
        if self.schedules % 200 == 0:
            self.sql.execute("vacuum")
        world = self.world.copy()
        played = self.stage.play(world, programs, choose, Promises(), known)
        self.passes_rolled_back += played.rolled_back(leads=True)
        self.others_rolled_back += played.rolled_back(leads=False)
        if played.cut:
            return played
        end = f"{self.sql.value(FINGERPRINT)} {world.now} {world.tasks}"
        if end not in self._rested:
            try:
                Rest(self.sql, world).check()
            except AssertionError as error:
                error.add_note("steps: " + " ".join(played.steps))
                raise
            self._rested.add(end)
        return played

    def play_all(self, *programs: Program, limit: int | None = None) -> int:
        """Run all orders of these programs' steps, or at most this many; returns how many there
        were. An order is cut short when it reaches a state, without open transactions, from which
        another order continued."""
        self.stage.seen = set()
        prefix: list[int] = []
        count = 0
        while True:
            ahead = iter(prefix)
            choices = self.play(programs, lambda _options, a=ahead: next(a, 0), len(prefix)).choices
            count += 1
            while choices and choices[-1][0] == choices[-1][1] - 1:
                choices.pop()
            if not choices or count == limit:
                self.stage.seen = None
                return count
            prefix = [choice for choice, _ in choices]
            prefix[-1] += 1

    def no_rollback(self) -> None:
        assert self.passes_rolled_back == {}, "statements of the leader were rolled back"
        assert self.others_rolled_back == {}, "statements of others were rolled back"


def chosen(numbers: Sequence[int]) -> Choose:
    """Choices from drawn numbers; after they are used up, the first session that can continue."""
    ahead = iter(numbers)
    return lambda options: next(ahead, 0) % options
