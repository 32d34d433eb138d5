"""/v1/reservations: dev servers."""

from __future__ import annotations

import asyncio
import hashlib
import json
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import UNSET
from starlette.responses import Response

from odcd.api.answers.disks import Disk
from odcd.api.answers.reservations import Extension, Reservation, ReservationList
from odcd.api.answers.submit import Preview
from odcd.api.builds import ImageBuild
from odcd.api.disks import need_disks, why_disk_waits
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.jobs import split_values
from odcd.api.names import refuse_unknown_users
from odcd.api.positions import Positions
from odcd.api.previews import Previews
from odcd.api.reservation_forms import (
    EditReservation,
    ExtendReservation,
    ReservationsQuery,
    ReserveQuery,
)
from odcd.errors import BadRequest, NotImplementedYet, WrongState, refusal
from odcd.jobs.filtered import prepare_filtered
from odcd.jobs.github_keys import Keys
from odcd.jobs.gpu_types import read_types
from odcd.jobs.reservations import Reserve, seconds_of, spec_of, user_places
from odcd.records.job import Identity, ReservationSpec
from odcd.slurm.lists import parse_selector

STATUSES = ("pending", "queued", "preparing", "active", "expired", "cancelled", "failed")
Status = Literal["pending", "queued", "preparing", "active", "expired", "cancelled", "failed"]


class ReservationRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._previews = Previews(api)
        self._places = Positions(api)
        self._reserve = msgspec.json.Decoder(Reserve)
        self._extend = msgspec.json.Decoder(ExtendReservation)
        self._edit = msgspec.json.Decoder(EditReservation)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/v1/reservations",
                tag="reservations",
                serve=self.reserve,
                query=ReserveQuery,
                body=Reserve,
                makes=True,
                answers={201: (Reservation,), 200: (Preview,)},
                summary="Reserve a dev server",
            ),
            Operation(
                method="GET",
                path="/v1/reservations",
                tag="reservations",
                serve=self.list,
                query=ReservationsQuery,
                answers={200: (ReservationList,)},
                summary="List reservations: by default the caller's, active or recently ended",
            ),
            Operation(
                method="GET",
                path="/v1/reservations/{id}",
                tag="reservations",
                serve=self.show,
                answers={200: (Reservation,)},
                summary="Show a reservation with its history",
            ),
            Operation(
                method="PATCH",
                path="/v1/reservations/{id}",
                tag="reservations",
                serve=self.edit,
                body=EditReservation,
                answers={200: (Reservation,)},
                summary="Change a reservation",
            ),
            Operation(
                method="POST",
                path="/v1/reservations/{id}/extend",
                tag="reservations",
                serve=self.extend,
                body=ExtendReservation,
                answers={200: (Extension,)},
                summary="Extend an active reservation, once",
            ),
        )

    async def reserve(self, call: Call) -> Response:
        form = await call.body(self._reserve)
        dry_run = call.query(ReserveQuery).dry_run
        if form.jupyter and self._api.keys is None:
            raise _no_jupyter()
        now = self._api.clock.now()
        spec = await self._spec(call.who, form, now)
        if self._api.keys is not None and not form.preserve_entrypoint:
            spec = await self._with_keys(call.who, spec, form.github_user, self._api.keys)
        elif form.github_user is not None:
            raise BadRequest(
                "this reservation does not use SSH, so it cannot use GitHub keys",
                "Leave --github-user out.",
            )
        if form.build is not None:
            spec = await self._with_build(call.who, spec, form.build)
        passed = await prepare_filtered(
            call.who, [spec], kind="reservation", submit_filter=self._api.submit_filter,
            key=None if dry_run else call.key, dry_run=dry_run, check=self._api.check_job,
            turns=call.turns(),
            # The digest covers only the request: when it is repeated, the keys and the share of
            # a node may have changed.
            digest=hashlib.sha256(b"reservation:" + msgspec.json.encode(form)).hexdigest(),
        )  # fmt: skip
        if not dry_run:
            self._api.fairness.submit(call.who, 1)
        (answer,) = await self._api.batcher.submit(passed.prepared)
        if answer.code is not None:
            raise passed.explain(refusal(answer.code, answer.message or "refused", answer.hint))
        if dry_run:
            specs = passed.filtered.specs
            (preview,) = await self._previews.of(call.who, specs, now, call.turns())
            if "disk" in spec.details:
                await self._await_disk(call.who, str(spec.details["disk"]), preview, now)
            return Response(msgspec.json.encode(preview), 200, media_type=JSON)
        assert answer.job_id is not None
        self._places.forget()
        self._api.wake()
        return await self._shown(call, answer.job_id, 201)

    async def _spec(self, who: Identity, form: Reserve, now: datetime) -> ReservationSpec:
        there = read_types(await self._api.store.gpu_types.list_availability(who, now))
        # The user database may be slow (LDAP).
        home, shell = await asyncio.to_thread(user_places, who.uid)
        spec = spec_of(
            form, there, home, shell, self._api.address, terminal=self._api.dev_server_terminals
        )  # fmt: skip
        if form.ssh and self._api.dev_server_terminals:
            raise NotImplementedYet(
                "dev servers are shells on the daemon's machine here, so ssh cannot reach them",
                "Run the command as a job: `odcctl run --gpus 1 COMMAND`.",
            )
        if "disk" in spec.details:
            need_disks(self._api)
        if self._api.shared_storage:
            shared = {**spec.details, "shared_storage": True}
            spec = msgspec.structs.replace(spec, details=shared)
        return spec

    async def _await_disk(self, who: Identity, name: str, preview: Preview, now: datetime) -> None:
        """If the job must wait for its disk first, its start is unknown: remove it from preview."""
        body = await self._api.store.disks.get(who, None, name, now)
        disk = msgspec.json.decode(body, type=Disk)
        why = why_disk_waits(disk)
        if why is not None:
            preview.text = f"the job would be accepted, and wait for its disk: {why}"
            preview.start_at, preview.promised, preview.node_names = None, False, []
            preview.delays, preview.victims = [], []
            preview.reason = "DiskBusy" if disk.reservation_id else "SnapshotPending"

    async def _with_keys(
        self, who: Identity, spec: ReservationSpec, name: str | None, keys: Keys
    ) -> ReservationSpec:
        """Add the authorized_keys lines that may connect. Without keys, nothing is queued."""
        name = name or await self._api.store.users.get_github_user(who.uid)
        if name is None:
            raise BadRequest(
                "dev servers accept your SSH keys from GitHub, but odc does not know your GitHub "
                "name",
                "Set it once: odcctl config set github_user NAME",
            )
        self._api.fairness.lookup(who)
        lines = await keys.of(name)
        wishes = {**spec.details, "github_user": name, "ssh_keys": lines}
        return msgspec.structs.replace(spec, details=wishes)

    async def _with_build(
        self, who: Identity, spec: ReservationSpec, digest: str
    ) -> ReservationSpec:
        """Make it wait in the queue until its image is built. Raises UnknownBuild, WrongState."""
        body = await self._api.store.builds.get(who, digest, self._api.build_target())
        build = msgspec.json.decode(body, type=ImageBuild)
        if build.state == "failed":
            raise WrongState(
                f"the image could not be built: {build.error}",
                "Send its context again to retry: odcctl reserve --dockerfile PATH.",
            )
        return msgspec.structs.replace(spec, details={**spec.details, "build_id": build.id})

    async def _shown(self, call: Call, job_id: int, status: int = 200) -> Response:
        now = self._api.clock.now()
        positions = await self._places.read(now)
        reservation = await self._api.store.reservations.get(call.who, job_id, positions, now)
        return Response(reservation, status, media_type=JSON)

    async def list(self, call: Call) -> Response:
        query = call.query(ReservationsQuery)
        statuses = (
            split_values(query.status.lower(), "status") if query.status is not None else None
        )
        for status in statuses or ():
            if status not in STATUSES:
                raise BadRequest(f'"{status}" is not a status', f"Statuses: {', '.join(STATUSES)}.")
        now = self._api.clock.now()
        users = split_values(query.user, "user")
        reservations = await self._api.store.reservations.list(
            call.who, users, statuses, await self._places.read(now), now,
            ended=query.all, limit=query.limit,
        )  # fmt: skip
        if reservations == "[]" and users and "all" not in users:
            await refuse_unknown_users(self._api, call, users)
        return Response(f'{{"reservations":{reservations}}}', media_type=JSON)

    async def show(self, call: Call) -> Response:
        return await self._shown(call, self._id(call))

    async def edit(self, call: Call) -> Response:
        form = await call.body(self._edit)
        job_id = self._id(call)
        await self._api.store.reservations.check_owner(call.who, job_id)
        changes: dict[str, object] = {
            name: value
            for name in ("name", "comment")
            if (value := getattr(form, name)) is not UNSET
        }
        if form.add_user is not UNSET:
            await self._add_user(call.who, job_id, form.add_user)
        if form.jupyter is not UNSET:
            if self._api.keys is None:
                raise _no_jupyter()
            now = self._api.clock.now()
            await self._api.store.reservations.set_jupyter(call.who, job_id, form.jupyter, now)
        if not changes:
            if form.add_user is not UNSET or form.jupyter is not UNSET:
                return await self._shown(call, job_id)
            raise BadRequest("the request changes nothing", "Give a name or a comment.")
        outcomes = await self._api.store.jobs.update(
            call.who, {"job_ids": [job_id]}, self._api.clock.now(), changes,
            stored_bytes=self._api.fairness.stored_bytes,
        )  # fmt: skip
        for one in json.loads(outcomes):
            if one["code"] is not None:
                raise refusal(one["code"], one["message"], one["hint"])
        return await self._shown(call, job_id)

    async def _add_user(self, who: Identity, job_id: int, name: str) -> None:
        """Write to the database first: every start of the dev server reads the keys there."""
        if self._api.keys is None:
            raise WrongState(
                f"reservation {job_id} does not use SSH, so it cannot use keys of other users",
                "Only its owner and operators can connect, through its terminal.",
            )
        self._api.fairness.lookup(who)
        lines = await self._api.keys.of(name)
        attempt, every = await self._api.store.reservations.share(
            who, job_id, name, lines, self._api.clock.now()
        )
        if attempt is not None:
            await self._api.executor().dev_servers.set_keys(job_id, attempt, every)

    async def extend(self, call: Call) -> Response:
        form = await call.body(self._extend)
        reservation = await self._api.store.reservations.extend(
            call.who, self._id(call), seconds_of(form.hours, least_s=1), self._api.clock.now(),
            dry_run=form.dry_run,
        )  # fmt: skip
        self._api.wake()
        return Response(reservation, media_type=JSON)

    def _id(self, call: Call) -> int:
        selector = parse_selector(call.part("id"))
        if selector.tasks is not None:
            raise BadRequest("a reservation has no tasks", "Give its number.")
        return selector.job_id


def _no_jupyter() -> NotImplementedYet:
    return NotImplementedYet(
        "dev servers are shells on the daemon's machine here, where odc cannot start Jupyter Lab",
        "Run `jupyter lab` inside the dev server.",
    )
