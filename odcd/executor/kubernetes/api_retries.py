"""Retries of requests to the API server."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes.cluster import ApiRefused

log = logging.getLogger(__name__)

RETRY_S = (0.2, 10.0)
"""The first and the longest pause; each is twice the previous one."""
_NO_RIGHT = re.compile(r"cannot \w+ resource")
_T = TypeVar("_T")


async def insist(clock: Clock, act: Callable[[], Awaitable[_T]]) -> _T:
    """Repeat until the API server accepts the request; permanent refusals are retried too, with
    growing pauses, which are never shorter than the API server asks for."""
    pause_s = RETRY_S[0]
    while True:
        asked_s = 0.0
        try:
            return await act()
        except (RunnerDown, ApiRefused) as error:
            log.warning("kubernetes.retry", extra={"why": str(error)})
            if isinstance(error, ApiRefused):
                asked_s = error.retry_after_s or 0.0
        await clock.sleep(max(pause_s, asked_s))
        pause_s = min(pause_s * 2, RETRY_S[1])


def may_pass(error: ApiRefused) -> bool:
    """Whether a retry may succeed: quotas, rights and namespaces change, but an invalid pod stays
    invalid."""
    if error.passing or error.status in (401, 404, 409):
        return True
    if error.status != 403:
        return False
    # A server that has just started may not have loaded its roles yet.
    return "exceeded quota" in error.message or bool(_NO_RIGHT.search(error.message))
