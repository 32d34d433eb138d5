"""A large body that does not fit is refused at once: the daemon has one event loop for everybody."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import pytest

from odcd.model import MAX_BATCH_JOBS
from tests.odcd.api.service import Service, serve

JOB = b'{"script":"#!/bin/sh","work_dir":"/"}'
BAD = b'{"x":1}'
MANY = 320_000
MOST_S = 1.0
"""Of an answer; before: 4 to 90."""


def _jobs(count: int) -> bytes:
    return b'"jobs":[' + b",".join([JOB] * count) + b"]"


def _too_many() -> bytes:
    return b"{%s}" % _jobs(MANY).replace(b"]", b",%s]" % BAD)


def _given_again() -> bytes:
    """No list is too long."""
    lists = [_jobs(MAX_BATCH_JOBS // 2)] * (2 * MANY // MAX_BATCH_JOBS)
    return b"{%s}" % b",".join([*lists, b'"jobs":[%s]' % BAD])


def _one_of_many_values() -> bytes:
    """A value of an object in the last job of a body that is searched."""
    values = b",".join(b'"k%d":"v"' % number for number in range(1000))
    last = JOB.replace(b"}", b',"environment":{%s,"bad":5}}' % values)
    return b"{%s}" % _jobs(1300).replace(b"]", b",%s]" % last)


@pytest.mark.parametrize("path", ["/v1/jobs/batch", "/v1/plan/what-if"])
@pytest.mark.parametrize("body", [_too_many, _given_again, _one_of_many_values])
def test_a_large_body_that_does_not_fit_is_refused_at_once(
    database_url: str, path: str, body: Callable[[], bytes]
) -> None:
    sent = body()

    async def work(service: Service) -> None:
        async with service.client() as client:
            begun = perf_counter()
            answer = await client.post(path, content=sent)
            took = perf_counter() - begun
        assert answer.status_code == 400, answer.text
        assert "jobs" in answer.json()["detail"]
        assert took < MOST_S

    serve(database_url, work)
