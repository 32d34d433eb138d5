"""HTTP requests to other servers: AWS STS, GitHub, Prometheus and webhooks.

Only this module and the Kubernetes executor import aiohttp, and only when the first request is sent
or load() is called: it costs a daemon without these servers 8 MB and a quarter of a second.
docs/decisions/0040 has the rules for requests.
"""

from __future__ import annotations

import asyncio
import codecs
import importlib
import ipaddress
import re
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odcd.errors import BadRequest

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult

AT_ONCE = 8
_LOOK_UPS = ThreadPoolExecutor(16, "odc-look-up")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_REST = r"(?::([0-9]{1,5}))?(/[!-~]*)?"
_HTTPS = re.compile(rf"(https)://({_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:]+\]){_REST}", re.ASCII)
_ANY = re.compile(rf"(https?)://([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\]){_REST}", re.ASCII)
_PORTS = {"http": 80, "https": 443}


def load() -> None:
    """Import what requests need. Call it before root is dropped: afterwards, root's Python may not
    be readable."""
    importlib.import_module("aiohttp")
    codecs.lookup("idna")  # of the first name lookup


class OutboundFailed(Exception):
    """The server cannot be reached, or its answer is invalid. str() completes a sentence whose
    subject is the server."""


class AddressRefused(OutboundFailed):
    """The server's address is not allowed. Nothing was sent."""


class AnswerTooLarge(OutboundFailed):
    """The answer exceeds the size limit."""


class HungUp(OutboundFailed):
    """The server closed the connection before its answer was complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """authority: the host as in a request, with the port unless it is the scheme's; path: prepended
    to every request path, without a slash at its end."""

    scheme: str
    authority: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def parse_address(text: str, setting: str, *, https_only: bool = True) -> Address:
    """https_only: the host must also be in lower case, as signatures have it. Raises BadRequest,
    naming the setting."""
    found = (_HTTPS if https_only else _ANY).fullmatch(text)
    default = _PORTS[found[1]] if found else 0
    port = int(found[3] or default) if found else 0
    if found is None or not 0 < port < 65536 or re.search(r"[?#]", found[4] or ""):
        raise BadRequest(
            # The error goes to a log, and the address may contain a password.
            f'{setting}="{re.sub("//.*@", "//...@", text)[:200]}" is not an address',
            "Write https://HOST or https://HOST:PORT, in lower case."
            if https_only
            else "Write http://HOST:9090 or https://HOST, with a path if it lies below one.",
        )
    return Address(
        scheme=found[1],
        authority=found[2] if port == default else f"{found[2]}:{port}",
        path=(found[4] or "").rstrip("/"),
    )


class OutboundHttp:
    """Requests to one server. close() ends its session.

    Each request is sent once, on a connection of its own: an answer on a reused one could be
    missing because the server had just closed it. Redirects and cookies are ignored.
    """

    def __init__(
        self, base: str, *, timeout_s: float, max_bytes: int, at_once: int = AT_ONCE,
        context: ssl.SSLContext | None = None, ca: Path | None = None, use_proxy: bool = False,
        allows: Callable[[str], bool] | None = None,
    ) -> None:  # fmt: skip
        """base: the server's URL, without a slash at its end. timeout_s: for a whole request.
        max_bytes: of an answer's body. at_once: more requests wait. context, ca: the certificates
        to trust, the second as a file; default the system's. use_proxy: use the proxies that the
        environment names (HTTPS_PROXY). allows: whether an IP address may be connected to; of a
        name, every address must be allowed, and the connection goes to one that was checked."""
        self._base = base
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._at_once = at_once
        self._context = context
        self._ca = ca
        self._use_proxy = use_proxy
        self._allows = allows
        self._session: aiohttp.ClientSession | None = None
        self._opening = asyncio.Lock()

    async def get(self, target: str, headers: Mapping[str, str] | None = None) -> Answer:
        """target: path and query as they are sent. Raises OutboundFailed."""
        return await self._request("GET", target, headers)

    async def post(
        self, target: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> Answer:
        """Raises OutboundFailed."""
        return await self._request("POST", target, headers, form)

    async def post_json(
        self, target: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Raises OutboundFailed."""
        headers = {"Content-Type": "application/json", **(headers or {})}
        return await self._request("POST", target, headers, body)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _request(
        self, method: str, target: str, headers: Mapping[str, str] | None,
        form: Mapping[str, str] | bytes | None = None,
    ) -> Answer:  # fmt: skip
        import aiohttp
        from yarl import URL

        # A signature may cover the target: nothing may be quoted differently.
        url = URL(self._base + target, encoded=True)
        host = url.host or ""
        if self._allows is not None and is_address(host) and not self._allows(host):
            raise AddressRefused(f"is at {host}, which is not allowed")
        try:
            async with asyncio.timeout(self._timeout_s):
                session = await self._open()
                async with session.request(
                    method, url, headers=headers, data=form, allow_redirects=False
                ) as response:
                    return Answer(status=response.status, body=await self._read(response))
        except TimeoutError:
            raise OutboundFailed(f"did not answer within {self._timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _failure(error) from error

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        if response.status == 101:
            raise OutboundFailed("sent an answer that is not HTTP")
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > self._max_bytes:
                raise AnswerTooLarge(f"answered with more than {_size(self._max_bytes)}")
        return bytes(body)

    async def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        async with self._opening:
            if self._session is None:
                if self._context is None and self._ca is not None:
                    self._context = await asyncio.to_thread(
                        ssl.create_default_context, cafile=str(self._ca)
                    )
                self._session = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(
                        ssl=self._context or True,
                        resolver=_resolver(self._allows),
                        limit=self._at_once,
                        force_close=True,
                    ),
                    headers={"User-Agent": "odcd", "Accept-Encoding": "identity"},
                    cookie_jar=aiohttp.DummyCookieJar(),
                    timeout=aiohttp.ClientTimeout(total=None),
                    auto_decompress=False,
                    trust_env=self._use_proxy,
                    middlewares=(_once,),
                )
            return self._session


async def look_up(
    host: str, port: int, family: socket.AddressFamily = socket.AF_UNSPEC
) -> Sequence[tuple[Any, ...]]:
    """As socket.getaddrinfo, in threads of its own: names that users choose may take long, and
    other work waits for the daemon's threads."""
    ask = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM)
    return await asyncio.get_running_loop().run_in_executor(_LOOK_UPS, ask)


def is_address(host: str) -> bool:
    """Whether it is an IP address, not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _resolver(allows: Callable[[str], bool] | None) -> AbstractResolver:
    import aiohttp

    class Checked(aiohttp.ThreadedResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            found: list[ResolveResult] = []
            for kind, _, proto, _, place in await look_up(host, port, family):
                at = str(place[0])
                if allows is not None and not allows(at):
                    raise AddressRefused(f"is at {at}, which is not allowed")
                found.append({
                    "hostname": host, "host": at, "port": int(place[1]), "family": kind,
                    "proto": proto, "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                })  # fmt: skip
            return found

    return aiohttp.ThreadedResolver() if allows is None else Checked()


async def _once(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """aiohttp would send a GET again after a lost connection. It does not know this exception."""
    import aiohttp

    try:
        return await send(request)
    except (aiohttp.ClientError, OSError) as error:
        raise _failure(error) from error


def _failure(error: Exception) -> OutboundFailed:
    import aiohttp

    if isinstance(error, aiohttp.ClientHttpProxyError):
        return OutboundFailed(f"cannot be reached: the proxy answered with status {error.status}")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    if isinstance(error, ssl.SSLError):
        return OutboundFailed(f"cannot be trusted: {error.reason or error}")
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError):
        return HungUp("closed the connection in the middle of its answer")
    if isinstance(error, aiohttp.ClientResponseError):
        return OutboundFailed("sent an answer that is not HTTP")
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return OutboundFailed(f"cannot be reached: {reason or type(error).__name__}")


def _size(size: int) -> str:
    return f"{size} bytes" if size % 1024 else f"{size // 1024} KiB"
