"""Read users' contexts in separate processes, which have limits and can be killed.

A few hundred bytes can keep Python's tarfile busy for minutes, or make it allocate a terabyte. In
the daemon, that would block every request.
"""

from __future__ import annotations

import asyncio
import json

from odcd.builds import unpack
from odcd.builds.context import AGAIN, DOCKERFILE, Context, bad_name
from odcd.database.slots import Slots
from odcd.errors import TooLarge, refusal

AT_ONCE = 2
WAITING_PER_USER = 4
PATIENCE_S = 60.0
LIMIT_S = 30.0
"""Wall-clock time; odcd.builds.unpack limits CPU time and memory."""
HARD = "Remove unusual entries and very long paths, or list them in a .dockerignore."


class Reader:
    def __init__(self, *, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s
        self._slots = Slots(
            at_once=AT_ONCE, per_user=1, per_endpoint=AT_ONCE, waiting=WAITING_PER_USER,
            patience_s=PATIENCE_S,
        )  # fmt: skip

    async def read(self, sent: bytes, dockerfile: str) -> Context:
        """odcd.builds.context.read_context, one at a time for each user.

        Raises BadRequest; TooLarge, also when it exceeds the limits; TooManyRequests or
        DatabaseBusy when too many wait.
        """
        if not DOCKERFILE.fullmatch(dockerfile):
            raise bad_name(dockerfile)
        async with self._slots.hold():
            return await self._read(sent, dockerfile)

    async def _read(self, sent: bytes, dockerfile: str) -> Context:
        child = unpack.fork(dockerfile)
        talk = asyncio.create_task(asyncio.to_thread(child.talk, sent))
        try:
            async with asyncio.timeout(self._limit_s):
                answer = await asyncio.shield(talk)
        except TimeoutError:
            answer = None
        finally:
            if not talk.done():
                child.kill()
                await asyncio.wait([talk])
        if answer is None:
            raise TooLarge("the context takes too much time or memory to unpack", HARD)
        return _context(answer)


def _context(answer: bytes) -> Context:
    line, _, packed = answer.partition(b"\n")
    head: dict[str, str] = json.loads(line)
    if "code" in head:
        raise refusal(head["code"], head["message"], head["hint"] or AGAIN)
    return Context(digest=head["digest"], packed=packed)
