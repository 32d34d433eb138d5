"""/v1/disks: home folders that outlive dev servers."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from odcd.api.accounts import digest_of, key_of
from odcd.api.answers.disks import Disk, DiskContents, DiskList, StrayList
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.errors import NotImplementedYet
from odcd.records.fields import Name
from odcd.records.job import Identity


class DiskQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    user: str | None = None
    """The owner of the disk (operators). Default: the caller."""


class DisksQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    user: str | None = None
    """A user name, or all (operators). Default: the caller."""


class MakeDisk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    """Letters, digits, - and _, at most 50."""
    size_gib: Annotated[int, msgspec.Meta(ge=10, le=16_384)] | None = None
    """null: the daemon's default."""


class RenameDisk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    new_name: Name


class CloneDisk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    new_name: Name
    new_user: Name | None = None
    """The owner of the clone; null: the owner of the original."""


class DiskRoutes:
    """Requests are complete when they are answered; the cloud follows later. GET shows the
    progress."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._make = msgspec.json.Decoder(MakeDisk)
        self._rename = msgspec.json.Decoder(RenameDisk)
        self._clone = msgspec.json.Decoder(CloneDisk)

    def operations(self) -> tuple[Operation, ...]:
        return (*self._of_disks(), *self._of_actions())

    def _of_disks(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/disks",
                tag="disks",
                serve=self.list,
                query=DisksQuery,
                answers={200: (DiskList,)},
                summary="List disks of a user, including deleted ones that are still kept",
            ),
            Operation(
                method="POST",
                path="/v1/disks",
                tag="disks",
                serve=self.make,
                body=MakeDisk,
                makes=True,
                answers={201: (Disk,)},
                summary="Create a disk",
            ),
            Operation(
                method="GET",
                path="/v1/disks/{disk}",
                tag="disks",
                serve=self.show,
                query=DiskQuery,
                answers={200: (Disk,)},
                summary="Show a disk",
            ),
            Operation(
                method="DELETE",
                path="/v1/disks/{disk}",
                tag="disks",
                serve=self.delete,
                query=DiskQuery,
                answers={200: (Disk,)},
                summary="Delete a disk; its snapshots are kept for 30 days",
            ),
        )

    def _of_actions(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/v1/disks/{disk}/rename",
                tag="disks",
                serve=self.rename,
                query=DiskQuery,
                body=RenameDisk,
                answers={200: (Disk,)},
                summary="Rename a disk",
            ),
            Operation(
                method="GET",
                path="/v1/disks/{disk}/content",
                tag="disks",
                serve=self.content,
                query=DiskQuery,
                answers={200: (DiskContents,)},
                summary="Show the files in a disk's newest snapshot",
            ),
            Operation(
                method="POST",
                path="/v1/disks/{disk}/clone",
                tag="disks",
                serve=self.clone,
                query=DiskQuery,
                body=CloneDisk,
                answers={201: (Disk,)},
                summary="Create a disk from the newest snapshot of another (operators)",
            ),
            Operation(
                method="POST",
                path="/v1/disks/{disk}/unlock",
                tag="disks",
                serve=self.unlock,
                query=DiskQuery,
                answers={200: (Disk,)},
                summary="Clear a disk's trouble, so that it can be used again (operators)",
            ),
            Operation(
                method="GET",
                path="/v1/disk-strays",
                tag="disks",
                serve=self.strays,
                answers={200: (StrayList,)},
                summary="List cloud volumes and snapshots that belong to no disk (operators)",
            ),
        )

    async def list(self, call: Call) -> Response:
        disks = await self._api.store.disks.list(
            call.who, call.query(DisksQuery).user, self._api.clock.now()
        )
        default = msgspec.json.encode(self._api.disk_gib).decode()
        return Response(f'{{"default_gib":{default},"disks":{disks}}}', media_type=JSON)

    async def make(self, call: Call) -> Response:
        form = await call.body(self._make)
        default = need_disks(self._api)
        disk = await self._api.store.disks.create(
            call.who, form.name, form.size_gib or default, self._api.clock.now(),
            key=key_of(call), digest=digest_of("disk", form),
        )  # fmt: skip
        return Response(disk, 201, media_type=JSON)

    async def show(self, call: Call) -> Response:
        return _response(await self._api.store.disks.get(*_named(call), self._api.clock.now()))

    async def delete(self, call: Call) -> Response:
        return _response(await self._api.store.disks.delete(*_named(call), self._api.clock.now()))

    async def rename(self, call: Call) -> Response:
        form = await call.body(self._rename)
        now = self._api.clock.now()
        return _response(await self._api.store.disks.rename(*_named(call), form.new_name, now))

    async def content(self, call: Call) -> Response:
        return _response(
            await self._api.store.disks.get_contents(*_named(call), self._api.clock.now())
        )

    async def clone(self, call: Call) -> Response:
        form = await call.body(self._clone)
        need_disks(self._api)
        disk = await self._api.store.disks.clone(
            *_named(call), form.new_user, form.new_name, self._api.clock.now()
        )
        return Response(disk, 201, media_type=JSON)

    async def unlock(self, call: Call) -> Response:
        disk = await self._api.store.disks.unlock(*_named(call), self._api.clock.now())
        self._api.wake()
        return _response(disk)

    async def strays(self, call: Call) -> Response:
        orphans = await self._api.store.disks.list_orphans(call.who)
        return Response(f'{{"strays":{orphans}}}', media_type=JSON)


def need_disks(api: Api) -> int:
    """The size of a new disk. Raises NotImplementedYet when the daemon has no disks."""
    if api.disk_gib is not None:
        return api.disk_gib
    if api.dev_server_terminals:
        raise NotImplementedYet(
            "there are no disks here: dev servers are processes of this machine and use your own "
            "home folder, which is permanent",
            "Leave the disk out; `odcd serve --executor kubernetes` with ODC_AWS_REGION has disks.",
        )
    raise NotImplementedYet(
        "this daemon has no disks: no AWS region is set",
        "An operator sets ODC_AWS_REGION; see docs/operating/disks.md.",
    )


def why_disk_waits(disk: Disk) -> str | None:
    """Why a dev server could not use the disk now."""
    if disk.state == "in-use":
        return f'"{disk.name}" is in use by reservation {disk.reservation_id}'
    if disk.state == "backing-up":
        return f'what was written on "{disk.name}" is being saved in a snapshot'
    return None


def _named(call: Call) -> tuple[Identity, str | None, str]:
    """The caller, the owner and the disk's name."""
    return call.who, call.query(DiskQuery).user, call.part("disk")


def _response(body: str) -> Response:
    return Response(body, media_type=JSON)
