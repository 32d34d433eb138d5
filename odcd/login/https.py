"""One GET over HTTPS to a configured server: no redirects, with a timeout and a limit on the
answer."""

from __future__ import annotations

import asyncio
import codecs
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from odcd.errors import BadRequest, IdentityDown
from odcd.http_answer import Answer, BadAnswer, read_answer

# The first name lookup loads this codec, when we may no longer be able to read root's Python.
codecs.lookup("idna")

TIMEOUT_S = 5.0
AT_ONCE = 8
MAX_BYTES = 64 * 1024
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PLACE = re.compile(
    rf"https://({_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:]+\])(?::([0-9]{{1,5}}))?(/[!-~]*)?", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The address for requests. authority: the host as in a request, with the port unless it is
    443; path: prepended to every request path, without a slash at its end."""

    host: str
    port: int
    authority: str
    path: str = ""

    def __str__(self) -> str:
        return f"https://{self.authority}{self.path}"


def parse_place(text: str, setting: str) -> Place:
    """Raises BadRequest, naming the setting."""
    found = _PLACE.fullmatch(text)
    port = int(found[2] or 443) if found else 0
    if found is None or not 0 < port < 65536 or re.search(r"[?#]", found[3] or ""):
        raise BadRequest(
            f'{setting}="{text}" is not an address',
            "Write https://HOST or https://HOST:PORT, in lower case.",
        )
    authority = found[1] if port == 443 else f"{found[1]}:{port}"
    return Place(
        host=found[1].strip("[]"),
        port=port,
        authority=authority,
        path=(found[3] or "").rstrip("/"),
    )


class Https:
    """name: of the server, for error messages."""

    def __init__(
        self,
        place: Place,
        name: str,
        *,
        context: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.place = place
        self._name = name
        self._context = context or ssl.create_default_context()
        self._timeout_s = timeout_s
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def get(self, target: str, headers: Mapping[str, str]) -> Answer:
        """target: path and query as they are sent. Raises IdentityDown."""
        try:
            async with asyncio.timeout(self._timeout_s), self._turns:
                return await self._get(target, headers)
        except TimeoutError:
            raise self.down(f"did not answer within {self._timeout_s:g} s") from None
        except ssl.SSLError as error:
            raise self.down(f"cannot be trusted: {error.reason or error}") from error
        except OSError as error:
            raise self.down(f"cannot be reached: {error.strerror or error}") from error
        except BadAnswer as error:
            raise self.down(str(error)) from error

    def down(self, what: str) -> IdentityDown:
        return IdentityDown(f"{self._name} ({self.place}) {what}", "Try again in a moment.")

    async def _get(self, target: str, headers: Mapping[str, str]) -> Answer:
        lines = [f"GET {self.place.path}{target} HTTP/1.1", f"Host: {self.place.authority}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += ["User-Agent: odcd", "Connection: close"]
        reader, writer = await asyncio.open_connection(
            self.place.host, self.place.port, ssl=self._context
        )
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode("ascii"))
            return await read_answer(reader, MAX_BYTES)
        finally:
            writer.transport.abort()
