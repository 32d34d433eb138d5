"""Lists the contents of a disk before its pod is ended, so that users can see them without a dev
server. If the listing fails, the end is delayed only briefly, and never prevented."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from odcd.errors import OdcError, RunnerDown
from odcd.executor.kubernetes import pod_state
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.launch import JOB
from odcd.executor.kubernetes.naming import Key, has_disk, log_facts
from odcd.executor.kubernetes.objects import Pod

log = logging.getLogger(__name__)

LIST_S, STORE_S = 15.0, 5.0
"""Together, the maximum delay of an end."""
AT_ONCE = 16
"""A limit for many simultaneous ends, which need connections themselves."""
MAX_BYTES = 256 * 1024
MAX_WRITTEN_BYTES = MAX_BYTES + 16 * 1024
CUT = "[there were more]"

OnContents = Callable[[int, int, str | None, int | None], Awaitable[None]]
"""Job, attempt, the listing, bytes in use; None: unknown."""


class Contents:
    def __init__(self, cluster: Cluster, on_contents: OnContents) -> None:
        self._cluster = cluster
        self._on_contents = on_contents
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def keep(self, pod: Pod, key: Key) -> None:
        """List the disk of a running pod; does nothing for other pods."""
        going = pod.metadata.deletion_timestamp is not None
        if not has_disk(pod) or going or not pod_state.is_running(pod):
            return
        text, used_bytes = read(await self._list(pod))
        try:
            async with asyncio.timeout(STORE_S):
                await self._on_contents(key[0], key[1], text, used_bytes)
        except (OdcError, TimeoutError) as error:
            log.warning("kubernetes.contents_lost", extra={**log_facts(pod), "why": str(error)})

    async def _list(self, pod: Pod) -> bytes:
        """Return the output that arrived in time."""
        written = bytearray()
        trouble: object = None
        try:
            async with asyncio.timeout(LIST_S), self._turns:
                trouble = await self._cluster.execute(
                    pod.metadata.namespace, pod.metadata.name, pod.spec.containers[0].name,
                    ["/bin/sh", f"{JOB}/contents"], LIST_S,
                    into=written, max_bytes=MAX_WRITTEN_BYTES,
                )  # fmt: skip
        except (RunnerDown, ApiRefused) as error:
            trouble = error
        except TimeoutError:
            trouble = "it took too long"
        if trouble is not None:
            log.warning("kubernetes.not_listed", extra={**log_facts(pod), "why": str(trouble)})
            if written:
                written += f"\n{CUT}".encode()
        return bytes(written)


def read(written: bytes) -> tuple[str | None, int | None]:
    """Parse the program's output, which is the used KiB and the tree, to the listing and the bytes
    in use."""
    first, _, rest = written.partition(b"\n")
    used_bytes = int(first) * 1024 if first.isdigit() and len(first) < 15 else None
    lines = rest.decode(errors="replace").split("\n")
    # Users choose the names, so replace characters that could move a cursor.
    text = "\n".join("".join(c if c.isprintable() else "?" for c in one) for one in lines).strip()
    if not text:
        return None, used_bytes
    kept = text.encode()
    if len(kept) <= MAX_BYTES:
        return text, used_bytes
    whole = kept[: MAX_BYTES - len(CUT) - 1].rpartition(b"\n")[0]
    return f"{whole.decode(errors='ignore')}\n{CUT}", used_bytes
