"""The permissions of each kind of user: one table of every operation, each entry tested with a
request.

AUT-08, SEC-01: the server checks ownership on every operation. An operation that is missing in the
table fails the test.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import pytest

from odcd.api.app import operations
from odcd.api.http.identity import PEER, Peer
from odcd.records.api_keys import NewKey, digest_of
from odcd.records.job import Identity
from tests.odcd.api.service import ALICE, BOB, BODY, OPERATOR, Service, serve
from tests.odcd.api.test_disks import save_disk
from tests.odcd.api.test_reservations import started
from tests.odcd.builds.test_context import packed

CAROL = Peer(64003, 64003)
"""Coordinator of the account that the owner's jobs run under."""
ROLES: dict[str, Peer | None] = {
    "nobody": None, "other": BOB, "coordinator": CAROL, "owner": ALICE, "operator": OPERATOR,
}  # fmt: skip
REGISTRY = "registry.example/builds"
ALL = frozenset(ROLES)
KNOWN = ALL - {"nobody"}
OWN = frozenset({"owner", "operator"})
OWNERS = frozenset({"owner"})
"""The new job would belong to the operator."""
COORDINATORS = frozenset({"coordinator", "operator"})
OPERATORS = frozenset({"operator"})
KEYED = frozenset({"key"})
"""A caller with an API key, for the operations on that key."""


class Scene:
    """A cluster with a queue, and the object of a request, created again each time."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._numbers = itertools.count(1)

    async def ask(
        self, method: str, path: str, body: Any = None, peer: Peer | None = OPERATOR, *,
        raw: bytes | None = None,
    ) -> httpx.Response:  # fmt: skip
        async with self.service.client(peer) as client:
            return await client.request(method, path, json=body, content=raw)

    async def _made(self, method: str, path: str, body: Any) -> Any:
        answer = await self.ask(method, path, body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def name(self) -> str:
        return f"x{next(self._numbers)}"

    async def prepare(self) -> None:
        await self._made("POST", "/v1/accounts", {"name": "lab"})
        for name, peer in (("alice", ALICE), ("bob", BOB)):
            body = {"user": name, "uid": peer.uid, "default": True}
            account = "lab" if name == "alice" else "default"
            await self._made("POST", f"/v1/accounts/{account}/users", body)
        body = {"user": "carol", "uid": CAROL.uid}
        await self._made("POST", "/v1/accounts/lab/coordinators", body)

    async def pending(self) -> str:
        return str(await self.service.submit(ALICE))

    async def held(self) -> str:
        return str(await self.service.submit(ALICE, hold=True))

    async def running(self) -> str:
        job_id = await self.service.submit(ALICE)
        assert job_id in await self.service.plan()
        return str(job_id)

    async def ended(self) -> str:
        job_id = await self.pending()
        await self._made("POST", f"/v1/jobs/{job_id}/cancel", {})
        return job_id

    async def begun(self) -> str:
        job_id = await self.service.submit(ALICE)
        await started(self.service, job_id)
        return str(job_id)

    async def reservation(self) -> str:
        body = {"gpu_type": "h100", "gpus": 1, "hours": 1}
        answer = await self.ask("POST", "/v1/reservations", body, ALICE)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def active(self) -> str:
        name = await self.reservation()
        await started(self.service, int(name))
        return name

    async def reached(self) -> str:
        """By SSH, if an executor were there."""
        name = await self.active()
        await self.service.database.execute(
            'update odc.reservation set ask = ask || \'{"ssh_keys": [], "jupyter": true}\' '
            "where job_id = $1",
            int(name),
        )
        return name

    async def disk(self) -> str:
        name = self.name()
        answer = await self.ask("POST", "/v1/disks", {"name": name}, ALICE)
        assert answer.status_code == 201, answer.text
        return name

    async def saved_disk(self) -> str:
        name = await self.disk()
        await save_disk(self.service, name)
        return name

    async def disk_import(self) -> str:
        return str((await self._made("POST", "/v1/disk-imports", {}))["id"])

    async def build(self) -> str:
        alice = Identity(user="alice", uid=ALICE.uid, gid=ALICE.gid, operator=False)
        digest = f"{next(self._numbers):064x}"
        await self.service.store.builds.put(
            alice, digest, REGISTRY, "Dockerfile", b"x", self.service.api.clock.now(), rebuild=False
        )
        return digest

    async def a_pass(self) -> str:
        await self.service.submit(ALICE)
        await self.service.plan()
        return str(await self.service.database.fetchval("select max(id) from odc.pass"))

    async def booking(self) -> str:
        body = {"name": self.name(), "starts_at": "now+9h", "duration_s": 60, "node_count": 1}
        made = await self._made("POST", "/v1/bookings", {**body, "users": ["alice"]})
        return made["name"]

    async def licence(self) -> str:
        name = self.name()
        await self._made("PUT", f"/v1/licences/{name}", {"total": 1})
        return name

    async def declared_node(self) -> str:
        body = {"name": self.name(), "gpu_type": "cpu-x86", "gpus": 0, "cpus": 1}
        return (await self._made("POST", "/v1/nodes", body))["name"]

    async def partition(self) -> str:
        return (await self._made("POST", "/v1/partitions", {"name": self.name()}))["name"]

    async def policy(self) -> str:
        body = {"name": self.name(), "ordering": "fifo"}
        return (await self._made("POST", "/v1/policies", body))["name"]

    async def account(self) -> str:
        return (await self._made("POST", "/v1/accounts", {"name": self.name()}))["name"]

    async def qos(self) -> str:
        return (await self._made("POST", "/v1/qos", {"name": self.name()}))["name"]

    async def member(self) -> str:
        name = self.name()
        body = {"user": name, "uid": 70_000 + next(self._numbers)}
        await self._made("POST", "/v1/accounts/lab/users", body)
        return name

    async def known(self) -> str:
        """A user of another account than the coordinator's."""
        name = self.name()
        body = {"user": name, "uid": 70_000 + next(self._numbers)}
        await self._made("POST", "/v1/accounts/default/users", body)
        return name

    async def coordinator(self) -> str:
        name = self.name()
        body = {"user": name, "uid": 70_000 + next(self._numbers)}
        await self._made("POST", "/v1/accounts/lab/coordinators", body)
        return name

    async def key(self, peer: Peer) -> str:
        key = f"odc_{self.name()}"
        who = Identity(user=str(peer.uid), uid=peer.uid, gid=peer.gid, operator=False)
        now = self.service.api.clock.now()
        kept = NewKey(key, digest_of(key.encode()), key[:8])
        await self.service.store.keys.create(who, kept, now, timedelta(hours=1))
        return key


Make = Callable[[Scene], Awaitable[str]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """may: the roles that may. target: makes what the path's part is, or what {x} of the body is.
    ok: statuses of those that may; of a change of many, the outcome of each counts."""

    may: frozenset[str]
    target: Make | None = None
    body: Any = None
    raw: bytes | None = None
    query: str = ""
    ok: tuple[int, ...] = (200,)


def everybody(target: Make | None = None, **more: Any) -> Rule:
    return Rule(may=KNOWN, target=target, **more)


def own(target: Make, body: Any = None, **more: Any) -> Rule:
    return Rule(may=OWN, target=target, body=body, **more)


def operators(body: Any = None, target: Make | None = None, **more: Any) -> Rule:
    return Rule(may=OPERATORS, target=target, body=body, **more)


IDS = {"ids": ["{x}"]}
ONCE = {"ok": (201,)}
NEW_BOOKING = {"name": "{new}", "starts_at": "now+9h", "duration_s": 60, "node_count": 1,
               "users": ["alice"]}  # fmt: skip
NO_STREAM = "?after=0&follow=false"
ALICES = "?user=alice"


async def _command(_scene: Scene) -> str:
    return "squeue"


TABLE: dict[str, Rule] = {
    "POST /v1/jobs": everybody(body=BODY, **ONCE),
    "POST /v1/jobs/batch": everybody(body={"jobs": [BODY]}, **ONCE),
    "POST /v1/submit-argv": everybody(
        body={"argv": ["--wrap", "true"], "work_dir": "/tmp"}, **ONCE
    ),
    "POST /v1/slurm/{command}": everybody(_command, body={}),
    "POST /v1/slurm-steps/{job}/{attempt}/{step}": own(Scene.running, body={}, ok=(409, 503)),
    "POST /v1/slurm-allocations/{job}/release": own(Scene.running, body={}, ok=(204, 409, 503)),
    "POST /v1/plan/what-if": everybody(body={"jobs": [BODY]}),
    "GET /v1/submit-options": everybody(),
    "GET /v1/jobs": everybody(),
    "GET /v1/jobs/{id}": everybody(Scene.pending),
    "GET /v1/jobs/{id}/why": everybody(Scene.pending),
    "GET /v1/jobs/{id}/events": everybody(Scene.pending, query=NO_STREAM),
    "GET /v1/jobs/{id}/script": own(Scene.pending),
    "GET /v1/jobs/{id}/logs": own(Scene.pending, ok=(409,)),
    "GET /v1/jobs/{id}/attach": own(Scene.pending, ok=(409, 503)),
    "POST /v1/jobs/cancel": own(Scene.pending, IDS),
    "POST /v1/jobs/hold": own(Scene.pending, IDS),
    "POST /v1/jobs/release": own(Scene.held, IDS),
    "POST /v1/jobs/requeue": own(Scene.running, IDS),
    "POST /v1/jobs/{id}/cancel": own(Scene.pending),
    "POST /v1/jobs/{id}/hold": own(Scene.pending),
    "POST /v1/jobs/{id}/release": own(Scene.held),
    "POST /v1/jobs/{id}/requeue": own(Scene.running),
    "POST /v1/jobs/{id}/resubmit": Rule(may=OWNERS, target=Scene.ended, **ONCE),
    "POST /v1/jobs/{id}/checkpoint": own(Scene.begun),
    "PATCH /v1/jobs/{id}": own(Scene.pending, {"comment": "x"}),
    "GET /v1/events": everybody(query=NO_STREAM),
    "GET /v1/node-groups": everybody(),
    "GET /v1/nodes": everybody(),
    "GET /v1/nodes/{name}": everybody(lambda _: _node()),
    "POST /v1/nodes": operators(
        {"name": "{new}", "gpu_type": "cpu-x86", "gpus": 0, "cpus": 1}, **ONCE
    ),
    "DELETE /v1/nodes/{name}": operators(None, Scene.declared_node),
    "PATCH /v1/nodes/{name}": operators({"state": "DRAIN", "reason": "x"}, lambda _: _node("n9")),
    "GET /v1/plan": everybody(),
    "GET /v1/plan/diff": everybody(Scene.a_pass, query="?from={x}"),
    "GET /v1/passes/{id}/replay": everybody(Scene.a_pass),
    "GET /v1/bookings": everybody(),
    "POST /v1/bookings": operators(NEW_BOOKING, **ONCE),
    "GET /v1/bookings/{booking}": own(Scene.booking),
    "PATCH /v1/bookings/{booking}": operators({"comment": "x"}, Scene.booking),
    "DELETE /v1/bookings/{booking}": operators(None, Scene.booking),
    "POST /v1/reservations": everybody(body={"gpu_type": "h100", "hours": 1}, **ONCE),
    "GET /v1/reservations": everybody(query="?user=all"),
    "GET /v1/reservations/{id}": everybody(Scene.reservation),
    "PATCH /v1/reservations/{id}": own(Scene.reservation, {"name": "mine"}),
    "POST /v1/builds": everybody(raw=packed(("Dockerfile", b"FROM x:1\n"))),
    "GET /v1/builds/{digest}": own(Scene.build),
    "GET /v1/builds/{digest}/log": own(Scene.build),
    "POST /v1/reservations/{id}/extend": own(Scene.active, {"hours": 1}),
    "GET /v1/disks": everybody(),
    "POST /v1/disks": everybody(body={"name": "{new}"}, **ONCE),
    "GET /v1/disks/{disk}": own(Scene.disk, query=ALICES),
    "DELETE /v1/disks/{disk}": own(Scene.disk, query=ALICES),
    "POST /v1/disks/{disk}/rename": own(Scene.disk, {"new_name": "{new}"}, query=ALICES),
    "GET /v1/disks/{disk}/content": own(Scene.disk, query=ALICES),
    "POST /v1/disks/{disk}/clone": operators(
        {"new_name": "{new}"}, Scene.saved_disk, query=ALICES, **ONCE
    ),
    "POST /v1/disks/{disk}/unlock": operators(None, Scene.disk, query=ALICES),
    "GET /v1/disk-strays": operators(),
    "POST /v1/disk-imports": operators({}, **ONCE),
    "GET /v1/disk-imports/{id}": operators(None, Scene.disk_import),
    "GET /v1/availability": everybody(),
    "GET /v1/cluster/use": everybody(),
    "GET /v1/licences": everybody(),
    "PUT /v1/licences/{licence}": operators({"total": 2}, Scene.licence),
    "DELETE /v1/licences/{licence}": operators(None, Scene.licence),
    "GET /v1/partitions": everybody(),
    "POST /v1/partitions": operators({"name": "{new}"}, **ONCE),
    "GET /v1/partitions/{partition}": everybody(Scene.partition),
    "PATCH /v1/partitions/{partition}": operators({"state": "DOWN"}, Scene.partition),
    "DELETE /v1/partitions/{partition}": operators(None, Scene.partition),
    "GET /v1/policies": everybody(),
    "POST /v1/policies": operators({"name": "{new}", "ordering": "fifo"}, **ONCE),
    "GET /v1/policies/{policy}": everybody(Scene.policy),
    "PATCH /v1/policies/{policy}": operators({"plan_depth": 2}, Scene.policy),
    "DELETE /v1/policies/{policy}": operators(None, Scene.policy),
    "GET /v1/accounts": everybody(),
    "POST /v1/accounts": operators({"name": "{new}"}, **ONCE),
    "GET /v1/accounts/{account}": everybody(Scene.account),
    "PATCH /v1/accounts/{account}": operators({"shares": 2}, Scene.account),
    "DELETE /v1/accounts/{account}": operators(None, Scene.account),
    "GET /v1/qos": everybody(),
    "POST /v1/qos": operators({"name": "{new}"}, **ONCE),
    "GET /v1/qos/{qos}": everybody(Scene.qos),
    "PATCH /v1/qos/{qos}": operators({"priority": 2}, Scene.qos),
    "DELETE /v1/qos/{qos}": operators(None, Scene.qos),
    "GET /v1/users": everybody(),
    "GET /v1/users/{user}": everybody(Scene.member),
    "POST /v1/accounts/{account}/users": Rule(
        may=COORDINATORS, target=Scene.known, body={"user": "{x}"}, ok=(201,)
    ),
    "PATCH /v1/accounts/{account}/users/{user}": Rule(
        may=COORDINATORS, target=Scene.member, body={"shares": 2}
    ),
    "DELETE /v1/accounts/{account}/users/{user}": Rule(may=COORDINATORS, target=Scene.member),
    "POST /v1/accounts/{account}/coordinators": operators({"user": "{new}", "uid": "{uid}"}),
    "DELETE /v1/accounts/{account}/coordinators/{user}": operators(None, Scene.coordinator),
    "GET /v1/priority": everybody(),
    "GET /v1/shares": everybody(),
    "GET /v1/usage": everybody(),
    "GET /v1/idle": everybody(),
    "GET /v1/accounting": everybody(),
    "PATCH /v1/accounting": operators({"max_age_s": 600}),
    "GET /v1/cluster": everybody(),
    "GET /v1/cluster/fragmentation": everybody(),
    "GET /v1/users/me": everybody(),
    "PUT /v1/users/me": everybody(body={"github_user": "octocat"}),
    "GET /v1/users/me/webhook": everybody(),
    "PUT /v1/users/me/webhook": everybody(body={"url": "https://93.184.215.14/x"}),
    "DELETE /v1/users/me/webhook": everybody(ok=(200, 400)),
    "POST /v1/users/me/webhook/test": everybody(ok=(201, 400)),
    "GET /v1/cron": everybody(),
    "PUT /v1/cron": everybody(body={"text": "@daily true"}),
    "DELETE /v1/cron": everybody(),
    "GET /v1/reservations/{id}/ssh": own(Scene.reached, ok=(4500,)),
    "GET /v1/reservations/{id}/jupyter": own(Scene.reached, ok=(4500,)),
    "GET /v1/plan/gantt": everybody(),
    "POST /v1/page/tickets": everybody(**ONCE),
    "POST /v1/keys/rotate": Rule(may=KEYED, ok=(201,)),
    "DELETE /v1/users/{user}/keys": operators(None, Scene.member),
    "DELETE /v1/keys/current": Rule(may=KEYED, ok=(204,)),
    # The login has no caller yet; this server accepts none.
    "POST /v1/auth/login": Rule(may=ALL, body={"url": "x", "headers": {}}, ok=(403,)),
    "GET /": Rule(may=ALL),
    "GET /health": Rule(may=ALL),
    "GET /ready": Rule(may=ALL),
    "GET /metrics": Rule(may=ALL),
    "GET /openapi.json": Rule(may=ALL),
    "GET /docs": Rule(may=ALL),
}


async def _node(name: str = "n1") -> str:
    return name


def test_the_table_has_every_operation_and_no_other(database_url: str) -> None:
    async def work(service: Service) -> None:
        served = {f"{o.method} {o.path}" for o in operations(service.api)}
        sockets = {
            "GET /v1/jobs/{id}/attach", "GET /v1/reservations/{id}/ssh",
            "GET /v1/reservations/{id}/jupyter",
        }  # fmt: skip
        assert set(TABLE) == served | sockets

    serve(database_url, work)


@pytest.mark.parametrize("operation", TABLE)
def test_each_operation_allows_only_the_roles_in_the_table(
    database_url: str, operation: str
) -> None:
    rule = TABLE[operation]

    async def work(service: Service) -> None:
        scene = Scene(service)
        await scene.prepare()
        if rule.may is KEYED:
            await _about_keys(scene, operation, rule)
            return
        found = {role: await _verdict(scene, operation, rule, peer) for role, peer in ROLES.items()}
        expected = {role: "yes" if role in rule.may else "no" for role in ROLES}
        if "nobody" not in rule.may:
            expected["nobody"] = "who?"
        assert found == expected

    serve(
        database_url, work, nodes=9, disk_gib=100, build_target=lambda: REGISTRY,
        listens=lambda: [("127.0.0.1", 7070)],
    )  # fmt: skip


async def _verdict(scene: Scene, operation: str, rule: Rule, peer: Peer | None) -> str:
    """yes, no (not the caller's), who? (no identity), or any other result."""
    method, _, path = operation.partition(" ")
    x = await rule.target(scene) if rule.target else ""
    path = path.replace("{account}/", "lab/").replace("{attempt}/{step}", "1/0")
    if "{" in path:
        path = f"{path[: path.index('{')]}{x}{path[path.index('}') + 1 :]}"
    body = None if rule.body is None else _filled(rule.body, x, scene.name())
    if path.endswith(("/attach", "/ssh", "/jupyter")):
        status, text = await _attach(scene.service, path, peer)
    else:
        url = path + rule.query.replace("{x}", x)
        answer = await scene.ask(method, url, body, peer, raw=rule.raw)
        status, text = answer.status_code, answer.text
    code = _code(text)
    if status == 4403:
        return "no"
    if status == 401 and code == "OD015":
        return "who?"
    if code == "OD013":
        assert status in (200, 403), text
        return "no"
    if code == "OD038":  # users without the folder cannot even see that it has a build
        return "no"
    if status in rule.ok and (status >= 400 or code is None):
        return "yes"
    return f"{status} {text[:300]}"


def _code(text: str) -> str | None:
    """The OD code of an answer; of a change of jobs, that of the one it was about."""
    try:
        answer = json.loads(text)
    except ValueError:
        return None
    if isinstance(answer, dict) and "code" in answer:
        return answer["code"]
    jobs = answer.get("jobs") if isinstance(answer, dict) else None
    return jobs[0].get("code") if isinstance(jobs, list) and jobs else None


def _filled(body: Any, x: str, new: str) -> Any:
    text = json.dumps(body).replace("{x}", x).replace("{new}", new)
    return json.loads(text.replace('"{uid}"', str(71_000 + int(new[1:]))))


async def _attach(service: Service, path: str, peer: Peer | None) -> tuple[int, str]:
    """Status and body of an answer to a WebSocket's opening; or code and reason."""
    scope = {
        "type": "websocket", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "headers": [], "subprotocols": [], "scheme": "ws",
        "extensions": {"websocket.http.response": {}},
        "state": {} if peer is None else {PEER: peer},
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await service.app(scope, receive, send)
    if sent[0]["type"] == "websocket.accept":  # and ended with a code of its own
        return sent[1]["code"], sent[1]["reason"]
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], body.decode()


async def _about_keys(scene: Scene, operation: str, rule: Rule) -> None:
    """A key changes only itself; without a key there is nothing to change."""
    method, _, path = operation.partition(" ")
    assert (await scene.ask(method, path, peer=None)).status_code == 401
    for peer in (ALICE, OPERATOR):
        assert (await scene.ask(method, path, peer=peer)).status_code == 409
    mine, others = await scene.key(ALICE), await scene.key(BOB)
    async with scene.service.client(None) as client:
        answer = await client.request(method, path, headers={"Authorization": f"Bearer {mine}"})
        assert answer.status_code in rule.ok
        for key, status in ((mine, 401), (others, 200)):
            me = await client.get("/v1/users/me", headers={"Authorization": f"Bearer {key}"})
            assert me.status_code == status


def test_other_users_never_see_secrets_of_a_job(database_url: str) -> None:
    """SEC-10: script and environment appear only in the answers that their owner requests."""
    secret = "b8f1c2-do-not-tell"

    async def work(service: Service) -> None:
        scene = Scene(service)
        await scene.prepare()
        job_id = await service.submit(
            ALICE, script=f"#!/bin/sh\n# {secret}\n", environment={"TOKEN": secret},
            args=[secret],
        )  # fmt: skip
        seen = functools.partial(scene.ask, "GET", peer=BOB)
        for path in (
            "/v1/jobs", f"/v1/jobs/{job_id}", f"/v1/jobs/{job_id}/why",
            f"/v1/jobs/{job_id}/events{NO_STREAM}", f"/v1/events{NO_STREAM}", "/v1/plan",
            "/v1/priority", "/v1/nodes", "/metrics",
        ):  # fmt: skip
            answer = await seen(path)
            assert answer.status_code == 200, answer.text
            assert secret not in answer.text, path

    serve(database_url, work)


def test_the_jupyter_token_is_visible_only_to_the_owner_and_operators(database_url: str) -> None:
    """ACC-14, SEC-10: the link with the token opens Jupyter without a login. So it is not shown to
    added users, who are known only by a GitHub name: they read it inside. No list and no event
    contains it."""
    token = "0123456789abcdef" * 4

    async def work(service: Service) -> None:
        scene = Scene(service)
        await scene.prepare()
        name = await scene.reached()
        job_id, now, execute = int(name), service.api.clock.now(), service.database.execute
        await execute(
            "insert into odc.box_key (job_id, host_key, host_public, gang_key, gang_public, "
            "made_at, jupyter_token) values ($1, 'h', 'p', 'g', 'p', $2, $3)",
            job_id, now, token,
        )  # fmt: skip
        await execute("insert into odc.box_jupyter values ($1, 1, true, $2, null)", job_id, now)
        await execute(
            "update odc.reservation set secondary_users = '{octocat}' where job_id = $1", job_id
        )
        await scene.ask("PUT", "/v1/users/me", {"github_user": "octocat"}, BOB)
        readers: dict[str, set[str]] = {path: set() for path in ("", "list", "events")}
        for role, peer in ROLES.items():
            for what, path in (
                ("", f"/v1/reservations/{name}"), ("list", "/v1/reservations?user=all"),
                ("events", f"/v1/jobs/{name}/events{NO_STREAM}"),
            ):  # fmt: skip
                if token in (await scene.ask("GET", path, peer=peer)).text:
                    readers[what].add(role)
        assert readers == {"": OWN, "list": OWN, "events": set()}
        one = (await scene.ask("GET", f"/v1/reservations/{name}", peer=BOB)).json()
        assert (one["connect"], one["jupyter"], one["jupyter_url"]) == ("ssh", "running", None)

    serve(database_url, work)


def test_lists_contain_no_bookings_of_other_users(database_url: str) -> None:
    async def work(service: Service) -> None:
        scene = Scene(service)
        await scene.prepare()
        name = await scene.booking()
        listed = {
            role: name in (await scene.ask("GET", "/v1/bookings", peer=peer)).text
            for role, peer in ROLES.items()
        }
        assert listed == {
            "nobody": False, "other": False, "coordinator": False, "owner": True, "operator": True,
        }  # fmt: skip

    serve(database_url, work)


def test_cancel_all_affects_only_the_users_own_jobs(database_url: str) -> None:
    """AUT-08: a filter does not reach jobs that a user may not change either."""

    async def work(service: Service) -> None:
        scene = Scene(service)
        await scene.prepare()
        job_id = int(await scene.pending())
        for body in ({"all": True}, {"user": "alice"}, {"account": "lab"}, {"partition": "main"}):
            for peer in (BOB, CAROL):
                await scene.ask("POST", "/v1/jobs/cancel", body, peer)
        [job] = (await scene.ask("GET", f"/v1/jobs/{job_id}")).json()["jobs"]
        assert job["state"] == "PENDING"

    serve(database_url, work)


@pytest.mark.parametrize("tasks", ["_3", "_[3-5]", "_[1-9:2]", "_[0-9]", "_*", ""])
def test_no_change_reaches_another_users_array(database_url: str, tasks: str) -> None:
    """SEC-01. Before: hold and release were carried out for the pending tasks."""
    tables = ("job", "pending", "running", "event")

    async def work(service: Service) -> None:
        array = await service.submit(ALICE, array="0-9", hold=True)

        async def rows() -> list[Any]:
            return [
                await service.database.fetchval(
                    f"select array_agg(t::text order by t::text) from odc.{table} as t"
                )
                for table in tables
            ]

        before = await rows()
        selector = f"{array}{tasks}"
        verbs = ("hold", "release", "cancel", "requeue", "checkpoint")
        requests: list[tuple[str, str, Any]] = [
            *(("POST", f"/v1/jobs/{selector}/{verb}", {}) for verb in verbs),
            *(("POST", f"/v1/jobs/{verb}", {"ids": [selector]}) for verb in verbs[:4]),
            ("PATCH", f"/v1/jobs/{selector}", {"nice": 1, "name": "taken"}),
        ]
        async with service.client(BOB) as client:
            for method, path, body in requests:
                answer = await client.request(method, path, json=body)
                assert answer.status_code == 200, (path, answer.text)
                outcomes = {(job["outcome"], job["code"]) for job in answer.json()["jobs"]}
                assert outcomes == {("refused", "OD013")}, path
                assert await rows() == before, path

    serve(database_url, work)
