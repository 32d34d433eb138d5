"""Public SSH keys of GitHub users, as <GitHub>/<name>.keys lists them.

A key that its user has taken back must not enter for long: GitHub is asked each time, save that one
answer serves for KEPT_S. Only when it does not answer, what it said within STALE_S stands in.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import re
from collections import OrderedDict
from typing import NamedTuple, Protocol

from odcd.clock import Clock
from odcd.errors import BadRequest, KeysUnavailable, UnknownUser
from odcd.outbound import OutboundFailed, OutboundHttp

log = logging.getLogger(__name__)

NAME = re.compile(r"(?=.{1,39}$)[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
TYPES = frozenset(
    {
        "ssh-ed25519",
        "ssh-rsa",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
    }
)
"""Key types that OpenSSH accepts in authorized_keys, without the obsolete ssh-dss."""
ANSWER_TIMEOUT_S = 10.0
MAX_BYTES = 256 * 1024
MAX_KEY_CHARS = 16_384
KEPT_S = 30.0
STALE_S = 3600.0
KEPT_USERS = 2_000


class Keys(Protocol):
    """Where keys of users come from."""

    async def of(self, user: str) -> list[str]:
        """All keys of a GitHub user, each a line of authorized_keys; at least one.

        Raises BadRequest for what is no user's name, and for a user without keys; UnknownUser;
        KeysUnavailable when GitHub cannot be asked.
        """
        ...

    async def close(self) -> None: ...


class _Kept(NamedTuple):
    at_s: float
    lines: list[str]


class GithubKeys:
    """Implements Keys. url: of GitHub, or of a server that answers as it does."""

    def __init__(
        self, url: str, clock: Clock, *, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> None:  # fmt: skip
        self._clock = clock
        # Keys come from the server that the operator named, never from where it redirects.
        self._http = OutboundHttp(
            url.rstrip("/"), timeout_s=timeout_s, max_bytes=MAX_BYTES, use_proxy=True
        )
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._tasks: dict[str, asyncio.Task[list[str]]] = {}

    async def of(self, user: str) -> list[str]:
        check_name(user)
        name = user.lower()
        kept = self._kept.get(name)
        if kept is not None and self._clock.monotonic() - kept.at_s < KEPT_S:
            return list(kept.lines)
        task = self._tasks.get(name)
        if task is None:
            # Not in a TaskGroup: all who ask for this user share it, and its error.
            task = asyncio.create_task(self._ask(user), name="github-keys")
            self._tasks[name] = task
            task.add_done_callback(lambda done: self._forget(name, done))
        try:
            # One who goes away leaves it to the others.
            lines = await asyncio.shield(task)
        except KeysUnavailable as error:
            if kept is None or self._clock.monotonic() - kept.at_s > STALE_S:
                raise
            log.warning("github.stale", extra={"github_user": user, "why": error.message})
            return list(kept.lines)
        except (UnknownUser, BadRequest):
            self._kept.pop(name, None)
            raise
        self._kept[name] = _Kept(self._clock.monotonic(), lines)
        self._kept.move_to_end(name)
        while len(self._kept) > KEPT_USERS:
            self._kept.popitem(last=False)
        return list(lines)

    async def close(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()
        await self._http.close()

    def _forget(self, name: str, done: asyncio.Task[list[str]]) -> None:
        self._tasks.pop(name, None)
        if not done.cancelled():
            done.exception()  # seen, also when all who asked have gone

    async def _ask(self, user: str) -> list[str]:
        try:
            answer = await self._http.get(f"/{user}.keys")
        except OutboundFailed as error:
            raise _unavailable(user, f"it {error}") from error
        if answer.status == 404:
            raise UnknownUser(
                f'GitHub has no user "{user}"',
                "Check the name. Set your own with: odcctl config set github_user NAME",
            )
        if answer.status != 200:
            raise _unavailable(user, f"it answered with HTTP status {answer.status}")
        return _lines(user, answer.body)


def check_name(user: str) -> None:
    """Raises BadRequest."""
    if not NAME.fullmatch(user):
        raise BadRequest(
            f'"{user[:60]}" is not a valid GitHub user name',
            "A name has 1 to 39 letters, digits and single hyphens.",
        )


def _lines(user: str, body: bytes) -> list[str]:
    text = body.decode("ascii", "replace")
    given = [line for line in text.splitlines() if line.strip()]
    found = list(dict.fromkeys(key for line in given if (key := key_of(line)) is not None))
    if found:
        if len(found) < len(given):
            log.info("github.left_out", extra={"github_user": user, "lines": len(given)})
        return found
    if given:
        raise _unavailable(user, "its answer has no SSH key that OpenSSH accepts")
    raise BadRequest(
        f'GitHub\'s user "{user}" has no SSH keys',
        "Add one at https://github.com/settings/keys, and try again.",
    )


def key_of(line: str) -> str | None:
    """Type and key of a line of authorized_keys, without its comment; None: it has options, or is
    no key."""
    fields = line.split()
    if len(fields) < 2 or fields[0] not in TYPES or len(fields[1]) > MAX_KEY_CHARS:
        return None
    try:
        blob = base64.b64decode(fields[1], validate=True)
    except (binascii.Error, ValueError):
        return None
    # The key begins with its own type, as a string: four bytes of length, then the text.
    name = fields[0].encode()
    if not blob.startswith(len(name).to_bytes(4, "big") + name) or len(blob) < len(name) + 36:
        return None
    return f"{fields[0]} {fields[1]}"


def _unavailable(user: str, why: str) -> KeysUnavailable:
    return KeysUnavailable(
        f'the SSH keys of GitHub\'s user "{user}" cannot be fetched now: {why}',
        "Nothing was changed. Try again in a moment.",
    )
