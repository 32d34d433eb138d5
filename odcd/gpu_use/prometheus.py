"""Instant queries of Prometheus's HTTP API, bounded in time and size."""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from odcd.call_metrics import NOBODY, Calls
from odcd.outbound import (
    Answer,
    AnswerTooLarge,
    HungUp,
    OutboundFailed,
    OutboundHttp,
    parse_address,
)

log = logging.getLogger(__name__)

TIMEOUT_S = 30.0
MAX_BYTES = 64 * 1024 * 1024
AT_ONCE = 4
MAX_REMARKS = 100
PATH = "/api/v1/query"
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


class _Response(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""
    error_type: str = msgspec.field(name="errorType", default="")
    warnings: list[str] = []
    infos: list[str] = []


_RESPONSE = msgspec.json.Decoder(_Response)


class Prometheus:
    """close() ends its connections."""

    def __init__(
        self, url: str, *, token: Path | None = None, ca: Path | None = None, calls: Calls = NOBODY,
        timeout_s: float = TIMEOUT_S, max_bytes: int = MAX_BYTES,
    ) -> None:  # fmt: skip
        """token: the file with the bearer token, read at every request. ca: CA certificates to
        trust; None: the system's. Raises BadRequest."""
        address = parse_address(url, "ODC_PROMETHEUS_URL", https_only=False)
        self._http = OutboundHttp(
            str(address), timeout_s=timeout_s, max_bytes=max_bytes, at_once=AT_ONCE, ca=ca
        )
        self._token = token
        self._calls = calls
        self._timeout_s = timeout_s
        self._remarks: set[str] = set()

    async def query(self, operation: str, expression: str, at: datetime) -> list[Sample]:
        """Evaluate an expression at a time; values that are not finite numbers are dropped.

        operation: the purpose, as one word. Raises PrometheusDown, PrometheusRefused,
        PrometheusFailed.
        """
        with self._calls.asking(operation):
            response = _read(await self._post(expression, at))
        self._log_remarks(response)
        return _samples(response)

    async def close(self) -> None:
        await self._http.close()

    def _log_remarks(self, response: _Response) -> None:
        """Log each remark once, because the same query is repeated."""
        for remark in {*response.warnings, *response.infos} - self._remarks:
            level = logging.WARNING if remark in response.warnings else logging.DEBUG
            log.log(level, "gpu_use.remark", extra={"why": remark[:300]})
            if len(self._remarks) < MAX_REMARKS:
                self._remarks.add(remark)

    async def _post(self, expression: str, at: datetime) -> Answer:
        form = {
            "query": expression,
            "time": f"{at.timestamp():.3f}",
            "timeout": f"{max(1, math.floor(self._timeout_s))}s",
            # For Thanos: a partial result would look complete.
            "partial_response": "false",
        }
        headers = {"Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {await self._read_token(self._token)}"
        try:
            return await self._http.post(PATH, form, headers)
        except AnswerTooLarge as error:
            raise PrometheusRefused(f"it {error}") from error
        except HungUp as error:
            # The query may have crashed the server, or someone restarted it.
            raise PrometheusFailed(f"it {error}") from error
        except OutboundFailed as error:
            raise PrometheusDown(f"it {error}") from error

    async def _read_token(self, file: Path) -> str:
        try:
            async with asyncio.timeout(self._timeout_s):
                token = (await asyncio.to_thread(file.read_text, "utf-8")).strip()
        except TimeoutError:
            raise PrometheusDown(f"{file} cannot be read within {self._timeout_s:g} s") from None
        except (OSError, ValueError) as error:
            raise PrometheusDown(f"its token cannot be read: {error}") from error
        if not token.isascii() or not token.isprintable() or " " in token:
            raise PrometheusDown(f"{file} contains no token")
        return token


def _read(answer: Answer) -> _Response:
    """Raises PrometheusDown, PrometheusRefused or PrometheusFailed, the last also for a partial
    result."""
    try:
        response = _RESPONSE.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        what = "something other than figures" if answer.status == 200 else "no reason"
        raise PrometheusDown(f"it answered with HTTP status {answer.status} and {what}") from None
    if response.status != "success" or response.data is None:
        why = " ".join(response.error.split())[:300] or f"HTTP status {answer.status}"
        if response.error_type in _REFUSALS or _LIMIT in why:
            raise PrometheusRefused(f"it refused: {why}")
        if response.error_type in _FAILURES:
            raise PrometheusFailed(f"it failed: {why}")
        raise PrometheusDown(f"it answered: {why}")
    if response.data.result_type != "vector":
        raise PrometheusRefused(f"it answered with a {response.data.result_type}, not a vector")
    partial = [text for text in response.warnings if not text.startswith(_REMARK)]
    if partial:
        why = "; ".join(" ".join(text.split()) for text in partial)
        raise PrometheusFailed(f"its answer is partial: {why[:300]}")
    return response


def _samples(response: _Response) -> list[Sample]:
    assert response.data is not None
    samples = [Sample(labels=s.metric, value=float(s.value[1])) for s in response.data.result]
    return [sample for sample in samples if math.isfinite(sample.value)]
