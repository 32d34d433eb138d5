"""Send the notifications of the outbox. Runs on the leader only.

Each is sent at least once. It is sent again only if the receiver may have accepted it and odcd
could not record that: the answer was lost, or the daemon ended between the two. Its key is the same
then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

from odcd.clock import Clock
from odcd.isolation import Isolation
from odcd.loops.rounds import RoundMetrics, Rounds
from odcd.notify.mail import MailConnection, Mailer, MailServerFailed
from odcd.notify.settings import NotifySettings
from odcd.notify.templates import read_templates
from odcd.notify.webhooks import Outcome, Webhooks
from odcd.records.notification import Channel, Notification
from odcd.stores.notifications import NotificationStore

log = logging.getLogger(__name__)

LOOK = timedelta(seconds=2)
"""How often the outbox is checked. The database does not wake these loops: that would be a query
for each change of any job."""
CLAIM = timedelta(minutes=5)
STOP_S = 150.0
"""The batch is ended before its claim ends: one mail takes 80 s at most."""
MAILS = 20
WEBHOOKS = 8
RETRY_S = (30.0, 3600.0)
"""Before the second try of a notification, and the longest pause. Each is twice the last."""
PAUSE_S = (5.0, 300.0)
"""The same for the mail server."""
GIVE_UP = timedelta(days=3)
KEEP = timedelta(days=14)
TIDY_S = 600.0
TIDIED = 1000


class NotificationMetrics(RoundMetrics, Protocol):
    def notified(self, channel: str, result: str) -> None:
        """result: sent, retried or given_up."""
        ...


class _Sender(Rounds):
    """The common parts of both channels."""

    channel: Channel

    def __init__(
        self, term: int, store: NotificationStore, clock: Clock, *, leads: Callable[[], bool],
        metrics: NotificationMetrics | None = None, every: timedelta = LOOK,
    ) -> None:  # fmt: skip
        """leads: whether no other daemon can be the leader yet."""
        super().__init__(clock, every, metrics)
        self._term = term
        self._store = store
        self._leads = leads
        self._counts = metrics
        self._isolation = Isolation[Notification](self.name, clock, metrics, key=lambda one: one.id)

    async def _take(self, limit: int) -> list[Notification]:
        now = self._clock.now()
        if not self._leads() or not await self._store.has_due(self.channel, now):
            return []
        return await self._store.take(self._term, self.channel, limit, CLAIM, now)

    async def _record(self, one: Notification, outcome: Outcome) -> None:
        now = self._clock.now()
        if outcome.of == "sent":
            await self._store.note_sent([one.id], now)
            self._count("sent")
            return
        facts = {"channel": self.channel, "notification": one.id, "user": one.user_name}
        if outcome.of == "retry":
            pause = timedelta(seconds=min(RETRY_S[0] * 2 ** min(one.tries - 1, 20), RETRY_S[1]))
            await self._store.note_unsent(self._term, [one.id], now + pause, outcome.why, now)
            log.info("notification.retried", extra={**facts, "why": outcome.why})
            self._count("retried")
            return
        await self._store.note_unsent(self._term, [one.id], None, outcome.why, now)
        log.warning("notification.given_up", extra={**facts, "why": outcome.why})
        self._count("given_up")

    async def _return(self, ones: Sequence[Notification]) -> None:
        """They were not tried."""
        if ones:
            now = self._clock.now()
            await self._store.note_unsent(self._term, [one.id for one in ones], now, None, now)

    def _count(self, result: str, times: int = 1) -> None:
        for _ in range(times if self._counts is not None else 0):
            assert self._counts is not None
            self._counts.notified(self.channel, result)


class Mails(_Sender):
    name = "mail"
    channel = "mail"

    def __init__(
        self, term: int, store: NotificationStore, mailer: Mailer, clock: Clock, *,
        per_minute: int, leads: Callable[[], bool], metrics: NotificationMetrics | None = None,
        every: timedelta = LOOK, pause_s: tuple[float, float] = PAUSE_S,
    ) -> None:  # fmt: skip
        super().__init__(term, store, clock, leads=leads, metrics=metrics, every=every)
        self._mailer = mailer
        self._gap_s = 60.0 / per_minute
        self._pauses_s = pause_s
        self._pause_s: float | None = None
        """The last pause, while the server fails."""
        self._next_s = 0.0

    async def run_once(self) -> float | None:
        """Send one batch; return the seconds until the next round."""
        taken = await self._take(MAILS)
        if not taken:
            return None
        ready = self._isolation.ready(taken)
        left = list(ready)
        began_s = self._clock.monotonic()
        try:
            async with self._mailer.connect() as connection:
                while left and self._leads() and self._clock.monotonic() - began_s < STOP_S:
                    await self._keep_rate()
                    await self._send(connection, left[0])
                    left.pop(0)
        except MailServerFailed as error:
            return await self._rest(left, str(error), sent=len(ready) - len(left))
        if self._pause_s is not None:
            log.info("mail.recovered")
            self._pause_s = None
        await self._return(left)
        return 0.0

    async def _send(self, connection: MailConnection, one: Notification) -> None:
        """Raises MailServerFailed, which is no fault of the notification."""
        failure: MailServerFailed | None = None
        with self._isolation.guard(one, job_id=one.job_id):
            try:
                outcome = await connection.send(one)
            except MailServerFailed as error:
                failure = error
            else:
                await self._record(one, outcome)
        if failure is not None:
            raise failure

    async def _keep_rate(self) -> None:
        now_s = self._clock.monotonic()
        if self._next_s > now_s:
            await self._clock.sleep(self._next_s - now_s)
        self._next_s = max(now_s, self._next_s) + self._gap_s

    async def _rest(self, left: Sequence[Notification], why: str, *, sent: int) -> float:
        """The server may have failed because of the first one left: it waits longer each time, so
        the others come before it. sent: before the failure."""
        first_s, most_s = self._pauses_s
        if sent:
            self._pause_s = None
        log.log(
            logging.ERROR if self._pause_s is None else logging.WARNING,
            "mail.server_failed", extra={"why": why},
        )  # fmt: skip
        self._pause_s = first_s if self._pause_s is None else min(2 * self._pause_s, most_s)
        now = self._clock.now()
        why = f"the mail server {why}"
        longer_s = min(self._pause_s * 2 ** min(left[0].tries, 10), RETRY_S[1]) if left else 0.0
        for some, pause_s in ((left[:1], longer_s), (left[1:], self._pause_s)):
            if some:
                retry_at = now + timedelta(seconds=pause_s)
                ids = [one.id for one in some]
                await self._store.note_unsent(self._term, ids, retry_at, why, now)
        self._count("retried", len(left))
        return self._pause_s


class WebhookPosts(_Sender):
    name = "webhooks"
    channel = "webhook"

    def __init__(
        self, term: int, store: NotificationStore, webhooks: Webhooks, clock: Clock, *,
        leads: Callable[[], bool], metrics: NotificationMetrics | None = None,
        every: timedelta = LOOK,
    ) -> None:  # fmt: skip
        super().__init__(term, store, clock, leads=leads, metrics=metrics, every=every)
        self._webhooks = webhooks

    async def run_once(self) -> float | None:
        """Send what is due, WEBHOOKS at a time and one of each user: a webhook that answers slowly
        keeps its place, and the others take turns in the rest."""
        sending = {asyncio.create_task(self._send(one)) for one in await self._ready(WEBHOOKS)}
        if not sending:
            return None
        try:
            while sending:
                done, sending = await asyncio.wait(
                    sending, timeout=LOOK.total_seconds(), return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    task.result()
                more = await self._ready(WEBHOOKS - len(sending))
                sending |= {asyncio.create_task(self._send(one)) for one in more}
        finally:
            for task in sending:
                task.cancel()
            await asyncio.gather(*sending, return_exceptions=True)
        return 0.0

    async def _ready(self, limit: int) -> list[Notification]:
        return self._isolation.ready(await self._take(limit)) if limit else []

    async def _send(self, one: Notification) -> None:
        with self._isolation.guard(one, job_id=one.job_id):
            await self._record(one, await self._webhooks.send(one))


class OutboxKeeper(Rounds):
    """Adds notifications about time limits; gives up and deletes old ones."""

    name = "outbox"

    def __init__(
        self, term: int, store: NotificationStore, clock: Clock, settings: NotifySettings,
        every: timedelta, metrics: NotificationMetrics | None = None,
    ) -> None:  # fmt: skip
        super().__init__(clock, every, metrics)
        self._term = term
        self._store = store
        self._settings = settings
        self._counts = metrics
        self._configured = False
        self._tidied_s: float | None = None

    async def run_once(self) -> float | None:
        now = self._clock.now()
        if not self._configured:
            own = self._settings
            await self._store.configure(
                self._term, mail=own.sends_mail, per_hour=own.per_hour, now=now
            )
            self._configured = True
        await self._store.note_time_limits(self._term, now)
        if self._tidied_s is None or self._clock.monotonic() - self._tidied_s >= TIDY_S:
            self._tidied_s = self._clock.monotonic()
            await self._tidy()
        return None

    async def _tidy(self) -> None:
        more = True
        while more:
            now = self._clock.now()
            given_up, more = await self._store.tidy(
                self._term, now - GIVE_UP, now - KEEP, TIDIED, now
            )
            for channel in given_up:
                if self._counts is not None:
                    self._counts.notified(channel, "given_up")
            if given_up:
                log.warning("notification.given_up", extra={"notifications": len(given_up)})


def notification_loops(
    term: int, store: NotificationStore, clock: Clock, settings: NotifySettings, every: timedelta,
    leads: Callable[[], bool], metrics: NotificationMetrics,
) -> list[Rounds]:  # fmt: skip
    loops: list[Rounds] = [OutboxKeeper(term, store, clock, settings, every, metrics)]
    if settings.sends_mail:
        loops.append(
            Mails(
                term,
                store,
                Mailer(settings),
                clock,
                per_minute=settings.smtp_per_minute,
                leads=leads,
                metrics=metrics,
            )
        )
    if settings.webhooks:
        webhooks = Webhooks(settings.webhook_networks, read_templates())
        loops.append(WebhookPosts(term, store, webhooks, clock, leads=leads, metrics=metrics))
    return loops
