"""Mails of the outbox reach a real mail server, whatever fails: none lost, none doubled."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trustme

from odcd.database.pool import Database
from odcd.errors import LeadershipLost
from tests.odcd.loops.sending import a_sender
from tests.support.fakes.mail_server import MailServer, a_mail_server

ROOT = Path(__file__).parents[3]
Work = Callable[[Database], Awaitable[None]]


def with_database(url: str, work: Work) -> None:
    async def whole() -> None:
        async with Database(url, size=4) as database:
            async with asyncio.timeout(600):
                await work(database)

    asyncio.run(whole())


async def fill(database: Database, count: int, name: str = "train") -> None:
    """As many mails, each to an address of its own."""
    await database.execute(
        "insert into odc.outbox (created_at, uid, user_name, channel, address, kind, facts, "
        "next_at) select now(), n, 'u' || n, 'mail', 'u' || n || '@example.org', 'end', "
        "jsonb_build_object('job', n::text, 'name', $2::text, 'state', 'COMPLETED', 'run_s', 1), "
        "now() from generate_series(1, $1) as n",
        count, name,
    )  # fmt: skip


async def waiting(database: Database) -> int:
    return await database.fetchval("select count(*) from odc.outbox where next_at is not null")


MANY = int(os.environ.get("ODC_MAILS", "2000"))


async def until_empty(database: Database, server: MailServer, **fields: object) -> None:
    sender = a_sender(database, server.port, **fields)  # type: ignore[arg-type]
    while await waiting(database):
        pause_s = await sender.run_once()
        await asyncio.sleep(0.01 if pause_s is None else pause_s)


@pytest.mark.parametrize("count", [200, pytest.param(MANY, marks=pytest.mark.long)])
def test_a_failing_mail_server_loses_and_doubles_nothing(database_url: str, count: int) -> None:
    async def work(database: Database) -> None:
        await fill(database, count)
        async with a_mail_server(busy=True) as server:
            sender = a_sender(database, server.port)
            for _ in range(5):
                assert await sender.run_once() is not None
            assert server.received == []
            assert await waiting(database) == count
            server.busy = False
            sending = asyncio.create_task(until_empty(database, server))
            while len(server.received) < count // 2:
                await asyncio.sleep(0.01)
            server.busy = True
            reached = len(server.received)
            while len(server.received) > reached:
                reached = len(server.received)
                await asyncio.sleep(0.1)
            server.busy = False
            await sending
            assert Counter(server.recipients) == Counter(
                f"u{n}@example.org" for n in range(1, count + 1)
            )
            assert len(set(server.ids)) == count

    with_database(database_url, work)


def test_a_mail_at_which_the_server_fails_does_not_stop_the_others(database_url: str) -> None:
    """Before: it was the first again after each pause, so nothing was sent for three days."""

    async def work(database: Database) -> None:
        await fill(database, 10)
        answer = "421 4.3.2 Closing the connection"
        closes = {"u1@example.org": answer, "u4@example.org": answer}
        async with a_mail_server(refused=closes) as server:
            sender = a_sender(database, server.port)
            while await waiting(database) > 2:
                await asyncio.sleep(await sender.run_once() or 0.01)
            assert Counter(server.recipients) == Counter(
                f"u{n}@example.org" for n in range(1, 11) if n not in (1, 4)
            )

    with_database(database_url, work)


def test_nothing_is_lost_while_there_is_no_mail_server(database_url: str) -> None:
    async def work(database: Database) -> None:
        await fill(database, 3)
        async with a_mail_server() as server:
            pass
        sender = a_sender(database, server.port)
        pauses = [await sender.run_once() for _ in range(2)]
        assert pauses[0] == 0.01
        assert await waiting(database) == 3

    with_database(database_url, work)


def test_only_a_mail_whose_answer_was_lost_is_sent_again_with_the_same_id(
    database_url: str,
) -> None:
    """SMTP cannot tell whether the server kept such a mail; its Message-ID lets receivers."""

    async def work(database: Database) -> None:
        await fill(database, 10)
        async with a_mail_server(lost={3}) as server:
            await until_empty(database, server)
            doubled = {key for key, times in Counter(server.ids).items() if times > 1}
            assert doubled == {server.ids[2]}
            assert len(server.ids) == 11

    with_database(database_url, work)


def test_a_refused_address_is_given_up_and_a_busy_one_retried(database_url: str) -> None:
    async def work(database: Database) -> None:
        await fill(database, 3)
        refused = {"u1@example.org": "550 5.1.1 no such user", "u2@example.org": "450 greylisted"}
        async with a_mail_server(refused=refused) as server:
            await a_sender(database, server.port).run_once()
            assert server.recipients == ["u3@example.org"]
            rows = await database.fetch(
                "select failed_at is not null as failed, trouble from odc.outbox order by id"
            )
            assert [row["failed"] for row in rows] == [True, False, False]
            assert "550 5.1.1 no such user" in rows[0]["trouble"]
            assert "450 greylisted" in rows[1]["trouble"]
            server.refused = {}
            assert await a_sender(database, server.port, ahead_s=29).run_once() is None
            await a_sender(database, server.port, ahead_s=31).run_once()
            assert server.recipients == ["u3@example.org", "u2@example.org"]
            kinds = await database.fetch("select kind from odc.event where kind like 'notif%'")
            assert [row["kind"] for row in kinds] == ["notification_failed"]

    with_database(database_url, work)


def test_two_leaders_send_each_mail_once(database_url: str) -> None:
    """Each believes that it leads. Once the term is raised, the old one takes nothing more."""

    async def work(database: Database) -> None:
        await fill(database, 100)
        async with a_mail_server() as server:
            await asyncio.gather(until_empty(database, server), until_empty(database, server))
            assert sorted(Counter(server.recipients).values()) == [1] * 100
            await fill(database, 1)
            await database.execute("update odc.term set term = 1")
            with pytest.raises(LeadershipLost):
                await a_sender(database, server.port, term=0).run_once()
            await a_sender(database, server.port, term=1).run_once()
            assert len(server.received) == 101

    with_database(database_url, work)


def test_a_leader_that_is_killed_loses_nothing_and_doubles_at_most_one(database_url: str) -> None:
    async def work(database: Database) -> None:
        await fill(database, 60)
        reached = asyncio.Event()
        async with a_mail_server() as server:
            server.on_message = lambda: reached.set() if len(server.received) == 25 else None
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.odcd.loops.sending", database_url, str(server.port),
                cwd=ROOT,
            )  # fmt: skip
            try:
                await reached.wait()
            finally:
                process.kill()
                await process.wait()
            sent = len(server.received)
            await until_empty(database, server, ahead_s=400)
            assert set(server.recipients) == {f"u{n}@example.org" for n in range(1, 61)}
            assert len(server.ids) - len(set(server.ids)) <= 1
            assert sent < 60

    with_database(database_url, work)


def test_a_login_is_encrypted_and_no_secret_is_logged(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    password = tmp_path / "password"
    password.write_text("wrong-secret-1\n")
    login = {"smtp_tls": "starttls", "smtp_ca": tmp_path / "ca.pem", "smtp_user": "odc",
             "smtp_password_file": password}  # fmt: skip

    async def work(database: Database) -> None:
        await fill(database, 2)
        async with a_mail_server(context, login=True) as server:
            with caplog.at_level(logging.DEBUG):
                sender = a_sender(database, server.port, **login)  # type: ignore[arg-type]
                assert await sender.run_once() == 0.01
                assert await waiting(database) == 2
                password.write_text("correct-secret-2")
                await asyncio.sleep(0.02)
                await sender.run_once()
                untrusting = a_sender(
                    database,
                    server.port,
                    **{**login, "smtp_ca": None},  # type: ignore[arg-type]
                )
                await fill(database, 1)
                assert await untrusting.run_once() == 0.01
            assert len(server.received) == 2
            assert server.encrypted == [True, True]
            assert server.logins[-1] == "odc"

    with_database(database_url, work)
    # Not what the mail server of the test logs.
    own = [record.__dict__ for record in caplog.records if not record.name.startswith("mail.")]
    told = str(own).replace(str(tmp_path), "")
    assert "rejected the login: 535" in told
    assert "secret" not in told


def test_a_name_with_line_breaks_adds_no_recipient(database_url: str) -> None:
    async def work(database: Database) -> None:
        await fill(database, 1, "x\r\nBcc: evil@example.org\r\n.\r\nRCPT TO:<evil@example.org>")
        async with a_mail_server() as server:
            await until_empty(database, server)
            assert server.recipients == ["u1@example.org"]
            [message] = server.received
            assert message["Bcc"] is None
            assert message["Subject"].startswith("Job 1 (x Bcc: evil@example.org")

    with_database(database_url, work)
