"""/v1/cron: a user's recurring jobs, as a table in the format of scrontab."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Annotated

import msgspec
from starlette.responses import Response

from odcd.api.answers.cron import CronSet, CronTable
from odcd.api.http.context import Api
from odcd.api.http.problems import problem_of
from odcd.api.http.routing import JSON, Call, Operation
from odcd.errors import OdcError, Unavailable, refusal
from odcd.jobs.cron_rules import CronRules
from odcd.jobs.filtered import prepare_filtered
from odcd.jobs.submit_batches import limits_of
from odcd.records.fields import PRINTABLE
from odcd.slurm.cron_job import cron_job
from odcd.slurm.crontab import (
    MAX_CHARS,
    CronEntry,
    CronOrigin,
    Crontab,
    Fault,
    FaultyCrontab,
    parse_crontab,
)

PATH = "/v1/cron"
MAX_FAULTS = 100


class SetCron(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, msgspec.Meta(max_length=2 * MAX_CHARS)]
    """Lines in the format of scrontab."""
    zone: Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=PRINTABLE)] = "UTC"
    """The time zone of its times, as Europe/Berlin."""
    work_dir: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)] = "/"
    """The working directory of the jobs, unless #SCRON --chdir says otherwise."""
    umask: Annotated[int, msgspec.Meta(ge=0, le=0o777)] = 0o022
    submit_host: Annotated[str, msgspec.Meta(max_length=255)] | None = None


class CronQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] | None = None
    """Another user's table, for operators."""


def cron_rules(api: Api) -> CronRules:
    """For the leader, which submits the jobs: as for any submit of this daemon."""
    fairness = api.fairness
    return CronRules(
        check=api.check_job,
        submit_filter=api.submit_filter,
        limits=limits_of(fairness.pending, fairness.stored_bytes),
        is_operator=lambda user, uid: uid in (0, api.own_uid) or user in api.operators,
        check_disk=api.check_disk,
        mail_to=api.mail_to,
    )


class CronRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._set = msgspec.json.Decoder(SetCron)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path=PATH,
                tag="cron",
                serve=self.show,
                query=CronQuery,
                answers={200: (CronTable,)},
                summary="Show recurring jobs: the table, and what each of its entries did last",
            ),
            Operation(
                method="PUT",
                path=PATH,
                tag="cron",
                serve=self.set,
                body=SetCron,
                answers={200: (CronSet,)},
                summary="Replace the caller's recurring jobs; unchanged entries keep their jobs",
            ),
            Operation(
                method="DELETE",
                path=PATH,
                tag="cron",
                serve=self.remove,
                query=CronQuery,
                answers={200: (CronTable,)},
                summary="Remove all recurring jobs; answers with those that there were",
            ),
        )

    async def show(self, call: Call) -> Response:
        query = call.query(CronQuery)
        return Response(await self._api.store.cron.show(call.who, query.user), media_type=JSON)

    async def remove(self, call: Call) -> Response:
        query = call.query(CronQuery)
        answer = await self._api.store.cron.remove(call.who, query.user, self._api.clock.now())
        return Response(answer, media_type=JSON)

    async def set(self, call: Call) -> Response:
        form = await call.body(self._set)
        now = self._api.clock.now()
        origin = CronOrigin(
            zone=form.zone, work_dir=form.work_dir, umask=form.umask, submit_host=form.submit_host
        )
        try:
            table = parse_crontab(form.text, origin, now, self._api.mail_to(call.who))
            self._api.fairness.submit(call.who, max(1, len(table.entries)))
            await self._try(call, table)
        except FaultyCrontab as error:
            return problem_of(error, faults=[_shown(one) for one in error.faults[:MAX_FAULTS]])
        shown = json.loads(
            await self._api.store.cron.put(
                call.who, form.text, form.zone, _stored(table.entries), now
            )
        )
        answer = {**shown, "warnings": list(table.warnings)}
        return Response(msgspec.json.encode(answer), media_type=JSON)

    async def _try(self, call: Call, table: Crontab) -> None:
        """Raises FaultyCrontab: a job would be refused if it were submitted now."""
        faults = await asyncio.gather(*(self._fault(call, entry) for entry in table.entries))
        if found := [fault for fault in faults if fault is not None]:
            raise FaultyCrontab(found)

    async def _fault(self, call: Call, entry: CronEntry) -> Fault | None:
        api, who = self._api, call.who
        spec = cron_job(entry.request, entry.zone, api.clock.now(), api.mail_to(who))
        try:
            passed = await prepare_filtered(
                who, [spec], kind="batch", submit_filter=api.submit_filter, key=None,
                dry_run=True, check=api.check_job, turns=call.turns(),
            )  # fmt: skip
            [answer] = await api.batcher.submit(passed.prepared)
            if answer.code is None:
                return None
            why = passed.explain(refusal(answer.code, answer.message or "refused", answer.hint))
        except Unavailable:
            raise
        except OdcError as error:
            why = error
        why.message = f"line {entry.line}: {why.message}"
        return Fault(line=entry.line, error=why)


def _stored(entries: Sequence[CronEntry]) -> str:
    """As odc.put_cron takes them."""
    return msgspec.json.encode(
        [
            {
                **one.schedule.as_json(), "first_line": one.first_line, "line": one.line,
                "schedule": one.written, "zone": one.zone, "request": one.request,
            }
            for one in entries
        ]
    ).decode()  # fmt: skip


def _shown(fault: Fault) -> dict[str, object]:
    error = fault.error
    return {"line": fault.line, "message": error.message, "hint": error.hint}
