"""The end of what is there already, then what comes: nobody reads the gigabyte before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from odcd.api.http.streaming import Begun

KEPT_BYTES = 128 * 1024
QUIET_S = 0.1
"""What is there already comes without a break as long as this."""
LONGEST_S = 1.0
"""What has no such break is shown so often nevertheless: there are jobs that never pause."""
CUT = b"(...)\n"


async def tail(pieces: AsyncGenerator[bytes] | Begun) -> AsyncGenerator[bytes]:
    """Pieces that come at once are the past: of them the last KEPT_BYTES, from the begin of a line;
    all that comes later as it comes."""
    kept, cut, past = bytearray(), False, True
    loop = asyncio.get_running_loop()
    until_s = loop.time() + LONGEST_S
    coming = asyncio.ensure_future(anext(pieces, None))
    try:
        while True:
            await asyncio.wait([coming], timeout=QUIET_S if past else None)
            if not coming.done():
                past = False
                if kept:
                    yield _end(kept, cut)
                    kept = bytearray()
                continue
            piece = coming.result()
            if piece is None:
                break
            coming = asyncio.ensure_future(anext(pieces, None))
            if not past:
                yield piece
                continue
            kept += piece
            if len(kept) > 2 * KEPT_BYTES:
                cut = True
                del kept[:-KEPT_BYTES]
            if kept and loop.time() >= until_s:
                yield _end(kept, cut)
                kept, cut, until_s = bytearray(), False, loop.time() + LONGEST_S
        if kept:
            yield _end(kept, cut)
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
        await pieces.aclose()


def _end(kept: bytearray, cut: bool) -> bytes:
    if len(kept) > KEPT_BYTES:
        cut = True
        del kept[:-KEPT_BYTES]
    if not cut:
        return bytes(kept)
    return CUT + bytes(kept.partition(b"\n")[2] or kept)
