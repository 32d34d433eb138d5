"""Submit the occurrences of recurring jobs that are due. Runs on the leader only.

The request is made here, as for any submit: the options are parsed, the executor and the site's
submit filter are asked. The database submits it and advances the entry in one transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from odcd.clock import Clock, Turns
from odcd.errors import OdcError, Unavailable
from odcd.isolation import Isolation
from odcd.jobs.cron_rules import CronRules
from odcd.jobs.filtered import prepare_filtered
from odcd.jobs.submission import Prepared
from odcd.jobs.submit_batches import compact_request
from odcd.loops.rounds import RoundMetrics, Rounds
from odcd.records.cron import DueCron
from odcd.records.job import Identity
from odcd.slurm.cron_job import cron_job, request_of
from odcd.stores.cron import CronStore

log = logging.getLogger(__name__)

LOOK = timedelta(seconds=5)
"""How often the database is asked for due occurrences; they are due at whole minutes."""
BATCH = 100


class Cron(Rounds):
    name = "cron"

    def __init__(
        self, term: int, store: CronStore, rules: CronRules, clock: Clock, *,
        leads: Callable[[], bool], on_submit: Callable[[], None],
        metrics: RoundMetrics | None = None, every: timedelta = LOOK,
    ) -> None:  # fmt: skip
        """leads: whether no other daemon can be the leader yet."""
        super().__init__(clock, every, metrics)
        self._term = term
        self._store = store
        self._rules = rules
        self._leads = leads
        self._on_submit = on_submit
        self._isolation = Isolation[DueCron](self.name, clock, metrics, key=lambda one: one.id)

    async def run_once(self) -> float | None:
        if not self._leads():
            return None
        limit = BATCH + len(self._isolation)
        due = await self._store.due(limit, self._clock.now())
        ready = self._isolation.ready(due)
        for one in ready:
            if not self._leads():
                break
            with self._isolation.guard(one):
                await self._occur(one)
                self._isolation.clear(one)
        return 0.0 if ready and len(due) == limit else None

    async def _occur(self, due: DueCron) -> None:
        now = self._clock.now()
        prepared, refusal = None, None
        if due.request is not None:
            try:
                self._rules.check_disk()
                prepared = await self._prepare(due, due.request, now)
            except Unavailable as error:
                # It stays due.
                log.warning("cron.postponed", extra={**_facts(due), "why": error.message})
                return
            except OdcError as error:
                refusal = error.code or "OD010", error.message
        request = None
        if prepared is not None:
            request = await compact_request(prepared.request, dict(self._rules.limits), Turns())
        texts = {} if prepared is None else prepared.texts
        outcome = await self._store.run(
            self._term, due, None if request is None else msgspec.json.encode(request).decode(),
            list(texts), list(texts.values()), refusal, now,
        )  # fmt: skip
        if outcome is None:
            return
        facts = {**_facts(due), "why": outcome.why} if outcome.why else _facts(due)
        if outcome.job_id is not None:
            facts["job_id"] = outcome.job_id
            self._on_submit()
        log.info(f"cron.{outcome.result}", extra=facts)

    async def _prepare(self, due: DueCron, request: str, now: datetime) -> Prepared:
        operator = self._rules.is_operator(due.user_name, due.uid)
        who = Identity(user=due.user_name, uid=due.uid, gid=due.gid, operator=operator)
        spec = cron_job(request_of(request), due.zone, now, self._rules.mail_to(who))
        passed = await prepare_filtered(
            who, [spec], kind="batch", submit_filter=self._rules.submit_filter, key=None,
            dry_run=False, check=self._rules.check, turns=Turns(),
        )  # fmt: skip
        return passed.prepared


def _facts(due: DueCron) -> dict[str, object]:
    return {"user": due.user_name, "line": due.line, "due_at": due.due_at.isoformat()}
