"""The API client of all commands: requests, responses, and errors."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from odcctl import __version__
from odcctl.exits import Refused, Unreachable
from odcctl.http.address import Address, connect, warn_of_clear_text
from odcctl.http.kept_key import KeptKey
from odcctl.http.wire import Answer, LostAnswer, exchange

ANSWER_TIMEOUT_S = 120.0
RETRY_FOR_S = 60.0
"""How long a submit without an answer is repeated, with the same idempotency key."""

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~,:@")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

Params = Mapping[str, str | int | None]


class Reply(NamedTuple):
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def now_s(self) -> float:
        """The daemon's clock, in seconds since the epoch, to compare with times in the answer."""
        return _date(self.headers.get("date", "")) or time.time()


class Client:
    """token: the API key that the user gave. Without one, requests over TCP use the key that a
    login stored, unless keeps is False."""

    def __init__(
        self, addresses: Sequence[Address], token: str | None, *, keeps: bool = True
    ) -> None:
        self.addresses = list(addresses)
        self.token = token
        self._kept = KeptKey(post_login) if keeps and token is None else None
        self._warned = False

    def get(
        self, path: str, params: Params | None = None, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> Reply:
        return self._request("GET", path, params, timeout_s=timeout_s)

    def post(self, path: str, body: object) -> Reply:
        return self._request("POST", path, body=body)

    def upload(self, path: str, params: Params, data: bytes, media_type: str) -> Reply:
        """POST data that is not JSON."""
        try:
            return self.request(
                "POST", path, params, body=data, headers={"Content-Type": media_type}
            )
        except LostAnswer as error:
            raise _gone(error) from error

    def patch(self, path: str, body: object) -> Reply:
        return self._request("PATCH", path, body=body)

    def put(self, path: str, body: object) -> Reply:
        return self._request("PUT", path, body=body)

    def delete(self, path: str) -> Reply:
        return self._request("DELETE", path)

    def post_once(self, path: str, body: object) -> Reply:
        """POST a request that creates an object: exactly one, even if an answer is lost.

        While the daemon restarts or its database is unavailable, the request is repeated with the
        same idempotency key. A daemon that was never reached is reported at once.
        """
        key = {"Idempotency-Key": os.urandom(16).hex()}
        until = time.monotonic() + RETRY_FOR_S
        pause_s, sent = 0.1, False
        while True:
            late = time.monotonic() > until
            try:
                return self.request("POST", path, body=body, headers=key)
            except LostAnswer as error:
                if late:
                    raise _gone(error) from error
            except Unreachable:
                if late or not sent:
                    raise
            except Refused as refused:
                if late or refused.status != 503:
                    raise
            sent = True
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, 2.0)

    def request(
        self,
        method: str,
        path: str,
        params: Params | None = None,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> Reply:
        """Send a request and read its whole answer. Raises Refused, Unreachable, LostAnswer."""
        answer = self.stream(method, path, params, body=body, headers=headers, timeout_s=timeout_s)
        return Reply(answer.status, answer.headers, answer.body())

    def stream(
        self,
        method: str,
        path: str,
        params: Params | None = None,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Answer:
        """Send a request; return the answer before its body has arrived. body: JSON, or bytes that
        are sent unchanged, with a Content-Type among the headers. timeout_s: how long the server
        may be silent while the body is read."""
        sent = method, target(path, params), headers or {}, encode_body(body)
        answer = self._send(*sent, timeout_s)
        if answer.status == 401:
            refused = _refusal(answer)
            if not self.renew_key():
                raise self.explain(refused)
            answer = self._send(*sent, timeout_s)
        if answer.status >= 400:
            raise _refusal(answer)
        return answer

    def renew_key(self) -> bool:
        """After a 401: whether there is another key to try. The server has done nothing, so the
        request may be sent again."""
        if self._kept is None or not self._kept.renew_rejected(self.addresses[0]):
            return False
        self.token = self._kept.token
        return True

    def explain(self, refused: Refused) -> Refused:
        """Add to the hint of a 401 why the key was not renewed."""
        if self._kept is None or refused.status != 401:
            return refused
        return self._kept.explain(refused)

    def _send(
        self, method: str, goal: str, headers: Mapping[str, str], data: bytes | None,
        timeout_s: float | None,
    ) -> Answer:  # fmt: skip
        connection, address = connect(self.addresses)
        # Later requests of this command go where the first one went.
        self.addresses = [address]
        connection.settimeout(timeout_s or ANSWER_TIMEOUT_S)
        all_headers = {"Host": address.authority, "User-Agent": f"odcctl/{__version__}", **headers}
        all_headers |= self.credentials(address)
        answer = exchange(connection, method, goal, all_headers, data)
        if timeout_s is None and answer.status < 400:
            connection.settimeout(None)
        return answer

    def credentials(self, address: Address) -> dict[str, str]:
        """The header that identifies the user to a remote server."""
        if address.path is not None:
            return {}
        if self.token is None and self._kept is not None:
            self._kept.load(address)
            self.token = self._kept.token
        if not self.token:
            return {}
        if not self._warned:
            self._warned = True
            warn_of_clear_text(address)
        return {"Authorization": f"Bearer {self.token}"}

    def _request(
        self, method: str, path: str, params: Params | None = None, *, body: object = None,
        timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> Reply:  # fmt: skip
        try:
            return self.request(method, path, params, body=body, timeout_s=timeout_s)
        except LostAnswer as error:
            raise _gone(error) from error


def post_login(address: Address, body: Mapping[str, Any]) -> object:
    """Send a signed login; return the decoded answer, None if it is not JSON."""
    reply = Client([address], None, keeps=False).post("/v1/auth/login", body)
    try:
        return reply.json()
    except ValueError:
        return None


def encode_body(body: object) -> bytes | None:
    """JSON; None and bytes unchanged."""
    return body if body is None or isinstance(body, bytes) else json.dumps(body).encode()


def target(path: str, params: Params | None = None) -> str:
    query = "&".join(
        f"{name}={quote(str(value))}" for name, value in (params or {}).items() if value is not None
    )
    return f"{path}?{query}" if query else path


def quote(text: str) -> str:
    """Percent-encoding, for one value or one part of a path."""
    data = text.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in data)


def _gone(error: LostAnswer) -> Unreachable:
    return Unreachable(
        f"the connection to the daemon was lost before it answered: {error}",
        "The request may have been carried out. Check before you repeat it.",
    )


def _refusal(answer: Answer) -> Refused:
    return refusal(answer.status, answer.headers, answer.body())


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> Refused:
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"detail": f"the server answered with HTTP status {status}"}
    after = headers.get("retry-after", "")
    return Refused(status, problem, int(after[:9]) if after.isdecimal() else None)


def _date(text: str) -> float | None:
    """An HTTP date ("Wed, 01 Jul 2026 12:00:00 GMT") as seconds since the epoch."""
    try:
        _, day, month, year, clock, _ = text.split()
        hours, minutes, seconds = map(int, clock.split(":"))
        from datetime import UTC, datetime

        moment = datetime(
            int(year), _MONTHS.index(month) + 1, int(day), hours, minutes, seconds, tzinfo=UTC
        )
    except ValueError:
        return None
    return moment.timestamp()
