"""Send requests over blocking sockets, with odcctl's settings, and repeat those that may be."""

from __future__ import annotations

import time
from typing import TypeVar

import msgspec

from odc.calls import Request
from odc.errors import OdcError, of_failure
from odc.retries import Retries
from odcctl import __version__
from odcctl.exits import Failure
from odcctl.http.address import Server, find_server, parse_address
from odcctl.http.client import Client as HttpClient
from odcctl.http.wire import Answer, LostAnswer

AGENT = {"User-Agent": f"odcctl/{__version__} (odc.Client)"}
RETRY_FOR_S = 60.0
OUTAGE_S = 600.0
"""Waiting and following continue after an outage of at most this length."""

T = TypeVar("T")


def server_of(address: str | None, token: str | None) -> Server:
    """The server and key that odcctl would use. Raises WrongSettings."""
    try:
        if address is not None and token is not None:
            return Server([parse_address(address)], token)
        found = find_server(address)
    except Failure as error:
        raise of_failure(error) from error
    return Server(found.addresses, token or found.token)


def decoded(request: Request[T], body: bytes) -> T:
    """Raises OdcError: the answer is not what this version of the client expects."""
    kind = request.operation.answer
    if kind is bytes or not body:
        return body  # pyright: ignore[reportReturnType]
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise OdcError(
            f"the answer to {request.operation.id} is not as expected: {error}",
            "Install the version of odc that the daemon has; `odcctl --version` prints this one.",
        ) from error


class Transport:
    def __init__(self, server: Server, retry_for_s: float, outage_s: float) -> None:
        self._http = HttpClient(*server)
        self._retry_for_s = retry_for_s
        self._outage_s = outage_s
        self._reached = False

    @property
    def is_local(self) -> bool:
        """Whether the daemon is on this machine: it is reached by a Unix socket."""
        return self._http.addresses[0].path is not None

    def send(self, request: Request[T]) -> T:
        """Raises OdcError."""
        retries = self.retries(request)
        while True:
            try:
                return decoded(request, self._answer(request, request.silence_s).body())
            except (Failure, LostAnswer) as error:
                time.sleep(retries.pause_after(error))

    def stream(self, request: Request[T], silence_s: float | None = None) -> Answer:
        """Send a request once; its body is read as it arrives. silence_s: how long the daemon may
        send nothing; None: forever. Raises odcctl's Failure, and LostAnswer."""
        return self._answer(request, silence_s)

    def retries(self, request: Request[T]) -> Retries:
        for_s = self._outage_s if request.waits else self._retry_for_s
        return Retries(request.operation.repeats, for_s, reached=self._reached)

    def _answer(self, request: Request[T], silence_s: float | None) -> Answer:
        answer = self._http.stream(
            request.operation.method, request.target, body=request.body,
            headers={**AGENT, **request.headers}, timeout_s=silence_s,
        )  # fmt: skip
        self._reached = True
        return answer
