"""/v1/disk-imports: disks of gpu-dev that become disks of odc."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from odcd.api.answers.disks import DiskImport
from odcd.api.disks import need_disks
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.errors import UnknownDisk
from odcd.records.fields import PRINTABLE, Name

Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=127, pattern=PRINTABLE)]


class ImportTags(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user: Tag = "gpu-dev-user"
    disk: Tag = "disk_name"
    kind: Tag = "SnapshotType"
    """Snapshots without this tag are ignored: gpu-dev did not make them."""


class ImportDisks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    apply: bool = False
    """false: only report what would be imported."""
    owners: Annotated[dict[Name, Name], msgspec.Meta(max_length=10_000)] = {}
    """The user here for each user of gpu-dev whose name differs."""
    users: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=10_000)] | None = None
    """Only these users of gpu-dev; null: all."""
    tags: ImportTags = ImportTags()
    """The names of gpu-dev's tags."""


class DiskImportRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._ask = msgspec.json.Decoder(ImportDisks)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/v1/disk-imports",
                tag="disks",
                serve=self.ask,
                body=ImportDisks,
                answers={201: (DiskImport,)},
                summary="List gpu-dev's disks in the cloud, or import them (operators)",
            ),
            Operation(
                method="GET",
                path="/v1/disk-imports/{id}",
                tag="disks",
                serve=self.show,
                answers={200: (DiskImport,)},
                summary="Show an import of gpu-dev's disks, and its result (operators)",
            ),
        )

    async def ask(self, call: Call) -> Response:
        form = await call.body(self._ask)
        need_disks(self._api)
        made = await self._api.store.disks.request_import(
            call.who, form.owners, form.users, msgspec.structs.asdict(form.tags),
            self._api.clock.now(), applies=form.apply,
        )  # fmt: skip
        self._api.wake()
        return Response(made, 201, media_type=JSON)

    async def show(self, call: Call) -> Response:
        name = call.part("id")
        if not (name.isascii() and name.isdecimal() and len(name) <= 18):
            raise UnknownDisk(f'"{name}" is not an import', "Imports have numbers.")
        answer = await self._api.store.disks.get_import(call.who, int(name))
        return Response(answer, media_type=JSON)
