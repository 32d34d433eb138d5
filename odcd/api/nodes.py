"""/v1/nodes."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET
from msgspec import UnsetType as Unset
from starlette.responses import Response

from odcd.api.answers.nodes import Node, NodeGroupList, NodeList
from odcd.api.declared_nodes import DeclaredNodes, NewNode, NodeProperties, properties_of
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.past import as_of
from odcd.errors import BadRequest, UnknownNode
from odcd.records.fields import PRINTABLE
from odcd.records.job import Identity


class NodeQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    as_of: datetime | None = None
    """Show the nodes as they were at this time."""


class ChangeNode(NodeProperties, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Either the state, or properties of a declared node."""

    state: Literal["UP", "DRAIN", "DOWN"] | Unset = UNSET
    """DRAIN: its jobs continue, but no new ones start."""
    reason: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=1000, pattern=PRINTABLE)] | None
    ) = None


class NodeRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._change = msgspec.json.Decoder(ChangeNode)
        self._new = msgspec.json.Decoder(NewNode)
        self._declared = DeclaredNodes(api)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/nodes",
                tag="nodes",
                serve=self.list,
                query=NodeQuery,
                answers={200: (NodeList,)},
                summary="List nodes",
            ),
            Operation(
                method="GET",
                path="/v1/node-groups",
                tag="nodes",
                serve=self.list_groups,
                answers={200: (NodeGroupList,)},
                summary="List elastic groups",
            ),
            Operation(
                method="GET",
                path="/v1/nodes/{name}",
                tag="nodes",
                serve=self.show,
                answers={200: (Node,)},
                summary="Show a node",
            ),
            Operation(
                method="PATCH",
                path="/v1/nodes/{name}",
                tag="nodes",
                serve=self.change,
                body=ChangeNode,
                answers={200: (Node,)},
                summary="Change a node's state, or the properties of a declared one (operators)",
            ),
            Operation(
                method="POST",
                path="/v1/nodes",
                tag="nodes",
                serve=self.create,
                body=NewNode,
                answers={201: (Node,)},
                summary="Declare a node (operators)",
            ),
            Operation(
                method="DELETE",
                path="/v1/nodes/{name}",
                tag="nodes",
                serve=self.delete,
                answers={200: (Node,)},
                summary="Delete a declared node without jobs (operators)",
            ),
        )

    async def list(self, call: Call) -> Response:
        moment = as_of(call.query(NodeQuery).as_of)
        nodes = await self._api.store.nodes.list(call.who, self._api.clock.now(), moment)
        return Response(f'{{"nodes":{nodes}}}', media_type=JSON)

    async def list_groups(self, call: Call) -> Response:
        groups = await self._api.store.elastic.list(self._api.clock.now())
        return Response(f'{{"groups":{groups}}}', media_type=JSON)

    async def show(self, call: Call) -> Response:
        return await self._node(call.who, call.part("name"))

    async def change(self, call: Call) -> Response:
        form = await call.body(self._change)
        name = call.part("name")
        changes = properties_of(form)
        if (form.state is UNSET) != bool(changes) or (form.state is UNSET and form.reason):
            raise BadRequest(
                "a change is either a state with its reason, or properties of a declared node",
                'For example {"state": "DRAIN", "reason": "new driver"}, or {"cpus": 96}.',
            )
        if form.state is UNSET:
            await self._declared.change(call.who, name, changes)
            return await self._node(call.who, name)
        if form.state != "UP" and not (form.reason or "").strip():
            raise BadRequest(
                f"{form.state} needs a reason", "Give one: users whose jobs wait will read it."
            )
        now = self._api.clock.now()
        await self._api.store.nodes.set_state(call.who, [name], form.state, form.reason, now)
        self._api.wake()
        return await self._node(call.who, name)

    async def create(self, call: Call) -> Response:
        form = await call.body(self._new)
        await self._declared.create(call.who, form)
        return await self._node(call.who, form.name, 201)

    async def delete(self, call: Call) -> Response:
        name = call.part("name")
        before = await self._node(call.who, name)
        await self._declared.delete(call.who, name)
        return before

    async def _node(self, who: Identity, name: str, status: int = 200) -> Response:
        nodes: list[dict[str, Any]] = json.loads(
            await self._api.store.nodes.list(who, self._api.clock.now())
        )
        for node in nodes:
            if node["name"] == name:
                return Response(msgspec.json.encode(node), status, media_type=JSON)
        raise UnknownNode(f'node "{name}" does not exist', "`odcctl nodes` lists them.")
