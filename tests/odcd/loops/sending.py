"""Runs the sender of mails against a database and a mail server: python -m … DSN PORT. Killed by
tests."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime, timedelta

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.loops.notifications import Mails
from odcd.notify.mail import Mailer
from odcd.notify.settings import NotifySettings
from odcd.stores.notifications import NotificationStore


class Later(SystemClock):
    """A clock that is ahead, so that claims of others have ended."""

    def __init__(self, ahead: timedelta) -> None:
        super().__init__()
        self._ahead = ahead

    def now(self) -> datetime:
        return super().now() + self._ahead


def settings(port: int, **fields: object) -> NotifySettings:
    base = {"smtp_host": "127.0.0.1", "smtp_port": port, "smtp_tls": "none",
            "smtp_from": "odc@example.org"}  # fmt: skip
    return NotifySettings(**{**base, **fields})  # type: ignore[arg-type]


def a_sender(
    database: Database, port: int, *, ahead_s: float = 0, term: int = 0, **fields: object
) -> Mails:
    return Mails(
        term, NotificationStore(database), Mailer(settings(port, **fields)),
        Later(timedelta(seconds=ahead_s)), per_minute=10**9, leads=lambda: True,
        pause_s=(0.01, 0.05),
    )  # fmt: skip


async def main(dsn: str, port: int) -> None:
    async with Database(dsn, size=2) as database:
        await a_sender(database, port).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
