"""Reports facts about members to the daemon: at once, and again until they are acknowledged."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

from odcd.runner.files import Files
from odcd.runner.members import Member

REPEAT_S = 15.0
"""Facts that were not acknowledged are reported again after this time."""
SYNC_AFTER_S = 1.0
"""Exits that were not acknowledged are synced after this time. Normally the database has them
sooner."""
SYNCED_AT_ONCE = 50


class Facts:
    def __init__(self, files: Files) -> None:
        self.send: Callable[[list[dict[str, Any]]], None] = _drop
        """Sends facts to the daemon, if one is connected; set by the server."""
        self._files = files
        self._news: list[dict[str, Any]] = []

    def report(self, member: Member, fact: dict[str, Any]) -> None:
        member.facts[fact["kind"]] = fact
        member.reported_at = time.monotonic()
        self._news.append(fact)

    def send_news(self) -> None:
        if self._news:
            news, self._news = self._news, []
            self.send(news)

    def send_all(self, members: list[Member]) -> None:
        """Report all facts that were not acknowledged, to a daemon that has just connected."""
        self._news = [fact for member in members for fact in member.facts.values()]
        self.send_news()

    def look_after(self, members: list[Member]) -> None:
        """Once a second: repeat facts that were not acknowledged, and sync exits that have waited
        long."""
        now = time.monotonic()
        waiting = [member for member in members if member.facts]
        for member in waiting:
            if now - member.reported_at > REPEAT_S:
                member.reported_at = now
                self._news += member.facts.values()
        unsynced = [
            m for m in waiting if not m.live and not m.synced and now - m.reported_at > SYNC_AFTER_S
        ]
        for member in unsynced[:SYNCED_AT_ONCE]:
            member.synced = True
            with contextlib.suppress(OSError):
                fd = os.open(self._files.path(member.key), os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fdatasync(fd)
                finally:
                    os.close(fd)


def _drop(facts: list[dict[str, Any]]) -> None:
    """Without a daemon, facts are dropped. They are reported again until they are acknowledged."""
