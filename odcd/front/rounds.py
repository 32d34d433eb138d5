"""Let the clients take turns: each of them begins a few requests per round of the event loop.

A client with hundreds of connections can send as many requests at once. If all of them began in one
round, the requests of other clients would wait for all of them, several times each.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque

PER_ROUND = 8
"""Requests of one client that begin in one round."""

Client = int | str
"""A user of this machine, or a network."""


class Rounds:
    def __init__(self, per_round: int = PER_ROUND) -> None:
        self._per_round = per_round
        self._begun: Counter[Client] = Counter()
        """In this round."""
        self._waiting: dict[Client, deque[asyncio.Future[None]]] = {}
        self._ending = False

    async def begin(self, client: Client) -> None:
        """Return in a round in which the client may begin one more request."""
        loop = asyncio.get_running_loop()
        if not self._ending:
            self._ending = True
            loop.call_soon(self._end)
        if client not in self._waiting and self._begun[client] < self._per_round:
            self._begun[client] += 1
            return
        turn = loop.create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        await turn

    def _end(self) -> None:
        """End this round, and begin the next one."""
        self._begun.clear()
        for client in [*self._waiting]:
            turns = self._waiting[client]
            while turns and self._begun[client] < self._per_round:
                turn = turns.popleft()
                if not turn.done():
                    self._begun[client] += 1
                    turn.set_result(None)
            if not turns:
                del self._waiting[client]
        self._ending = bool(self._begun)
        if self._ending:
            asyncio.get_running_loop().call_soon(self._end)
