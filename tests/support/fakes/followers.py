"""A cluster in which no log is followed: each is read when its member ends."""

from __future__ import annotations

from odcd.executor.kubernetes.naming import Key


class NotFollowed:
    def begin(self, key: Key, namespace: str) -> None: ...
    def note_end(self, key: Key) -> None: ...
    def forget(self, key: Key) -> None: ...

    async def checkpoint(self, key: Key) -> bool:
        return False

    async def finish(self, key: Key, timeout_s: float) -> bool:
        return False
