"""/v1/priority, /v1/shares, and the settings of both: /v1/accounting."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET
from msgspec import UnsetType as Unset
from starlette.responses import Response

from odcd.api.answers.accounts import Accounting, PriorityList, ShareList
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.limits import given_fields
from odcd.api.names import refuse_unknown_users
from odcd.errors import BadRequest
from odcd.records.job import Selector

Factor = Literal["age", "size", "fairshare", "qos", "partition"]
Weight = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Seconds = Annotated[int, msgspec.Meta(ge=1, le=2_147_483_647)]
Duration = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class PriorityQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter takes several values, separated by commas."""

    id: str | None = None
    user: str | None = None
    account: str | None = None
    partition: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000


class EditAccounting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Only the given fields change."""

    weights: dict[Factor, Weight] | Unset = UNSET
    max_age_s: Seconds | Unset = UNSET
    """The age at which the age factor reaches 1."""
    max_age: Duration | Unset = UNSET
    """Instead of max_age_s, in sbatch's time format: 7-00:00:00."""
    half_life_s: Seconds | Unset = UNSET
    """The time after which usage counts half."""
    half_life: Duration | Unset = UNSET
    enforce: bool | Unset = UNSET
    """Whether only an account's users may use it."""
    cpus_per_gpu: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | Unset = UNSET
    """The number of CPUs billed as one GPU."""


class PriorityRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._edit = msgspec.json.Decoder(EditAccounting)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/priority",
                tag="accounts",
                serve=self.priority,
                query=PriorityQuery,
                answers={200: (PriorityList,)},
                summary="Show the priority of pending jobs, factor by factor",
            ),
            Operation(
                method="GET",
                path="/v1/shares",
                tag="accounts",
                serve=self.shares,
                answers={200: (ShareList,)},
                summary="Show the shares and usage of accounts and users",
            ),
            Operation(
                method="GET",
                path="/v1/accounting",
                tag="accounts",
                serve=self.settings,
                answers={200: (Accounting,)},
                summary="Show the weights, the half-life, and whether only members may submit",
            ),
            Operation(
                method="PATCH",
                path="/v1/accounting",
                tag="accounts",
                serve=self.edit,
                body=EditAccounting,
                answers={200: (Accounting,)},
                summary="Change the accounting settings (operators)",
            ),
        )

    async def priority(self, call: Call) -> Response:
        query = call.query(PriorityQuery)
        ids, users = _ids(query.id), _names(query.user)
        now = self._api.clock.now()
        answer = await self._api.store.accounting.list_priorities(
            ids, users, _names(query.account), _names(query.partition), query.limit, now
        )
        found: list[dict[str, Any]] = json.loads(answer)["jobs"]
        for job_id in sorted(set(ids or ()).difference(job["id"] for job in found)):
            selector = Selector(job_id=job_id)
            await self._api.store.jobs.list_rows(selector, now, limit=1)  # Raises UnknownJob
        if not found:
            named = {"account": _names(query.account), "partition": _names(query.partition)}
            filters = {key: names for key, names in named.items() if names is not None}
            # Raises UnknownAccount or UnknownPartition.
            await self._api.store.jobs.list(
                filters, now, ended=False, after=None, limit=1, fields=["id"]
            )
            await refuse_unknown_users(self._api, call, users or ())
        return Response(answer, media_type=JSON)

    async def shares(self, call: Call) -> Response:
        return Response(
            await self._api.store.accounting.list_shares(self._api.clock.now()), media_type=JSON
        )

    async def settings(self, call: Call) -> Response:
        return Response(await self._api.store.accounting.get(), media_type=JSON)

    async def edit(self, call: Call) -> Response:
        form = await call.body(self._edit)
        now = self._api.clock.now()
        answer = await self._api.store.accounting.update(call.who, given_fields(form), now)
        self._api.wake()
        return Response(answer, media_type=JSON)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name for name in text.split(",") if name]


def _ids(text: str | None) -> list[int] | None:
    names = _names(text)
    if names is None:
        return None
    for name in names:
        if not (name.isascii() and name.isdecimal() and len(name) <= 18):
            raise BadRequest(f'"{name}" is not a job id', "Ids are numbers, separated by commas.")
    return [int(name) for name in names]
