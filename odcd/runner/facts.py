"""What is to be told of members: at once, and again until it is acknowledged."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

from odcd.runner.files import Files
from odcd.runner.members import Member

REPEAT_S = 15.0
"""Facts that nobody acknowledged are told again after this."""
SYNC_AFTER_S = 1.0
"""Exits that nobody acknowledged are made durable after this; sooner, the database is."""
SYNCED_AT_ONCE = 50


class Facts:
    def __init__(self, files: Files) -> None:
        self.tell: Callable[[list[dict[str, Any]]], None] = _to_nobody
        """Sends facts to the daemon, if one listens; set by the server."""
        self._files = files
        self._news: list[dict[str, Any]] = []

    def report(self, member: Member, fact: dict[str, Any]) -> None:
        member.facts[fact["kind"]] = fact
        member.told_at = time.monotonic()
        self._news.append(fact)

    def tell_news(self) -> None:
        if self._news:
            news, self._news = self._news, []
            self.tell(news)

    def tell_all(self, members: list[Member]) -> None:
        """Everything not acknowledged, to a daemon that begins to listen."""
        self._news = [fact for member in members for fact in member.facts.values()]
        self.tell_news()

    def look_after(self, members: list[Member]) -> None:
        """Once a second: repeat what was not acknowledged, and sync exits that wait for long."""
        now = time.monotonic()
        waiting = [member for member in members if member.facts]
        for member in waiting:
            if now - member.told_at > REPEAT_S:
                member.told_at = now
                self._news += member.facts.values()
        unsynced = [
            m for m in waiting if not m.live and not m.synced and now - m.told_at > SYNC_AFTER_S
        ]
        for member in unsynced[:SYNCED_AT_ONCE]:
            member.synced = True
            with contextlib.suppress(OSError):
                fd = os.open(self._files.path(member.key), os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fdatasync(fd)
                finally:
                    os.close(fd)


def _to_nobody(facts: list[dict[str, Any]]) -> None:
    """What is not acknowledged is told again: dropping it loses nothing."""
