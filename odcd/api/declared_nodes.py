"""Nodes that operators declare: the requests, and what must hold before the database is asked."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from msgspec import UNSET
from msgspec import UnsetType as Unset

from odcd.api.http.context import Api
from odcd.errors import NotOwner
from odcd.executor.declaring import sized
from odcd.records.fields import NODE_NAME, WORD, Count
from odcd.records.job import Identity
from odcd.records.node import DeclaredNode

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=WORD)]
Gpus = Annotated[int, msgspec.Meta(ge=0, le=62)]
Cpus = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Words = Annotated[list[Word], msgspec.Meta(max_length=100)]


class NodeProperties(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    gpu_type: Word | Unset = UNSET
    gpus: Gpus | Unset = UNSET
    cpus: Cpus | Unset = UNSET
    mem_mib: Count | Unset = UNSET
    features: Words | Unset = UNSET
    """Jobs can request them with --constraint."""
    zone: Word | Unset | None = UNSET
    efa_domain: Word | Unset | None = UNSET
    """Its placement group."""
    topology: Words | Unset = UNSET
    """The layers of its network, outermost first; the last one is its block."""


class NewNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NODE_NAME)]
    gpu_type: Word
    gpus: Gpus
    cpus: Cpus | None = None
    """None: the share of a node of its type, as for --node."""
    mem_mib: Count | None = None
    """None: the share of a node of its type."""
    features: Words = []
    """Jobs can request them with --constraint."""
    zone: Word | None = None
    efa_domain: Word | None = None
    """Its placement group."""
    topology: Words = []
    """The layers of its network, outermost first; the last one is its block."""


def properties_of(form: NodeProperties) -> dict[str, object]:
    """The properties that were given."""
    names = NodeProperties.__struct_fields__
    return {name: value for name in names if (value := getattr(form, name)) is not UNSET}


class DeclaredNodes:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def create(self, who: Identity, form: NewNode) -> None:
        """Raises NotOwner, WrongState, BadRequest."""
        _check_operator(who)
        await asyncio.to_thread(self._api.declaring.check_new, form.name)
        node = sized(
            DeclaredNode(
                name=form.name, gpu_type=form.gpu_type, gpus=form.gpus, cpus=form.cpus,
                zone=form.zone, efa_domain=form.efa_domain, topology=tuple(form.topology),
            ),
            form.mem_mib,
            await self._api.store.gpu_types.get_sizes(),
        )  # fmt: skip
        asked = {
            "name": node.name, "gpu_type": node.gpu_type, "gpus": node.gpus, "cpus": node.cpus,
            "mem_mib": node.mem_mib, "zone": node.zone, "efa_domain": node.efa_domain,
            "topology": list(node.topology), "features": form.features,
        }  # fmt: skip
        await self._api.store.nodes.create(who, asked, self._api.clock.now())
        self._api.wake()

    async def change(self, who: Identity, name: str, changes: dict[str, object]) -> None:
        """Raises NotOwner, UnknownNode, WrongState, BadRequest."""
        _check_operator(who)
        self._api.declaring.check(name)
        await self._api.store.nodes.change(who, name, changes, self._api.clock.now())
        self._api.wake()

    async def delete(self, who: Identity, name: str) -> None:
        """Raises NotOwner, UnknownNode, WrongState."""
        _check_operator(who)
        self._api.declaring.check(name)
        await self._api.store.nodes.delete(who, name, self._api.clock.now())
        self._api.wake()


def _check_operator(who: Identity) -> None:
    """The database checks it, too: only operators may learn why a node cannot be declared."""
    if not who.operator:
        raise NotOwner(
            f"user {who.user} may not declare, change or delete nodes",
            "Only operators may do that: root, the account that runs odcd, and users named with "
            "odcd up --operator USER.",
        )
