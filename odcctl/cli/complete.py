"""Values that a shell completes: names and ids that the daemon knows.

Completion waits at most one second for the daemon. Without an answer, nothing is completed.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from odcctl.caller import me
from odcctl.cli.call import Call
from odcctl.exits import Failure
from odcctl.http.client import Client, Params
from odcctl.http.wire import LostAnswer
from odcctl.reservation_states import LIVE, STATUSES
from odcctl.text import jobs as job_text
from odcctl.text import render

TIMEOUT_S = 1.0
MAX_JOBS = 200
_PLAIN = re.compile(r"\w[\w.,:@%+=/-]*")
"""Other values are not completed: bash inserts them unquoted, and would run a $(COMMAND)."""

Values = list[tuple[str, str]]
"""Values and their descriptions."""


def jobs(ctx: typer.Context, incomplete: str) -> Values:
    """The ids of the caller's live jobs."""
    client = Call.of(ctx).client()
    with _time_limit():
        params = {
            "user": me(client, TIMEOUT_S),
            "limit": MAX_JOBS,
            "fields": "id,array_job_id,array_task_id,array_tasks,name,state",
        }
        found = _fetch(client, "/v1/jobs", params)["jobs"]
        return _of_list(incomplete, [
            (job_text.job_id(job).partition("_[")[0], f"{job['state']} {job['name']}")
            for job in found
        ])  # fmt: skip
    return []


def reservations(ctx: typer.Context, incomplete: str) -> Values:
    """The ids and names of the caller's live reservations."""
    with _time_limit():
        answer = _fetch(Call.of(ctx).client(), "/v1/reservations", {"status": ",".join(LIVE)})
        found: list[Mapping[str, Any]] = answer["reservations"]
        ids = [(str(one["id"]), f"{one['status']} {one['name']}") for one in found]
        return _plain([*ids, *((str(one["name"]), str(one["status"])) for one in found)])
    return []


def disks(ctx: typer.Context, incomplete: str) -> Values:
    return _names(ctx, incomplete, "/v1/disks", "disks", about="state")


def disks_or_none(ctx: typer.Context, incomplete: str) -> Values:
    return [*disks(ctx, incomplete), ("none", "no disk")]


def partitions(ctx: typer.Context, incomplete: str) -> Values:
    return _names(ctx, incomplete, "/v1/partitions", "partitions", about="state")


def nodes(ctx: typer.Context, incomplete: str) -> Values:
    return _names(ctx, incomplete, "/v1/nodes", "nodes", about="state")


def users(ctx: typer.Context, incomplete: str) -> Values:
    return _names(ctx, incomplete, "/v1/users", "users", "user")


def accounts(ctx: typer.Context, incomplete: str) -> Values:
    return _names(ctx, incomplete, "/v1/accounts", "accounts")


def qos(ctx: typer.Context, incomplete: str) -> Values:
    return _names(ctx, incomplete, "/v1/qos", "qos")


def policies(ctx: typer.Context, incomplete: str) -> Values:
    return _names(ctx, incomplete, "/v1/policies", "policies", about="ordering")


def bookings(ctx: typer.Context, incomplete: str) -> Values:
    return _names(ctx, incomplete, "/v1/bookings", "bookings", about="state")


def licences(ctx: typer.Context, incomplete: str) -> Values:
    return _names(ctx, incomplete, "/v1/licences", "licences")


def gpu_types(ctx: typer.Context, incomplete: str) -> Values:
    return _names(ctx, incomplete, "/v1/nodes", "nodes", "gpu_type")


def states(incomplete: str) -> Values:
    return _of_list(incomplete, [(state, "") for state in (*job_text.LIVE, *job_text.ENDED)])


def statuses(incomplete: str) -> Values:
    return _of_list(incomplete, [(status, "") for status in STATUSES])


def _names(
    ctx: typer.Context, incomplete: str, path: str, key: str, field: str = "name", about: str = ""
) -> Values:
    """A field of every object in a list of the API. about: the field that explains it."""
    with _time_limit():
        found = _fetch(Call.of(ctx).client(), path, None)[key]
        return _of_list(incomplete, [(str(one[field]), str(one.get(about, ""))) for one in found])
    return []


def _fetch(client: Client, path: str, params: Params | None) -> Any:
    return client.request("GET", path, params, timeout_s=TIMEOUT_S).json()


def _of_list(incomplete: str, values: Iterable[tuple[str, str]]) -> Values:
    """Complete the last value of a comma-separated list."""
    before, comma, _ = incomplete.rpartition(",")
    return [(f"{before}{comma}{word}", about) for word, about in _plain(values)]


def _plain(values: Iterable[tuple[str, str]]) -> Values:
    """Each value that a shell takes as one word, once; users choose some of them."""
    return list({
        word: render.clean(about) for word, about in values if _PLAIN.fullmatch(word)
    }.items())  # fmt: skip


@contextmanager
def _time_limit() -> Generator[None]:
    """Give up after a second, and print nothing: a shell would show it."""

    def give_up(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
    try:
        yield
    except (Failure, LostAnswer, OSError, ValueError, KeyError, TypeError):
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
