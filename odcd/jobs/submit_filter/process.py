"""The daemon's side of the submit filter's processes: one request, one bounded answer."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from odcd.jobs.submit_filter import watcher
from odcd.jobs.submit_filter.target import Target

log = logging.getLogger(__name__)

MAX_ANSWER_BYTES = 8 * 1024 * 1024
STUCK_S = 5.0
"""A request without a report so long after its time limit has failed."""
READ_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    answer: bytes
    """JSON of the child, complete if why is None."""
    why: str | None
    """Why it failed, for a sentence that begins with the filter; None: it has not."""
    printed: str
    """The end of what it printed."""


class FilterProcess:
    """Construct it before any thread or event loop exists. Raises OSError."""

    def __init__(self, target: Target) -> None:
        self._control = watcher.start(target)

    def close(self) -> None:
        self._control.close()

    async def ask(self, parts: Sequence[bytes], limit_s: float) -> Reply:
        """Run the site's function on a request. A caller that is cancelled ends the child."""
        channel, child_end = socket.socketpair()
        report, keeper_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            for one in (channel, report):
                one.setblocking(False)
            try:
                order = json.dumps({"limit_s": limit_s}).encode()
                socket.send_fds(self._control, [order], [child_end.fileno(), keeper_end.fileno()])
            except OSError as error:
                log.error("submit_filter.gone", extra={"why": str(error)})
                return _failed("has lost its process; operators must restart odcd")
            finally:
                child_end.close()
                keeper_end.close()
            async with asyncio.timeout(limit_s + STUCK_S):
                return await self._exchange(channel, report, parts)
        except TimeoutError:
            return _failed(f"did not end within {limit_s:g} s, and could not be killed")
        finally:
            # The keeper notices that its end is closed, and ends the child.
            report.close()
            channel.close()

    async def _exchange(
        self, channel: socket.socket, report: socket.socket, parts: Sequence[bytes]
    ) -> Reply:
        sending = asyncio.create_task(_send(channel, parts), name="submit-filter-request")
        try:
            answer = await _read(channel)
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
        if len(answer) > MAX_ANSWER_BYTES:
            return _failed(f"answered with more than {MAX_ANSWER_BYTES // 1024**2} MiB")
        told = await asyncio.get_running_loop().sock_recv(report, 65536)
        if not told:
            log.error("submit_filter.killed")
            return _failed("was killed")
        outcome = json.loads(told)
        return Reply(answer=answer, why=outcome["why"], printed=outcome["printed"])


async def _send(channel: socket.socket, parts: Sequence[bytes]) -> None:
    loop = asyncio.get_running_loop()
    # A child that has ended reads nothing; its end is reported anyway.
    with suppress(OSError):
        for part in parts:
            await loop.sock_sendall(channel, part)
        channel.shutdown(socket.SHUT_WR)


async def _read(channel: socket.socket) -> bytes:
    """At most a little more than MAX_ANSWER_BYTES."""
    loop = asyncio.get_running_loop()
    found = bytearray()
    with suppress(ConnectionError):
        while len(found) <= MAX_ANSWER_BYTES:
            part = await loop.sock_recv(channel, READ_BYTES)
            if not part:
                break
            found += part
    return bytes(found)


def _failed(why: str) -> Reply:
    return Reply(answer=b"", why=why, printed="")
