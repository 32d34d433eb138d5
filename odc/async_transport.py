"""Send requests from asyncio, with odcctl's settings, and repeat those that may be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

from odc.calls import Request
from odc.retries import Retries
from odc.transport import AGENT, decoded
from odcctl.exits import Failure
from odcctl.http.address import CONNECT_TIMEOUT_S, Address, Server, tls_context, unreachable
from odcctl.http.client import ANSWER_TIMEOUT_S, encode_body, refusal
from odcctl.http.client import Client as HttpClient
from odcctl.http.wire import Incoming, LostAnswer, encoded

PIECE = 262_144

T = TypeVar("T")


class AsyncAnswer:
    """An answer whose head has arrived."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silence_s: float | None
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._incoming = Incoming()
        self.silence_s = silence_s

    @property
    def status(self) -> int:
        return self._incoming.status

    @property
    def headers(self) -> dict[str, str]:
        return self._incoming.headers

    async def begin(self, sent: bytes) -> None:
        """Send the request and wait for the head of the answer. Raises LostAnswer."""
        try:
            self._writer.write(sent)
            while not self._incoming.has_head:
                await self._receive()
        except BaseException:
            self.close()
            raise

    async def read(self) -> bytes:
        """The next piece of the body; b"" at the end. Raises LostAnswer."""
        while not self._incoming.has_body and not self._incoming.is_whole:
            await self._receive()
        return self._incoming.take_body()

    async def body(self) -> bytes:
        try:
            return b"".join([piece async for piece in self])
        finally:
            self.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self.read():
            yield piece

    def close(self) -> None:
        self._writer.close()

    async def _receive(self) -> None:
        try:
            async with asyncio.timeout(self.silence_s):
                data = await self._reader.read(PIECE)
        except TimeoutError:
            raise LostAnswer("the daemon did not answer in time") from None
        except OSError as error:
            raise LostAnswer(str(error)) from error
        self._incoming.feed(data)


class AsyncTransport:
    def __init__(self, server: Server, retry_for_s: float, outage_s: float) -> None:
        # Only for its keys: reading, renewing and explaining them.
        self._http = HttpClient(*server)
        self._retry_for_s = retry_for_s
        self._outage_s = outage_s
        self._reached = False

    async def send(self, request: Request[T]) -> T:
        """Raises OdcError."""
        retries = self.retries(request)
        while True:
            try:
                answer = await self.stream(request, request.silence_s)
                return decoded(request, await answer.body())
            except (Failure, LostAnswer) as error:
                pause_s = retries.pause_after(error)
            await asyncio.sleep(pause_s)

    def retries(self, request: Request[T]) -> Retries:
        for_s = self._outage_s if request.waits else self._retry_for_s
        return Retries(request.operation.repeats, for_s, reached=self._reached)

    async def stream(self, request: Request[T], silence_s: float | None = None) -> AsyncAnswer:
        """Send a request once; its body is read as it arrives. silence_s: how long the daemon may
        send nothing; None: forever. Raises odcctl's Failure, and LostAnswer."""
        answer = await self._exchange(request, silence_s)
        if answer.status == 401 and await asyncio.to_thread(self._http.renew_key):
            answer.close()
            answer = await self._exchange(request, silence_s)
        if answer.status >= 400:
            refused = refusal(answer.status, answer.headers, await answer.body())
            raise self._http.explain(refused)
        self._reached = True
        return answer

    async def _exchange(self, request: Request[T], silence_s: float | None) -> AsyncAnswer:
        reader, writer, address = await self._connect()
        try:
            # Reading a key may mean to renew it, with requests of its own.
            known = address.path is not None or self._http.token is not None
            credentials = self._http.credentials
            key = credentials(address) if known else await asyncio.to_thread(credentials, address)
        except BaseException:
            writer.close()
            raise
        headers = {"Host": address.authority, **AGENT, **request.headers, **key}
        body = encode_body(request.body)
        answer = AsyncAnswer(reader, writer, silence_s or ANSWER_TIMEOUT_S)
        await answer.begin(encoded(request.operation.method, request.target, headers, body))
        answer.silence_s = silence_s
        return answer

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Address]:
        addresses, troubles = self._http.addresses, list[OSError]()
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    reader, writer = await _open(address)
            except OSError as error:  # TimeoutError, too
                troubles.append(error)
            else:
                self._http.addresses = [address]
                return reader, writer, address
        raise unreachable(addresses, troubles, ask_network=False)


async def _open(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if address.path is not None:
        return await asyncio.open_unix_connection(address.path)
    tls = tls_context() if address.tls else None
    return await asyncio.open_connection(address.host, address.port, ssl=tls)
