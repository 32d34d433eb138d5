"""Instant queries of Prometheus's HTTP API, bounded in time and size. docs/decisions/0024 explains
why they use only asyncio and httptools."""

from __future__ import annotations

import asyncio
import codecs
import logging
import math
import re
import ssl
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from odcd.call_metrics import NOBODY, Calls
from odcd.errors import BadRequest
from odcd.http_answer import Answer, BadAnswer, HungUp, TooMuch, read_answer

log = logging.getLogger(__name__)

# The first name lookup loads this codec, when we may no longer be able to read root's Python.
codecs.lookup("idna")

TIMEOUT_S = 30.0
MAX_BYTES = 64 * 1024 * 1024
AT_ONCE = 4
MOST_REMARKS = 100
PATH = "/api/v1/query"
_PLACE = re.compile(r"(https?)://([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(?::([0-9]{1,5}))?(/[!-~]*)?")
_PORTS = {"http": 80, "https": 443}
# The request is invalid or too large: a retry would fail as well.
_REFUSALS = frozenset({"bad_data", "not_acceptable"})
# Prometheus was overloaded, or a store behind a Thanos was away, which has the same error type as a
# limit.
_FAILURES = frozenset({"execution", "timeout"})
_LIMIT = "too many samples"
_REMARK = "PromQL "
"""The prefix of remarks on an expression among the warnings: with these, the answer is complete."""


class PrometheusDown(Exception):
    """Prometheus cannot be queried now. str() gives the reason."""


class PrometheusRefused(Exception):
    """Prometheus cannot answer this query. str() gives the reason."""


class PrometheusFailed(PrometheusRefused):
    """Prometheus failed to answer this query but may succeed later: it was overloaded, or a store
    was missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    labels: dict[str, str]
    value: float


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    result: list[_Series]
    result_type: str = msgspec.field(name="resultType")


class _Told(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""
    error_type: str = msgspec.field(name="errorType", default="")
    warnings: list[str] = []
    infos: list[str] = []


_TOLD = msgspec.json.Decoder(_Told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The address for requests. authority: host and port as in the Host header; path: prepended to
    every request path."""

    secure: bool
    host: str
    port: int
    authority: str
    path: str = ""


def parse_place(text: str) -> Place:
    """Raises BadRequest."""
    found = _PLACE.fullmatch(text)
    port = int(found[3] or _PORTS[found[1]]) if found else 0
    if found is None or not 0 < port < 65536 or re.search(r"[?#]", found[4] or ""):
        raise BadRequest(
            # The error goes to a log, and the address may contain a password.
            f'ODC_PROMETHEUS_URL="{re.sub("//.*@", "//...@", text)[:200]}" is not an address',
            "Write http://HOST:9090 or https://HOST, with a path if it lies below one.",
        )
    return Place(
        secure=found[1] == "https",
        host=found[2].strip("[]"),
        port=port,
        authority=found[2] if found[3] is None else f"{found[2]}:{port}",
        path=(found[4] or "").rstrip("/"),
    )


@dataclass(slots=True, kw_only=True)
class Prometheus:
    place: Place
    token: Path | None = None
    ca: Path | None = None
    """CA certificates to trust; None: the system's."""
    calls: Calls = NOBODY
    timeout_s: float = TIMEOUT_S
    most: int = MAX_BYTES
    _context: ssl.SSLContext | None = None
    _remarks: set[str] = field(default_factory=set[str])
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def query(self, operation: str, expression: str, at: datetime) -> list[Sample]:
        """Evaluate an expression at a time; values that are not finite numbers are dropped.

        operation: the purpose, as one word. Raises PrometheusDown, PrometheusRefused,
        PrometheusFailed.
        """
        async with self._turns:
            with self.calls.asking(operation):
                told = _read(await self._post(expression, at))
        self._tell_remarks(told)
        return _samples(told)

    def _tell_remarks(self, told: _Told) -> None:
        """Log each remark once, because the same query is repeated."""
        for remark in {*told.warnings, *told.infos} - self._remarks:
            level = logging.WARNING if remark in told.warnings else logging.DEBUG
            log.log(level, "gpu_use.remark", extra={"why": remark[:300]})
            if len(self._remarks) < MOST_REMARKS:
                self._remarks.add(remark)

    async def _post(self, expression: str, at: datetime) -> Answer:
        try:
            async with asyncio.timeout(self.timeout_s):
                head = await self._headers()
                form = urlencode(
                    {
                        "query": expression,
                        "time": f"{at.timestamp():.3f}",
                        "timeout": f"{max(1, math.floor(self.timeout_s))}s",
                        # For Thanos: a partial result would look complete.
                        "partial_response": "false",
                    }
                ).encode()
                lines = [*head, f"Content-Length: {len(form)}", "", ""]
                return await self._send("\r\n".join(lines).encode() + form)
        except TimeoutError:
            raise PrometheusDown(f"it did not answer within {self.timeout_s:g} s") from None
        except ssl.SSLError as error:
            raise PrometheusDown(f"it cannot be trusted: {error.reason or error}") from error
        except OSError as error:
            raise PrometheusDown(f"it cannot be reached: {error.strerror or error}") from error
        except TooMuch as error:
            raise PrometheusRefused(f"it {error}") from error
        except HungUp as error:
            # The query may have crashed the server, or someone restarted it.
            raise PrometheusFailed(f"it {error}") from error
        except BadAnswer as error:
            raise PrometheusDown(f"it {error}") from error

    async def _headers(self) -> list[str]:
        lines = [
            f"POST {self.place.path}{PATH} HTTP/1.1",
            f"Host: {self.place.authority}",
            "Content-Type: application/x-www-form-urlencoded",
            "Accept: application/json",
            "User-Agent: odcd",
            "Connection: close",
        ]
        if self.token is not None:
            try:
                token = (await asyncio.to_thread(self.token.read_text, "utf-8")).strip()
            except (OSError, ValueError) as error:
                raise PrometheusDown(f"its token cannot be read: {error}") from error
            if not token.isascii() or not token.isprintable() or " " in token:
                raise PrometheusDown(f"{self.token} holds no token")
            lines.append(f"Authorization: Bearer {token}")
        return lines

    async def _send(self, request: bytes) -> Answer:
        if self.place.secure and self._context is None:
            cafile = str(self.ca) if self.ca else None
            self._context = await asyncio.to_thread(ssl.create_default_context, cafile=cafile)
        reader, writer = await asyncio.open_connection(
            self.place.host, self.place.port, ssl=self._context
        )
        try:
            writer.write(request)
            return await read_answer(reader, self.most)
        finally:
            writer.transport.abort()


def _read(answer: Answer) -> _Told:
    """Raises PrometheusDown, PrometheusRefused or PrometheusFailed, the last also for a partial
    result."""
    try:
        told = _TOLD.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        what = "something else than figures" if answer.status == 200 else "no reason"
        raise PrometheusDown(f"it answered with HTTP status {answer.status} and {what}") from None
    if told.status != "success" or told.data is None:
        why = " ".join(told.error.split())[:300] or f"HTTP status {answer.status}"
        if told.error_type in _REFUSALS or _LIMIT in why:
            raise PrometheusRefused(f"it refused: {why}")
        if told.error_type in _FAILURES:
            raise PrometheusFailed(f"it failed: {why}")
        raise PrometheusDown(f"it answered: {why}")
    if told.data.result_type != "vector":
        raise PrometheusRefused(f"it answered with a {told.data.result_type}, not a vector")
    partial = [text for text in told.warnings if not text.startswith(_REMARK)]
    if partial:
        why = "; ".join(" ".join(text.split()) for text in partial)
        raise PrometheusFailed(f"it answered in part: {why[:300]}")
    return told


def _samples(told: _Told) -> list[Sample]:
    assert told.data is not None
    samples = [Sample(labels=s.metric, value=float(s.value[1])) for s in told.data.result]
    return [sample for sample in samples if math.isfinite(sample.value)]
