"""/v1/partitions and /v1/policies."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET
from msgspec import UnsetType as Unset
from starlette.responses import Response

from odcd.api.answers.partitions import Partition, PartitionList, Policy, PolicyList
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.limits import Limits, amounts
from odcd.errors import BadRequest, UnknownPartition, UnknownPolicy
from odcd.records.fields import UNLIMITED_S, Count, Name
from odcd.slurm.times import parse_span

Limit = Annotated[int, msgspec.Meta(ge=1, le=2_147_483_646)]
Duration = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Depth = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Ordering = Literal["fifo", "multifactor", "sjf", "saf", "wfp3", "odc"]
Backfill = Literal["order", "fifo", "sjbf", "safbf"]


class _Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class EditPartition(_Form, frozen=True, kw_only=True):
    """Only the given fields change; null removes the value."""

    state: Literal["UP", "DOWN", "DRAIN", "INACTIVE"] | Unset = UNSET
    """DOWN: jobs wait. DRAIN: no new jobs are accepted. INACTIVE: none are accepted or started."""
    is_default: Literal[True] | Unset = UNSET
    policy: Name | Unset = UNSET
    placement: Literal["pack", "spread"] | Unset = UNSET
    """pack: the fullest node that fits; spread: the emptiest."""
    tier: Annotated[int, msgspec.Meta(ge=0, le=65533)] | Unset = UNSET
    """Among partitions that share nodes, the highest tier is served first."""
    plan_depth: Depth | Unset = UNSET
    """The plan_depth of its policy, which no other partition may use then."""
    max_time_limit_s: Limit | Unset | None = UNSET
    default_time_limit_s: Limit | Unset | None = UNSET
    max_time_limit: Duration | Unset = UNSET
    """Instead of max_time_limit_s, in sbatch's format: 30, 2:00:00, 1-12, UNLIMITED."""
    default_time_limit: Duration | Unset = UNSET
    max_nodes: Count | Unset | None = UNSET
    def_mem_per_cpu_mib: Limit | Unset | None = UNSET
    limits: Limits | Unset = UNSET
    """Limits on the total usage of its jobs, per user, per account and per job."""
    all_nodes: Literal[True] | Unset = UNSET
    """All nodes, including future ones; otherwise node_list."""
    node_list: Annotated[list[Name], msgspec.Meta(max_length=100_000)] | Unset = UNSET


class MakePartition(EditPartition, frozen=True, kw_only=True):
    name: Name


class EditPolicy(_Form, frozen=True, kw_only=True):
    """Only the given fields change."""

    ordering: Ordering | Unset = UNSET
    max_wait_s: Limit | Unset | None = UNSET
    """Jobs that waited longer go to the front, in the order of submission; null: none do."""
    max_wait: Duration | Unset = UNSET
    """Instead of max_wait_s, in sbatch's time format; UNLIMITED: null."""
    backfill: Backfill | Unset = UNSET
    """The order of the candidates behind the protected jobs."""
    plan_depth: Depth | Unset = UNSET
    """The number of jobs protected at once on the same nodes: 1 is EASY backfill."""


class MakePolicy(EditPolicy, frozen=True, kw_only=True):
    name: Name
    like: Name | None = None
    """The policy from which fields that are not given are copied."""


class PartitionRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._make = msgspec.json.Decoder(MakePartition)
        self._edit = msgspec.json.Decoder(EditPartition)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/partitions",
                tag="partitions",
                serve=self.list,
                answers={200: (PartitionList,)},
                summary="List partitions",
            ),
            Operation(
                method="POST",
                path="/v1/partitions",
                tag="partitions",
                serve=self.make,
                body=MakePartition,
                answers={201: (Partition,)},
                summary="Create a partition (operators)",
            ),
            Operation(
                method="GET",
                path="/v1/partitions/{partition}",
                tag="partitions",
                serve=self.show,
                answers={200: (Partition,)},
                summary="Show a partition",
            ),
            Operation(
                method="PATCH",
                path="/v1/partitions/{partition}",
                tag="partitions",
                serve=self.edit,
                body=EditPartition,
                answers={200: (Partition,)},
                summary="Change a partition (operators)",
            ),
            Operation(
                method="DELETE",
                path="/v1/partitions/{partition}",
                tag="partitions",
                serve=self.delete,
                answers={200: (Partition,)},
                summary="Delete a partition that no job, booking or user needs (operators)",
            ),
        )

    async def list(self, call: Call) -> Response:
        return Response(
            f'{{"partitions":{await self._api.store.partitions.list()}}}', media_type=JSON
        )

    async def show(self, call: Call) -> Response:
        found = _named(await self._api.store.partitions.list(), call.part("partition"))
        if found is None:
            raise UnknownPartition(
                f'partition "{call.part("partition")}" does not exist',
                "`odcctl partition list` lists them.",
            )
        return Response(msgspec.json.encode(found), media_type=JSON)

    async def make(self, call: Call) -> Response:
        form = await call.body(self._make)
        return await self._change(call, form.name, form, make=True)

    async def edit(self, call: Call) -> Response:
        form = await call.body(self._edit)
        return await self._change(call, call.part("partition"), form, make=False)

    async def delete(self, call: Call) -> Response:
        now = self._api.clock.now()
        answer = await self._api.store.partitions.delete(call.who, call.part("partition"), now)
        self._api.wake()
        return Response(answer, media_type=JSON)

    async def _change(self, call: Call, name: str, form: EditPartition, *, make: bool) -> Response:
        now = self._api.clock.now()
        changes = _given_fields(form, "name")
        partitions = self._api.store.partitions
        change = partitions.create if make else partitions.update
        answer = await change(call.who, name, changes, now)
        self._api.wake()
        return Response(answer, 201 if make else 200, media_type=JSON)


class PolicyRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._make = msgspec.json.Decoder(MakePolicy)
        self._edit = msgspec.json.Decoder(EditPolicy)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/policies",
                tag="partitions",
                serve=self.list,
                answers={200: (PolicyList,)},
                summary="List policies",
            ),
            Operation(
                method="POST",
                path="/v1/policies",
                tag="partitions",
                serve=self.make,
                body=MakePolicy,
                answers={201: (Policy,)},
                summary="Create a policy (operators)",
            ),
            Operation(
                method="GET",
                path="/v1/policies/{policy}",
                tag="partitions",
                serve=self.show,
                answers={200: (Policy,)},
                summary="Show a policy",
            ),
            Operation(
                method="PATCH",
                path="/v1/policies/{policy}",
                tag="partitions",
                serve=self.edit,
                body=EditPolicy,
                answers={200: (Policy,)},
                summary="Change a policy (operators)",
            ),
            Operation(
                method="DELETE",
                path="/v1/policies/{policy}",
                tag="partitions",
                serve=self.delete,
                answers={200: (Policy,)},
                summary="Delete a policy that no partition uses (operators)",
            ),
        )

    async def list(self, call: Call) -> Response:
        return Response(f'{{"policies":{await self._api.store.policies.list()}}}', media_type=JSON)

    async def show(self, call: Call) -> Response:
        found = _named(await self._api.store.policies.list(), call.part("policy"))
        if found is None:
            raise UnknownPolicy(
                f'policy "{call.part("policy")}" does not exist', "`odcctl policy list` lists them."
            )
        return Response(msgspec.json.encode(found), media_type=JSON)

    async def make(self, call: Call) -> Response:
        form = await call.body(self._make)
        now = self._api.clock.now()
        terms = _given_fields(form, "name", "like")
        answer = await self._api.store.policies.create(call.who, form.name, form.like, terms, now)
        return Response(answer, 201, media_type=JSON)

    async def edit(self, call: Call) -> Response:
        form = await call.body(self._edit)
        now = self._api.clock.now()
        name = call.part("policy")
        answer = await self._api.store.policies.update(call.who, name, _given_fields(form), now)
        self._api.wake()
        return Response(answer, media_type=JSON)

    async def delete(self, call: Call) -> Response:
        now = self._api.clock.now()
        answer = await self._api.store.policies.delete(call.who, call.part("policy"), now)
        return Response(answer, media_type=JSON)


def _named(listed: str, name: str) -> dict[str, Any] | None:
    found: list[dict[str, Any]] = json.loads(listed)
    return next((one for one in found if one["name"] == name), None)


def _given_fields(form: msgspec.Struct, *without: str) -> dict[str, object]:
    """The fields that were given, as the database takes them. Raises BadRequest."""
    given = {name: getattr(form, name) for name in form.__struct_fields__ if name not in without}
    fields: dict[str, object] = {}
    for name, value in given.items():
        if value is UNSET:
            continue
        if name in ("max_time_limit", "default_time_limit", "max_wait"):
            if given[f"{name}_s"] is not UNSET:
                raise BadRequest(f"{name} and {name}_s are both given", "Use only one of them.")
            seconds = parse_span(str(value), name, endless=True)
            fields[f"{name}_s"] = None if seconds == UNLIMITED_S else seconds
        elif name == "limits":
            fields[name] = amounts(value)
        else:
            fields[name] = value
    return fields
