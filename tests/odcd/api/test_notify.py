"""/v1/users/me/webhook, and the mail of jobs that are submitted."""

from __future__ import annotations

import ipaddress
from typing import Any

import msgspec

from odcd.api.answers.notify import Webhook, WebhookTest
from odcd.notify.settings import NotifySettings
from tests.odcd.api.service import ALICE, BOB, BODY, Service, serve

PATH = "/v1/users/me/webhook"
LOCAL = NotifySettings(
    webhook_networks=(ipaddress.ip_network("127.0.0.0/8"),), smtp_host="mail", mail_domain="x.org"
)
URL = "http://127.0.0.1:9/secret"


async def ask(
    service: Service, method: str, path: str = PATH, body: Any = None, *, peer: Any = ALICE
) -> Any:
    async with service.client(peer) as client:
        return await client.request(method, path, json=body)


def hook_of(answer: Any) -> Webhook:
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=Webhook)


def test_a_webhook_is_set_shown_tested_and_removed(database_url: str) -> None:
    async def work(service: Service) -> None:
        assert hook_of(await ask(service, "GET")).url is None
        made = hook_of(await ask(service, "PUT", body={"url": URL}))
        assert made.url == "http://127.0.0.1:9/…"
        assert made.events == ["begin", "end", "fail", "expiry", "drain"]
        changed = hook_of(await ask(service, "PUT", body={"url": URL, "events": ["fail"]}))
        assert changed.events == ["fail"]
        assert hook_of(await ask(service, "GET", peer=BOB)).url is None, "each has their own"
        answer = await ask(service, "POST", f"{PATH}/test")
        assert answer.status_code == 201, answer.text
        number = msgspec.json.decode(answer.content, type=WebhookTest).id
        shown = hook_of(await ask(service, "GET"))
        assert [(one.id, one.kind, one.channel) for one in shown.recent] == [
            (number, "test", "webhook")
        ]
        assert hook_of(await ask(service, "DELETE")).url is None
        for method, path in (("DELETE", PATH), ("POST", f"{PATH}/test")):
            refused = await ask(service, method, path)
            assert refused.status_code == 400
            assert "you have no webhook" in refused.json()["detail"]

    serve(database_url, work, notify=LOCAL)


def test_a_webhook_inside_is_refused_and_nothing_changes(database_url: str) -> None:
    async def work(service: Service) -> None:
        for url in (URL, "https://localhost/x", "https://169.254.169.254/x", "https://[::1]/"):
            refused = await ask(service, "PUT", body={"url": url})
            assert refused.status_code == 400, url
            assert "ODC_WEBHOOK_NETWORKS" in refused.json()["hint"]
        refused = await ask(service, "PUT", body={"url": "https://u:secret@a.b/c"})
        assert refused.status_code == 400
        assert "secret" not in refused.text
        unknown = await ask(service, "PUT", body={"url": URL, "events": ["sunrise"]})
        assert unknown.status_code == 400
        assert hook_of(await ask(service, "GET")).url is None

    serve(database_url, work)


def test_a_server_without_webhooks_says_so(database_url: str) -> None:
    async def work(service: Service) -> None:
        refused = await ask(service, "PUT", body={"url": URL})
        assert refused.status_code == 400
        assert "sends no webhooks" in refused.json()["detail"]

    serve(database_url, work, notify=NotifySettings(webhooks=False))


def test_the_mail_of_a_job_is_stored_at_submit(database_url: str) -> None:
    async def work(service: Service) -> None:
        sent = {"argv": ["--mail-type=END", "x.sh"], "work_dir": "/tmp", "script": "#!/bin/sh\n"}
        answer = await ask(service, "POST", "/v1/submit-argv", sent)
        assert answer.status_code == 201, answer.text
        assert answer.json()["warnings"] == []
        user = (await ask(service, "GET", "/v1/users/me")).json()["user"]
        job = {**BODY, "mail_types": ["FAIL"], "mail_user": "a@b.c"}
        await ask(service, "POST", "/v1/jobs", job)
        rows = await service.database.fetch("select kinds, address from odc.job_mail order by 1")
        assert [(row["kinds"], row["address"]) for row in rows] == [
            (["end"], f"{user}@x.org"), (["fail"], "a@b.c")
        ]  # fmt: skip
        for wrong in ({"mail_types": ["END"]}, {"mail_types": ["END"], "mail_user": "a@b\nc"}):
            refused = await ask(service, "POST", "/v1/jobs", {**BODY, **wrong})
            assert refused.status_code == 400
        assert await service.database.fetchval("select count(*) from odc.job") == 2

    serve(database_url, work, notify=LOCAL)
