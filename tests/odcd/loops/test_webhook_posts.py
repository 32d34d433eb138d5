"""Notifications of the outbox reach webhooks, in order, and one that fails delays no other user."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from datetime import timedelta

import pytest

from odcd.database.pool import Database
from odcd.loops.notifications import GIVE_UP, OutboxKeeper, WebhookPosts, notification_loops
from odcd.metrics import Metrics
from odcd.notify.settings import NotifySettings
from odcd.notify.templates import read_templates
from odcd.notify.webhooks import Webhooks
from odcd.stores.notifications import NotificationStore
from tests.odcd.loops.sending import Later
from tests.odcd.notify.test_webhooks import LOCAL, Sink, a_sink


def a_poster(
    database: Database, ahead_s: float = 0, metrics: Metrics | None = None
) -> WebhookPosts:
    return WebhookPosts(
        0, NotificationStore(database), Webhooks(LOCAL, read_templates()),
        Later(timedelta(seconds=ahead_s)), leads=lambda: True,
        metrics=None if metrics is None else metrics.rounds,
    )  # fmt: skip


async def a_hook(database: Database, uid: int, sink: Sink) -> None:
    await database.execute(
        "insert into odc.webhook values ($1, 'u' || $1::integer, $2, '{end}', now())", uid, sink.url
    )


async def fill(database: Database, uid: int, count: int) -> None:
    await database.execute(
        "insert into odc.outbox (created_at, uid, user_name, channel, kind, facts, next_at) "
        "select now(), $1::integer, 'u' || $1::integer, 'webhook', 'end', "
        "jsonb_build_object('job', n::text, 'name', 'x'), now() from generate_series(1, $2) as n",
        uid, count,
    )  # fmt: skip


async def drain(database: Database, ahead_s: float = 0) -> None:
    poster = a_poster(database, ahead_s)
    while await poster.run_once() is not None:
        pass


def test_a_webhook_that_fails_delays_no_other_and_gets_all_in_order_later(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with (
            Database(database_url, size=4) as database,
            a_sink() as good,
            a_sink(status=503) as bad,
        ):
            await a_hook(database, 1, bad)
            await a_hook(database, 2, good)
            await fill(database, 1, 20)
            await fill(database, 2, 20)
            await drain(database)
            assert len(good.keys) == len(set(good.keys)) == 20
            assert [body["odc"]["job"] for body in good.bodies] == [str(n) for n in range(1, 21)]
            assert len(bad.keys) == 1
            bad.status = 200
            await drain(database, ahead_s=31)
            assert [body["odc"]["job"] for body in bad.bodies] == [
                "1", *(str(n) for n in range(1, 21))
            ]  # fmt: skip
            assert bad.keys[0] == bad.keys[1], "the same notification has the same key"
            left = "select count(*) from odc.outbox where sent_at is null"
            assert await database.fetchval(left) == 0

    with caplog.at_level(logging.DEBUG):
        asyncio.run(work())
    # Not what the server of the test logs.
    own = [one.__dict__ for one in caplog.records if not one.name.startswith("aiohttp.access")]
    assert "answered 503" in str(own)
    assert "secret" not in str(own)


def test_what_fails_for_three_days_is_given_up_and_counted(database_url: str) -> None:
    metrics = Metrics()

    async def work() -> None:
        async with Database(database_url, size=4) as database, a_sink(status=500) as bad:
            await a_hook(database, 1, bad)
            await fill(database, 1, 2)
            await a_poster(database, metrics=metrics).run_once()
            keeper = OutboxKeeper(
                0, NotificationStore(database), Later(GIVE_UP + timedelta(minutes=1)),
                NotifySettings(), timedelta(seconds=30), metrics.rounds,
            )  # fmt: skip
            await keeper.run_once()
            rows = await database.fetch(
                "select trouble from odc.outbox where failed_at is not null order by id"
            )
            assert len(rows) == 2
            assert "answered 500" in rows[0]["trouble"]

    asyncio.run(work())
    text = metrics.expose(None, None)[0].decode()
    assert 'odcd_notifications_total{channel="webhook",result="retried"} 1.0' in text
    assert 'odcd_notifications_total{channel="webhook",result="given_up"} 2.0' in text


def test_a_daemon_without_a_mail_server_sends_no_mail_and_a_leader_in_doubt_nothing(
    database_url: str,
) -> None:
    networks = (ipaddress.ip_network("127.0.0.0/8"),)

    async def work() -> None:
        async with Database(database_url, size=4) as database, a_sink() as sink:
            await a_hook(database, 1, sink)
            await fill(database, 1, 1)
            certain = [False]
            loops = notification_loops(
                0, NotificationStore(database), Later(timedelta()),
                NotifySettings(webhook_networks=networks), timedelta(seconds=30),
                lambda: certain[0], Metrics().rounds,
            )  # fmt: skip
            assert [loop.name for loop in loops] == ["outbox", "webhooks"]
            for loop in loops:
                await loop.run_once()
            assert sink.keys == []
            certain[0] = True
            await loops[1].run_once()
            assert len(sink.keys) == 1

    asyncio.run(work())
