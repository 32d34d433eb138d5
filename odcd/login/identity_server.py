"""The servers that know who a user is: AWS STS and GitHub."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from odcd.errors import IdentityDown
from odcd.outbound import Address, Answer, OutboundFailed, OutboundHttp

TIMEOUT_S = 5.0
MAX_BYTES = 64 * 1024


class IdentityServer:
    """name: of the server, for error messages. context: the certificates to trust."""

    def __init__(
        self, address: Address, name: str, *, context: ssl.SSLContext, timeout_s: float = TIMEOUT_S
    ) -> None:
        self.address = address
        self._name = name
        self._http = OutboundHttp(
            str(address), timeout_s=timeout_s, max_bytes=MAX_BYTES, context=context
        )

    async def get(self, target: str, headers: Mapping[str, str]) -> Answer:
        """target: path and query as they are sent. Raises IdentityDown."""
        try:
            return await self._http.get(target, headers)
        except OutboundFailed as error:
            raise self.down(str(error)) from error

    def down(self, what: str) -> IdentityDown:
        return IdentityDown(f"{self._name} ({self.address}) {what}", "Try again in a moment.")

    async def close(self) -> None:
        await self._http.close()
