"""Signing in to the page: by a ticket that works once, or by a key. The cookie is valid only for
the page, and requests from other sites are refused."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest

from odcd.api.page import page_url
from odcd.records.api_keys import new_key
from odcd.records.page_keys import SESSION_LIFE, ticket_of
from tests.odcd.api.service import ALICE, BOB, OPERATOR
from tests.odcd.page.browse import OURS, Browsed, browse

AT_ONCE = "data-at-once"


def test_a_ticket_signs_a_browser_in_and_is_removed_from_the_address(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        ticket = await it.ticket()
        assert ticket["url"] == f"http://127.0.0.1:7070{ticket['path']}"
        async with it.client(None) as client:
            answer = await it.enter(client, ticket["ticket"])
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
            cookie = answer.headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=lax" in cookie
            assert "Secure" not in cookie
            life_s = int(re.findall(r"Max-Age=(\d+)", cookie)[0])
            assert 0 <= SESSION_LIFE.total_seconds() - life_s <= 1
            page = await client.get("/")
            assert page.status_code == 200
            assert "64001" in page.text  # who it is: this machine has no such user
            assert ticket["ticket"] not in page.text

    browse(database_url, work)


def test_over_https_the_cookie_is_secure(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        ticket = await it.ticket()
        async with it.client(None) as client:
            client.headers["x-forwarded-proto"] = "https"
            answer = await it.enter(client, ticket["ticket"])
            assert "Secure" in answer.headers["set-cookie"]

    browse(database_url, work)


def test_a_ticket_works_once_however_many_try(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        ticket = await it.ticket()

        async def enter() -> int:
            async with it.client(None) as client:
                return (await it.enter(client, ticket["ticket"])).status_code

        assert sorted(await asyncio.gather(*(enter() for _ in range(6)))) == [303] + [401] * 5

    browse(database_url, work)


def test_opening_a_login_link_neither_logs_in_nor_uses_the_ticket(database_url: str) -> None:
    """Programs that check links in messages open them, too."""

    async def work(it: Browsed) -> None:
        ticket = await it.ticket()
        async with it.client(None) as client:
            for method in ("HEAD", "GET", "GET"):
                answer = await client.request(method, ticket["path"])
                assert answer.status_code == 200
                assert "set-cookie" not in answer.headers
            assert "Log in as 64001" in answer.text
            assert (await client.get("/page/queue")).status_code == 401
            assert (await it.enter(client, ticket["ticket"])).status_code == 303

    browse(database_url, work)


def test_a_logged_in_user_confirms_before_becoming_another_user(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        ticket = await it.ticket(BOB)
        async with it.inside(ALICE) as client:
            kept = dict(client.cookies)
            response = await client.get(ticket["path"])
            assert AT_ONCE not in response.text
            assert "logged in as <b>64001</b>" in response.text
            assert "Log in as 64002" in response.text
            assert dict(client.cookies) == kept
            await it.enter(client, ticket["ticket"])
            assert "64002" in (await client.get("/page/queue")).text
        async with it.client(None) as client:  # no one stays signed in as alice
            client.cookies.update(kept)
            assert (await client.get("/page/queue")).status_code == 401

    browse(database_url, work)


def test_a_user_already_logged_in_is_not_asked_again(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async with it.inside(ALICE) as client:
            ticket = await it.ticket(ALICE)
            assert AT_ONCE in (await client.get(ticket["path"])).text
            assert (await it.enter(client, ticket["ticket"])).status_code == 303
            # Going back in the browser's history does no harm.
            again = await client.get(ticket["path"])
            assert (again.status_code, again.headers["location"]) == (303, "/")

    browse(database_url, work)


@pytest.mark.parametrize("alone", [True, False])
def test_a_daemon_of_one_user_asks_no_confirmation(database_url: str, alone: bool) -> None:
    """Only this user can have a ticket for it."""

    async def work(it: Browsed) -> None:
        ticket = await it.ticket()
        async with it.client(None) as client:
            assert (AT_ONCE in (await client.get(ticket["path"])).text) is alone
            assert (await client.get("/page/queue")).status_code == 401

    browse(database_url, work, serves_uid=ALICE.uid if alone else None)


def test_an_expired_ticket_is_refused(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        made = ticket_of()
        store, now = it.service.store, it.service.api.clock.now()
        who = await it.page._sessions._identifier._of_peer(ALICE)  # pyright: ignore
        assert await store.page_sessions.create_ticket(
            who, made, None, now - timedelta(seconds=61), now
        )
        async with it.client(None) as client:
            for answer in (
                await client.get(f"/page/enter?ticket={made.key}"),
                await it.enter(client, made.key), await it.enter(client, ""),
                await client.get("/page/enter"),
            ):  # fmt: skip
                assert answer.status_code == 401
                assert "set-cookie" not in answer.headers
                assert "That link was already used, or has expired." in answer.text

    browse(database_url, work)


def test_two_daemons_on_one_host_keep_their_sessions(database_url: str) -> None:
    """Both listen on 7070 of their own machines, and are forwarded to ports of this one."""

    async def work(it: Browsed) -> None:
        jars: list[dict[str, str]] = []
        for host in ("127.0.0.1:7071", "127.0.0.1:7072", "odc.example", "[::1]", "[::1]:7071"):
            ticket = await it.ticket()
            async with it.client(None) as client:
                headers = {"host": host, "origin": f"http://{host}"}
                form = {"ticket": ticket["ticket"]}
                answer = await client.post("/page/enter", data=form, headers=headers)
                assert answer.status_code == 303
                jars.append(dict(client.cookies))
                page = await client.get("/page/queue", headers=headers)
                assert page.status_code == 200
        assert [*map(list, jars)] == [
            ["odc-page-7071"], ["odc-page-7072"], ["odc-page"], ["odc-page"], ["odc-page-7071"],
        ]  # fmt: skip

    browse(database_url, work)


def test_tickets_and_sessions_are_not_api_keys(database_url: str) -> None:
    """Neither the cookie nor its value opens /v1, so no other site can."""

    async def work(it: Browsed) -> None:
        ticket = await it.ticket()
        async with it.client(None) as client:
            as_key = {"authorization": f"Bearer {ticket['ticket']}"}
            assert (await client.get("/v1/jobs", headers=as_key)).status_code == 401
        async with it.inside() as client:
            assert (await client.get("/page/queue")).status_code == 200
            assert (await client.get("/v1/jobs")).status_code == 401
            assert (await client.post("/v1/jobs/cancel", json={"all": True})).status_code == 401
            for value in client.cookies.values():
                as_key = {"authorization": f"Bearer {value}"}
                assert (await client.get("/v1/jobs", headers=as_key)).status_code == 401

    browse(database_url, work)


def test_an_api_key_is_not_accepted_as_a_cookie(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        made = new_key()
        who = await it.page._sessions._identifier._of_peer(ALICE)  # pyright: ignore
        await it.service.store.keys.create(who, made, it.service.api.clock.now(), SESSION_LIFE)
        async with it.client(None) as client:
            client.cookies.set("odc-page-7070", made.key)
            client.cookies.set("odc-page", made.key)
            assert (await client.get("/page/queue")).status_code == 401
            # But it can be exchanged for one.
            client.cookies.clear()
            answer = await client.post("/page/key", data={"key": f" {made.key}\n"}, headers=OURS)
            assert answer.status_code == 303
            assert (await client.get("/page/queue")).status_code == 200
            wrong = await client.post("/page/key", data={"key": "odc_wrong"}, headers=OURS)
            assert wrong.status_code == 401
            assert "odc_wrong" not in wrong.text

    browse(database_url, work)


def test_cookies_of_other_programs_on_the_host_do_no_harm(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async with it.inside() as client:
            [(name, value)] = client.cookies.items()
        async with it.client(None) as client:
            cookies = f'view={{"x": [1, 2]}}; {name}={value}; a b; =c'
            answer = await client.get("/page/queue", headers={"cookie": cookies})
            assert answer.status_code == 200

    browse(database_url, work)


def test_a_logged_out_cookie_is_invalid(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async with it.inside() as client:
            kept = dict(client.cookies)
            assert (await client.post("/page/leave", headers=OURS)).status_code == 303
        async with it.client(None) as client:
            for name, value in kept.items():
                client.cookies.set(name, value)
            assert (await client.get("/page/queue")).status_code == 401

    browse(database_url, work)


PATHS = [
    "/", "/page/queue", "/page/nodes", "/page/plan", "/page/ended", "/page/jobs/1",
    "/page/jobs/1/why", "/page/jobs/1/logs", "/page/mine.css", "/page/live?of=/",
]  # fmt: skip


def test_views_require_a_login(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        await it.service.submit(name="secretname")
        async with it.client(None) as client:
            for path in PATHS:
                answer = await client.get(path)
                assert answer.status_code == 401, path
                assert "secretname" not in answer.text
                assert "odcctl page" in answer.text

    browse(database_url, work)


def test_programs_that_request_the_root_get_json(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async with it.client(None) as client:
            answer = await client.get("/", headers={"accept": "*/*"})
            assert answer.status_code == 200
            assert answer.json()["version"]
            assert (await client.get("/health")).status_code == 200

    browse(database_url, work)


FOREIGN: list[dict[str, str]] = [
    {},
    {"origin": "http://evil.example", "sec-fetch-site": "cross-site"},
    {"origin": "http://evil.example"},
    {"origin": "null", "sec-fetch-site": "cross-site"},
    {"origin": "http://odc:7071", "sec-fetch-site": "same-site"},
    {"origin": "http://odc:7070", "sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "none"},
    {"origin": "http://[", "sec-fetch-site": "same-origin"},
]


@pytest.mark.parametrize("what", ["cancel", "extend", "leave", "theme", "key", "enter"])
def test_requests_of_another_site_are_refused(database_url: str, what: str) -> None:
    async def work(it: Browsed) -> None:
        job_id = await it.service.submit()
        ticket = (await it.ticket(BOB))["ticket"]
        form = {"sure": "yes", "hours": "1", "key": "x", "ticket": ticket}
        path = f"/page/jobs/{job_id}/{what}" if what in ("cancel", "extend") else f"/page/{what}"
        async with it.inside() as client:
            for headers in FOREIGN:
                answer = await client.post(path, data=form, headers=headers)
                assert answer.status_code == 403, headers
                assert "Wrong origin" in answer.text
                assert "set-cookie" not in answer.headers
            assert (await client.get("/page/queue")).status_code == 200
        async with it.client() as client:
            job = (await client.get(f"/v1/jobs/{job_id}", headers={"accept": "*/*"})).json()
            assert job["jobs"][0]["state"] == "PENDING"

    browse(database_url, work)


@pytest.mark.parametrize(("peer", "may"), [(ALICE, True), (OPERATOR, True), (BOB, False)])
def test_owner_and_operators_cancel_and_extend(database_url: str, peer: Any, may: bool) -> None:
    async def work(it: Browsed) -> None:
        job_id = await it.service.submit(time_limit_s=3600)
        path = f"/page/jobs/{job_id}"
        async with it.inside(peer) as client:
            assert ("Yes, cancel it" in (await client.get(path)).text) is may
            first = await client.post(f"{path}/extend", data={"hours": "2"}, headers=OURS)
            assert first.status_code == (200 if may else 403)
            done = await client.post(
                f"{path}/extend", data={"hours": "2", "sure": "yes"}, headers=OURS
            )
            assert done.status_code == (303 if may else 403)
            unsure = await client.post(f"{path}/cancel", data={}, headers=OURS)
            assert unsure.status_code == 400
            done = await client.post(f"{path}/cancel", data={"sure": "yes"}, headers=OURS)
            assert done.status_code == (303 if may else 403)
            logs = await client.get(f"{path}/logs")
            assert logs.status_code == (200 if may else 403)
        async with it.client() as client:
            answer = await client.get(f"/v1/jobs/{job_id}", headers={"accept": "*/*"})
            job = answer.json()["jobs"][0]
            assert (job["state"] == "CANCELLED") is may
            assert job["time_limit_s"] == (10_800 if may else 3600)

    browse(database_url, work)


@pytest.mark.parametrize("task", [0, 1])
def test_a_tasks_page_cancels_that_task_alone(database_url: str, task: int) -> None:
    """The last task of an array has the array's own id."""

    async def work(it: Browsed) -> None:
        array = await it.service.submit(gpus=4, array="0-1")
        assert len(await it.service.plan()) == 2
        async with it.inside() as client:
            page = (await client.get(f"/page/jobs/{array}_{task}")).text
            [path] = re.findall(r'action="(/page/jobs/[^"]*/cancel)"', page)
            await client.post(path, data={"sure": "yes"}, headers=OURS)
            rows = (await client.get(f"/page/jobs/{array}")).text
            assert f'href="/page/jobs/{array}_{task}"' in rows
        cancelled = await it.service.database.fetch(
            "select j.array_task_id from odc.event as e join odc.job as j on j.id = e.job_id "
            "where e.kind = 'cancelled'"
        )
        assert [row["array_task_id"] for row in cancelled] == [task]

    browse(database_url, work)


@pytest.mark.parametrize(("peer", "may"), [(ALICE, True), (OPERATOR, True), (BOB, False)])
def test_the_page_of_an_array_cancels_its_remaining_tasks(
    database_url: str, peer: Any, may: bool
) -> None:
    async def work(it: Browsed) -> None:
        array = await it.service.submit(gpus=4, array="0-3")
        other = await it.service.submit(gpus=8, hold=True)
        path = f"/page/jobs/{array}"
        began = await it.service.plan()
        assert len(began) == 2
        await it.service.end(began[0])
        async with it.inside(peer) as client:
            actions = re.findall(
                r'action="(/page/jobs/[^"]*/cancel)"', (await client.get(path)).text
            )
            assert actions == ([f"{path}/cancel"] if may else [])
            unsure = await client.post(f"{path}/cancel", data={}, headers=OURS)
            assert unsure.status_code == 400
            done = await client.post(f"{path}/cancel", data={"sure": "yes"}, headers=OURS)
            assert done.status_code == (303 if may else 403)
        states = await it.service.database.fetch(
            "select coalesce(r.intent::text, j.state::text, 'waits') as state from odc.job as j "
            "left join odc.running as r on r.job_id = j.id where j.id <> $1 order by 1", other,
        )  # fmt: skip
        left = ["CANCELLED", "COMPLETED", "cancel"] if may else ["COMPLETED", "waits", "waits"]
        assert [row["state"] for row in states] == left
        if may:
            await it.service.end(began[1])
            async with it.inside(peer) as client:
                assert "cancel them" not in (await client.get(path)).text
        async with it.inside(OPERATOR) as client:
            assert "Yes, cancel it" in (await client.get(f"/page/jobs/{other}")).text

    browse(database_url, work)


def test_the_theme_leads_back_to_the_page_and_nowhere_else(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async with it.client(None) as client:
            for referer, back in (
                ("http://odc:7070/page/queue?user=a", "/page/queue?user=a"),
                ("http://odc:7070//evil.example/", "/"), ("http://[", "/"),
            ):  # fmt: skip
                headers = {**OURS, "referer": referer}
                answer = await client.post("/page/theme", headers=headers)
                assert (answer.status_code, answer.headers["location"]) == (303, back)

    browse(database_url, work)


@pytest.mark.parametrize(
    ("path", "back"),
    [("/page/jobs/7_3/extend", "/page/jobs/7_3"), ("/page/jobs/7/cancel", "/page/jobs/7"),
     ("/page/key", "/"), ("/page/leave", "/"), ("/page/theme", "/")],
)  # fmt: skip
def test_the_address_of_a_form_redirects_to_its_page(
    database_url: str, path: str, back: str
) -> None:
    async def work(it: Browsed) -> None:
        async with it.inside() as client:
            pressed = {**OURS, "referer": f"http://odc:7070{path}"}
            answer = await client.post("/page/theme", headers=pressed)
            answer = await client.get(answer.headers["location"])
            assert (answer.status_code, answer.headers["location"]) == (303, back)

    browse(database_url, work)


def test_a_daemon_on_its_socket_alone_has_no_page_to_show(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        async with it.client(ALICE) as client:
            answer = await client.post("/v1/page/tickets")
            assert (answer.status_code, answer.json()["code"]) == (409, "OD012")
            assert "--listen" in answer.json()["hint"]

    browse(database_url, work, listens=lambda: [])


def test_addresses_that_a_browser_can_open() -> None:
    assert page_url("0.0.0.0", 7070) == "http://127.0.0.1:7070"
    assert page_url("::", 7070) == "http://[::1]:7070"
    assert page_url("::1", 1) == "http://[::1]:1"
    assert page_url("10.0.0.1", 80) == "http://10.0.0.1:80"
