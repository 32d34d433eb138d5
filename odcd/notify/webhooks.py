"""Send notifications to users' webhooks: one POST of JSON that Slack and compatible services read.

Users choose the addresses, so a webhook must not reach what only odcd can: every address that its
name resolves to is checked, and the connection goes to one that was checked. Redirects are not
followed, and no proxy is used.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from odcd.errors import BadRequest, TooManyRequests
from odcd.notify.settings import Network
from odcd.notify.templates import Templates, one_line
from odcd.outbound import AddressRefused, OutboundFailed, OutboundHttp, is_address, look_up
from odcd.records.notification import Notification

TIMEOUT_S = 10.0
RESOLVE_S = 5.0
MAX_ANSWER_BYTES = 64 * 1024
MAX_URL_CHARS = 2000
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<target>/[!-\"$-~]*)?",
    re.ASCII,
)
_NUMBERS = re.compile(r"[0-9.]+")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
_RETRIED = (408, 425, 429)
HINT = (
    "A webhook must be at a public address, with https://. An operator can allow other networks "
    "with ODC_WEBHOOK_NETWORKS."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """of: "sent"; "retry": it may succeed later; "refused": it never will. why: for people."""

    of: Literal["sent", "retry", "refused"]
    why: str = ""


SENT = Outcome(of="sent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A parsed address."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def base(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


def parse_webhook(text: str) -> Webhook:
    """Raises BadRequest, without the address: it is often a secret."""
    found = _URL.fullmatch(text) if len(text) <= MAX_URL_CHARS else None
    port = int(found["port"] or (443 if found["scheme"] == "https" else 80)) if found else 0
    # 127.1 and 2130706433 are addresses for some libraries.
    odd = found is not None and _NUMBERS.fullmatch(found["host"]) and not is_address(found["host"])
    if found is None or odd or not 0 < port < 65536:
        raise BadRequest(
            "this is not the address of a webhook",
            "Write https://HOST/PATH, without a user, a password or a #.",
        )
    return Webhook(
        scheme=found["scheme"], host=found["host"], port=port, target=found["target"] or "/"
    )


def is_allowed(address: str, scheme: str, networks: Sequence[Network]) -> bool:
    """Whether a webhook may connect to this IP address. Addresses that contain an IPv4 address
    count as that one."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if found.teredo is not None:
            return False
        found = inner or found
    if any(found.version == network.version and found in network for network in networks):
        return True
    if isinstance(found, ipaddress.IPv6Address) and found not in _PUBLIC_V6:
        return False
    return scheme == "https" and found.is_global and not found.is_multicast


class Webhooks:
    def __init__(self, networks: Sequence[Network], templates: Templates) -> None:
        self._networks = networks
        self._templates = templates
        self._looking: set[int] = set()

    async def check(self, text: str, uid: int) -> None:
        """uid: who asks. Raises BadRequest if the address may not be used, TooManyRequests while an
        earlier name of the user is looked up. It is checked again when it is used."""
        hook = parse_webhook(text)
        name = hook.host.strip("[]")
        try:
            infos = await self._look_up(name, hook.port, uid)
        except (OSError, TimeoutError, UnicodeError):
            raise BadRequest(f"the webhook's host {name} cannot be resolved", HINT) from None
        for *_, place in infos:
            if not is_allowed(str(place[0]), hook.scheme, self._networks):
                where = name if name == place[0] else f"{name} ({place[0]})"
                raise BadRequest(f"a webhook at {where} is not allowed", HINT)

    async def _look_up(self, name: str, port: int, uid: int) -> Sequence[tuple[Any, ...]]:
        """Users choose names whose servers never answer, and a thread waits longer than we do.
        Raises TooManyRequests, OSError, TimeoutError or UnicodeError."""
        if uid in self._looking:
            raise TooManyRequests(
                "the host of your last webhook is still being looked up", "Try again in a moment."
            )
        self._looking.add(uid)
        looking = asyncio.create_task(look_up(name, port), name="look-up")

        def over(task: asyncio.Task[Sequence[tuple[Any, ...]]]) -> None:
            self._looking.discard(uid)
            if not task.cancelled():
                task.exception()  # read, because its waiter may have left

        looking.add_done_callback(over)
        async with asyncio.timeout(RESOLVE_S):
            return await asyncio.shield(looking)

    async def send(self, one: Notification) -> Outcome:
        """Try once. The outcome does not contain the address, because it is logged and stored."""
        if one.url is None:
            return Outcome(of="refused", why="the webhook was removed")
        try:
            hook = parse_webhook(one.url)
        except BadRequest as error:
            return Outcome(of="refused", why=error.message)
        client = OutboundHttp(
            hook.base, timeout_s=TIMEOUT_S, max_bytes=MAX_ANSWER_BYTES,
            allows=lambda address: is_allowed(address, hook.scheme, self._networks),
        )  # fmt: skip
        try:
            answer = await client.post_json(
                hook.target, body_of(one, self._templates), {"Idempotency-Key": one.key}
            )
        except AddressRefused as error:
            return Outcome(of="refused", why=f"{hook.host} {error}")
        except OutboundFailed as error:
            return Outcome(of="retry", why=f"{hook.host} {error}")
        finally:
            await client.close()
        if 200 <= answer.status < 300:
            return SENT
        again = answer.status in _RETRIED or answer.status >= 500
        return Outcome(
            of="retry" if again else "refused", why=f"{hook.host} answered {answer.status}"
        )


def body_of(one: Notification, templates: Templates) -> bytes:
    text = templates.render(one.kind, one.facts).subject
    # Slack's three signs: without this, the name of a job could mention everyone in a channel.
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    facts = {
        name: one_line(fact) if isinstance(fact, str) else fact for name, fact in one.facts.items()
    }
    return msgspec.json.encode(
        {
            "text": escaped,
            "odc": {"id": one.key, "event": one.kind, "job_id": one.job_id, **facts},
        }
    )
