"""Shows the end of the existing output, then new output, so that no one has to read a gigabyte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from odcd.api.http.streaming import Begun

KEPT_BYTES = 128 * 1024
QUIET_S = 0.1
"""Existing output arrives without a pause of this length."""
LONGEST_S = 1.0
"""Output without such a pause is shown at this interval, because some jobs never pause."""
CUT = b"(...)\n"


async def tail(pieces: AsyncGenerator[bytes] | Begun) -> AsyncGenerator[bytes]:
    """Pieces that arrive at once are existing output: yield the last KEPT_BYTES of it, from the
    start of a line. Later pieces are yielded as they arrive."""
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
