"""/v1/bookings and /v1/licences: permissions, answers and refusals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest

from odcd.api.answers.bookings import Booking, BookingList
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve

BOOKING = {"name": "works", "kind": "maintenance", "starts_at": "now+2h", "duration": "1:00:00",
           "node_list": ["n1"]}  # fmt: skip


async def ask(
    service: Service, method: str, path: str, body: Any = None, *, peer: Any = OPERATOR,
    headers: dict[str, str] | None = None,
) -> httpx.Response:  # fmt: skip
    async with service.client(peer) as client:
        return await client.request(method, path, json=body, headers=headers)


def booking_of(answer: httpx.Response, status: int = 200) -> Booking:
    assert answer.status_code == status, answer.text
    return msgspec.json.decode(answer.content, type=Booking)


def test_a_booking_is_created_shown_listed_changed_and_deleted(database_url: str) -> None:
    async def work(service: Service) -> None:
        made = booking_of(await ask(service, "POST", "/v1/bookings", BOOKING), 201)
        assert (made.name, made.node_names, made.duration_s) == ("works", ["n1"], 3600)
        starts = datetime.fromisoformat(made.starts_at) - datetime.now(UTC)
        assert timedelta(hours=1, minutes=59) < starts <= timedelta(hours=2)
        assert booking_of(await ask(service, "GET", "/v1/bookings/works")) == made
        changed = booking_of(
            await ask(service, "PATCH", "/v1/bookings/works", {"comment": "x", "name": "w2"})
        )
        assert (changed.comment, changed.starts_at) == ("x", made.starts_at)
        listed = msgspec.json.decode(
            (await ask(service, "GET", "/v1/bookings")).content, type=BookingList
        )
        assert listed.bookings == [changed]
        assert booking_of(await ask(service, "DELETE", "/v1/bookings/w2")).state == "DELETED"
        assert (await ask(service, "GET", "/v1/bookings")).json() == {"bookings": []}
        assert len((await ask(service, "GET", "/v1/bookings?all=true")).json()["bookings"]) == 1
        assert len(service.woken) == 3

    serve(database_url, work)


def test_times_are_read_in_the_callers_zone_and_else_in_utc(database_url: str) -> None:
    async def work(service: Service) -> None:
        body = {**BOOKING, "starts_at": "2035-07-01T18:00", "ends_at": "2035-07-01T20:00"}
        del body["duration"]
        made = booking_of(await ask(service, "POST", "/v1/bookings", body), 201)
        assert made.starts_at == "2035-07-01T18:00:00Z"
        body |= {"name": "berlin", "time_zone": "Europe/Berlin", "node_list": ["n2"]}
        made = booking_of(await ask(service, "POST", "/v1/bookings", body), 201)
        assert (made.starts_at, made.ends_at) == ("2035-07-01T16:00:00Z", "2035-07-01T18:00:00Z")

    serve(database_url, work, nodes=2)


def test_only_operators_change_bookings_and_owners_see_their_own(database_url: str) -> None:
    async def work(service: Service) -> None:
        await service.submit(ALICE)
        name = "root"
        use = {**BOOKING, "kind": "use", "users": [name], "name": "mine"}
        made = booking_of(await ask(service, "POST", "/v1/bookings", use), 201)
        assert made.users == [name]
        for method, path, body in (
            ("POST", "/v1/bookings", BOOKING),
            ("PATCH", "/v1/bookings/mine", {"comment": "x"}),
            ("DELETE", "/v1/bookings/mine", None),
            ("GET", "/v1/bookings/mine", None),
        ):
            answer = await ask(service, method, path, body, peer=BOB)
            assert (answer.status_code, answer.json()["code"]) == (403, "OD013"), answer.text
        assert (await ask(service, "GET", "/v1/bookings", peer=BOB)).json() == {"bookings": []}

    serve(database_url, work)


def test_a_repeated_idempotency_key_books_only_once(database_url: str) -> None:
    async def work(service: Service) -> None:
        key = {"Idempotency-Key": "k"}
        first = await ask(service, "POST", "/v1/bookings", BOOKING, headers=key)
        again = await ask(service, "POST", "/v1/bookings", BOOKING, headers=key)
        assert booking_of(first, 201) == booking_of(again, 201)
        other = {**BOOKING, "name": "x"}
        answer = await ask(service, "POST", "/v1/bookings", other, headers=key)
        assert (answer.status_code, answer.json()["code"]) == (409, "OD014")
        answer = await ask(
            service, "POST", "/v1/bookings", other, headers={"Idempotency-Key": "k" * 201}
        )
        assert answer.status_code == 400

    serve(database_url, work)


WRONG: dict[str, tuple[dict[str, Any], int]] = {
    "no-moment": ({"starts_at": "soon"}, 400),
    "past": ({"starts_at": "2001-01-01T00:00:00Z"}, 400),
    "end-before": ({"starts_at": "2035-01-02", "ends_at": "2035-01-01", "duration": None}, 400),
    "bad-duration": ({"duration": "a while"}, 400),
    "no-duration": ({"duration_s": 0, "duration": None}, 400),
    "endless": ({"duration": "UNLIMITED"}, 400),
    "twice": ({"duration_s": 60}, 400),
    "bad-repeat": ({"repeats": "monthly"}, 400),
    "bad-kind": ({"kind": "party"}, 400),
    "bad-name": ({"name": "a/b"}, 400),
    "unknown-node": ({"node_list": ["n9"]}, 404),
    "unknown-user": ({"kind": "use", "users": ["no-such-user-here"]}, 400),
    "unknown-account": ({"kind": "use", "accounts": ["nope"]}, 404),
    "unknown-type": ({"node_list": None, "gpu_type": "h1000"}, 404),
    "bad-count": ({"node_list": None, "node_count": 0}, 400),
    "too-many": ({"node_list": None, "node_count": 7}, 422),
    "unknown-field": ({"colour": "red"}, 400),
    "nul": ({"comment": "a\0"}, 400),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_impossible_booking_is_refused_with_a_hint(database_url: str, case: str) -> None:
    change, status = WRONG[case]
    body = {name: value for name, value in {**BOOKING, **change}.items() if value is not None}

    async def work(service: Service) -> None:
        answer = await ask(service, "POST", "/v1/bookings", body)
        assert answer.status_code == status, answer.text
        assert answer.json()["hint"]
        assert (await ask(service, "GET", "/v1/bookings?all=true")).json() == {"bookings": []}

    serve(database_url, work)


def test_licences_are_set_listed_and_deleted_by_operators(database_url: str) -> None:
    async def work(service: Service) -> None:
        path = "/v1/licences/matlab"
        for method, body in (("PUT", {"total": 2}), ("DELETE", None)):
            answer = await ask(service, method, path, body, peer=ALICE)
            assert answer.json()["code"] == "OD013"
        made = await ask(service, "PUT", path, {"total": 2})
        assert made.json() == {"name": "matlab", "total": 2, "used": 0, "free": 2, "jobs": []}
        job = await service.submit(licences={"matlab": 2})
        await service.plan()
        listed = (await ask(service, "GET", "/v1/licences", peer=ALICE)).json()["licences"]
        assert listed == [{"name": "matlab", "total": 2, "used": 2, "free": 0, "jobs": [job]}]
        refused = await ask(service, "DELETE", path)
        assert (refused.status_code, refused.json()["code"]) == (409, "OD012")
        assert str(job) in refused.json()["detail"]
        await service.end(job)
        assert (await ask(service, "DELETE", path)).status_code == 200
        gone = await ask(service, "DELETE", path)
        assert (gone.status_code, gone.json()["code"]) == (404, "OD025")
        for body in ({"total": -1}, {"total": "x"}, {}, {"total": 1, "more": 2}):
            assert (await ask(service, "PUT", path, body)).status_code == 400

    serve(database_url, work)


def test_a_job_shows_its_booking_and_its_licences(database_url: str) -> None:
    async def work(service: Service) -> None:
        await ask(service, "PUT", "/v1/licences/matlab", {"total": 2})
        await service.submit(ALICE)
        async with service.client(ALICE) as client:
            user = (await client.get("/v1/jobs")).json()["jobs"][0]["user"]
        use = {**BOOKING, "kind": "use", "users": [user], "name": "mine"}
        assert (await ask(service, "POST", "/v1/bookings", use)).status_code == 201
        argv = ["--reservation=mine", "-L", "matlab:2", "-t", "30", "--wrap", "true"]
        async with service.client(ALICE) as client:
            answer = await client.post("/v1/submit-argv", json={"argv": argv, "work_dir": "/tmp"})
            assert answer.status_code == 201, answer.text
            [job] = (await client.get(f"/v1/jobs/{answer.json()['id']}")).json()["jobs"]
            assert (job["booking"], job["licences"]) == ("mine", {"matlab": 2})
            path = f"/v1/jobs/{job['id']}"
            changed = (await client.patch(path, json={"booking": None})).json()["jobs"]
            assert changed[0]["outcome"] == "updated"
            [job] = (await client.get(path)).json()["jobs"]
            assert job["booking"] is None

    serve(database_url, work)
