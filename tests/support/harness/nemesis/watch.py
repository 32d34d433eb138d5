"""Looks at the database directly, past all links: who leads, since when, and whether the books
balance."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

from odcd.errors import OdcError
from tests.support.harness.database import Sql
from tests.support.harness.nemesis.server import Server

LOOK_S = 0.05
BOOKS_EVERY = 20


@dataclass(frozen=True, slots=True)
class Beat:
    """The last observed act of a leader."""

    at: float
    term: int
    beat: int
    holder: str | None


@dataclass
class Watch:
    server: Server
    beats: list[Beat] = field(default_factory=list)
    """Each differs from the one before; the last one is the newest."""
    wrong: list[str] = field(default_factory=list)
    """The results of check_books during the run."""
    looks: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    @property
    def last(self) -> Beat:
        return self.beats[-1]

    def first_after(self, moment: float, *, above: int = 0) -> Beat | None:
        """The first act of a leader after that time, with a term above this one."""
        later = (beat for beat in self.beats[:] if beat.at > moment and beat.term > above)
        return next(later, None)

    def _run(self) -> None:
        while not self._over.is_set():
            # PostgreSQL is down or has stopped: try again.
            with suppress(OdcError, OSError, TimeoutError), self.server.sql() as sql:
                while not self._over.wait(LOOK_S):
                    self._look(sql)
            self._over.wait(LOOK_S)

    def _look(self, sql: Sql) -> None:
        row = sql.row("select term, beat, holder from odc.term")
        seen = row["term"], row["beat"], row["holder"]
        if not self.beats or (self.last.term, self.last.beat, self.last.holder) != seen:
            self.beats.append(Beat(time.monotonic(), *seen))
        self.looks += 1
        if self.looks % BOOKS_EVERY == 0:
            for text in sql.values("select * from odc.check_books()"):
                if len(self.wrong) < 20:
                    self.wrong.append(text)
