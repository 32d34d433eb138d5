"""A semaphore whose users take turns: the waiting statements of one delay no other."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque


class FairSlots:
    def __init__(self, count: int) -> None:
        self._free = count
        self._served = ""
        """The user who got the last slot."""
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """By user, the one who waits longest first."""

    async def acquire(self, user: str) -> None:
        if self.take(user):
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            else:
                self._leave(user, turn)
            raise

    def take(self, user: str) -> bool:
        """Take a slot if one is free: then no one waits."""
        if self._free <= 0:
            return False
        self._free -= 1
        self._served = user
        return True

    def release(self) -> None:
        self._free += 1
        while self._free > 0 and self._waiting:
            user = next((one for one in self._waiting if one != self._served), self._served)
            turns = self._waiting.pop(user)
            turn = turns.popleft()
            if turns:
                self._waiting[user] = turns
            if not turn.done():
                self._free -= 1
                self._served = user
                turn.set_result(None)

    def _leave(self, user: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(user)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[user]
