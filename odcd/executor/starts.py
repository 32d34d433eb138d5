"""Dispatches on their way to the runner, in messages of bounded size.

Users choose arguments, scripts and names, so a dispatch can be large, and many start at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from odcd.executor.link import Link, RunnerRefused
from odcd.runner import protocol

log = logging.getLogger(__name__)

START_AT_ONCE = 500
MESSAGE_BYTES = 8 * 1024 * 1024
"""The size of a message, unless a single dispatch or text is larger."""
MAX_DISPATCH_BYTES = 64 * 1024 * 1024
"""The limit of one dispatch. Its arguments take 6 MiB at most as JSON; only thousands of members
come near the limit."""
PIECE_CHARS = 256 * 1024
"""The part of a text that is encoded in one call: other threads wait meanwhile."""

TRIES = 3
"""How often texts are sent. The runner may drop them again for the texts of other starts."""

NOTHING = "#!/bin/false\n"
NO_ENVIRONMENT = "{}"


class Sent:
    """A dispatch that was sent. waiting: the ranks that the runner has reported nothing about."""

    def __init__(self, dispatch: dict[str, Any], texts: Mapping[str, str]) -> None:
        """texts: content by digest of its script and its environment, among others."""
        self.dispatch = dispatch
        self.texts = {name: texts[name] for name in (dispatch["script"], dispatch["environment"])}
        self.key: tuple[int, int] = dispatch["job"], dispatch["attempt"]
        environment = dispatch.get("env", {})
        self.facts = {
            "job_id": dispatch["job"],
            "user": environment.get("SLURM_JOB_USER") or dispatch["uid"],
            "node": environment.get("SLURM_JOB_NODELIST", ""),
        }
        """The job in the log."""
        self.waiting: set[int] = {member["rank"] for member in dispatch["members"]}

    def refuse(self, why: str) -> None:
        """Make the runner report it as failed. See refusal_of()."""
        log.warning("start.refused", extra={**self.facts, "why": why})
        self.texts = refusal_texts()
        self.dispatch = refusal_of(self.dispatch, self.waiting, why)


def refusal_texts() -> dict[str, str]:
    return {_digest(text): text for text in (NOTHING, NO_ENVIRONMENT)}


def refusal_of(
    dispatch: Mapping[str, Any], ranks: Iterable[int], why: str, *, grace_s: float = 0.0
) -> dict[str, Any]:
    """A dispatch that the runner reports as failed to start, for the reason given, until that is
    acknowledged. An earlier runner fails to open its output, whose path is the reason."""
    never = {"path": f"/dev/null/{why}", "truncate": False, "append": False}
    parts = [
        {"rank": rank, "env": {}, "stdin": None, "stdout": never, "stderr": None, "shared": False,
         "limits": None}
        for rank in sorted(ranks)
    ]  # fmt: skip
    kept = ("job", "attempt", "uid", "gid", "umask", "started_at")
    return {name: dispatch[name] for name in kept} | {
        "refusal": why, "work_dir": "/", "script": _digest(NOTHING),
        "environment": _digest(NO_ENVIRONMENT), "env": {}, "args": [], "ends_at": None,
        "grace_s": grace_s, "signal": None, "spool": False, "pty": False, "members": parts,
    }  # fmt: skip


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def send(link: Link, sent: Iterable[Sent]) -> None:
    """Make the runner take them all. Raises RunnerDown, LeadershipLost."""
    left = deque(sent)
    while left:
        # In a thread, as encoding 8 MiB takes long; one message at a time is kept.
        batch, dispatches = await asyncio.to_thread(_take, left)
        try:
            await _send(link, batch, dispatches)
        except RunnerRefused as error:
            await _send_singly(link, batch, error)


async def _send_singly(link: Link, batch: Sequence[Sent], error: RunnerRefused) -> None:
    """The runner refuses one dispatch of the batch: start the others, and let that one fail."""
    for one in batch:
        why = error.message
        if len(batch) > 1:
            try:
                await _send(link, [one], await asyncio.to_thread(_encode, one))
                continue
            except RunnerRefused as again:
                why = again.message
        one.refuse(why)
        try:
            await _send(link, [one], await asyncio.to_thread(_encode, one))
        except RunnerRefused as again:
            log.error("start.lost", extra={**one.facts, "why": again.message})


def _take(left: deque[Sent]) -> tuple[list[Sent], bytes]:
    """Take as many as one message has room for; return them, and their dispatches as JSON. Texts
    count by their size in memory: the runner must have room for all texts of a message."""
    batch: list[Sent] = []
    parts: list[bytes] = []
    digests: set[str] = set()
    size = 0
    while left and len(batch) < START_AT_ONCE:
        one = left[0]
        part = _encode(one)
        new = one.texts.keys() - digests
        size += len(part) + sum(sys.getsizeof(one.texts[digest]) for digest in new)
        if batch and size > MESSAGE_BYTES:
            break
        batch.append(left.popleft())
        parts.append(part)
        digests |= new
    return batch, b",".join(parts)


def _encode(one: Sent) -> bytes:
    part = protocol.encode_part(one.dispatch)
    if len(part) <= MAX_DISPATCH_BYTES:
        return part
    one.refuse(f"the data for its processes has {len(part)} bytes, more than {MAX_DISPATCH_BYTES}")
    return protocol.encode_part(one.dispatch)


async def _send(link: Link, batch: Sequence[Sent], dispatches: bytes) -> None:
    """Send texts only if the runner lacks them, and then before the dispatches."""
    fields = {"dispatches": b"[%b]" % dispatches}
    need: list[str] = (await link.ask_encoded("start", fields)).get("need", [])
    for _ in range(TRIES):
        if not need:
            return
        every = {digest: text for one in batch for digest, text in one.texts.items()}
        lacking = deque((digest, every[digest]) for digest in need)
        while lacking:
            texts = await asyncio.to_thread(_take_texts, lacking)
            await link.ask_encoded("start", {"dispatches": b"[]", "texts": texts})
        need = (await link.ask_encoded("start", fields)).get("need", [])
    log.warning("start.lacks_texts", extra={"texts": len(need)})


def _take_texts(lacking: deque[tuple[str, str]]) -> bytes:
    """Take as many as one message has room for, and at least one; return them as a JSON object."""
    parts: list[bytes] = []
    size = 0
    while lacking and (not parts or size + len(lacking[0][1]) <= MESSAGE_BYTES):
        digest, text = lacking.popleft()
        parts.append(b"%b:%b" % (protocol.encode_part(digest), _encode_text(text)))
        size += len(parts[-1])
    return b"{%b}" % b",".join(parts)


def _encode_text(text: str) -> bytes:
    pieces = (
        protocol.encode_part(text[at : at + PIECE_CHARS])[1:-1]
        for at in range(0, len(text), PIECE_CHARS)
    )
    return b'"%b"' % b"".join(pieces)
