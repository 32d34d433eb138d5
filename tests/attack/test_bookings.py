"""Users learn nothing about other users' bookings except which nodes are set aside, and when."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve

SECRET = "hush"
BOOKING = {
    "name": SECRET, "starts_at": "now", "duration": "1:00:00", "all_nodes": True,
    "comment": f"for {SECRET}", "users": ["bin"], "accounts": ["lab"],
}  # fmt: skip
VIEWS = (
    "/v1/nodes", "/v1/nodes/gpu-1", "/v1/plan", "/v1/plan/gantt", "/v1/availability", "/v1/cluster",
    "/v1/bookings", "/v1/bookings?all=true", f"/v1/bookings/{SECRET}x", "/v1/jobs",
    "/v1/events?after=0&follow=false", "/v1/jobs/{job}", "/v1/jobs/{job}/why",
    "/v1/jobs/{job}/events?follow=false",
)  # fmt: skip


async def made(service: Service, path: str, body: Any) -> None:
    async with service.client(OPERATOR) as client:
        answer = await client.post(path, json=body)
    assert answer.status_code < 300, answer.text


async def book(service: Service, **more: Any) -> None:
    await made(service, "/v1/accounts", {"name": "lab"})
    await made(service, "/v1/bookings", {**BOOKING, **more})


async def waiting(service: Service) -> int:
    """A job of Bob's that cannot start because of the booking."""
    job_id = await service.submit(BOB)
    assert await service.plan() == []
    await service.final()
    return job_id


def test_no_view_names_the_booking_of_others(database_url: str) -> None:
    """Before: events, the plan, the nodes and `why` named it, and events also its users and
    accounts."""

    async def work(service: Service) -> None:
        await book(service)
        job = await waiting(service)
        async with service.client(BOB) as bob, service.client(OPERATOR) as operator:
            for view in VIEWS:
                answer = await bob.get(view.format(job=job))
                assert answer.status_code in (200, 404), answer.text
                text = answer.text.replace(f"{SECRET}x", "")
                assert SECRET not in text, view
                assert '"bin"' not in text, view
            (why,) = [
                one for one in (await bob.get(f"/v1/jobs/{job}/why")).json()["why"]
                if one["cause"] == "booking"
            ]  # fmt: skip
            # The booking's number, and which nodes are set aside until when, are public.
            assert why["booking_id"] == 1
            assert 'booked by "#1" until' in why["text"]
            nodes = (await bob.get("/v1/nodes")).json()["nodes"]
            assert {node["booking"]["name"] for node in nodes} == {"#1"}
            for view in ("/v1/nodes", "/v1/plan/gantt", "/v1/availability", f"/v1/jobs/{job}/why"):
                assert SECRET in (await operator.get(view)).text, view

    serve(database_url, work)


def test_owners_see_their_booking_and_its_events(database_url: str) -> None:
    async def work(service: Service) -> None:
        await book(service)
        await service.database.execute(
            "update odc.booking set uids = array[$1::integer]", ALICE.uid
        )
        job = await waiting(service)
        async with service.client(ALICE) as alice, service.client(BOB) as bob:
            for view in ("/v1/nodes", "/v1/plan/gantt", f"/v1/jobs/{job}/why"):
                assert SECRET in (await alice.get(view)).text, view
            events = "/v1/events?after=0&follow=false"
            assert "booking_created" in (await alice.get(events)).text
            text = (await bob.get(events)).text
            assert "booking_" not in text
            assert "submitted" in text

    serve(database_url, work)


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/plan/what-if"])
def test_a_refusal_names_no_owners_and_no_other_bookings(database_url: str, path: str) -> None:
    """Before: the hint listed users and accounts, and for an unknown name all bookings."""

    async def refused(client: httpx.AsyncClient, **fields: Any) -> str:
        body = {"script": "#!/bin/sh\n", "work_dir": "/tmp", **fields}
        answer = await client.post(path, json={"jobs": [body]} if "what-if" in path else body)
        assert "OD0" in answer.text
        return answer.text

    async def work(service: Service) -> None:
        await book(service)
        async with service.client(BOB) as bob:
            message = await refused(bob, booking=SECRET, constraint="none-has-it", gpus=1)
            assert "is not for user" in message
            assert "lab" not in message
            assert "bin" not in message.replace("/bin/sh", "")
            assert "gpu-1" not in message
            assert SECRET not in await refused(bob, booking="other", gpus=1)

    serve(database_url, work)


def test_all_users_see_the_name_of_a_maintenance_booking(database_url: str) -> None:
    async def work(service: Service) -> None:
        await book(service, kind="maintenance", users=[], accounts=[], ignore_running=True)
        job = await waiting(service)
        async with service.client(BOB) as bob:
            for view in ("/v1/nodes", "/v1/plan/gantt", "/v1/availability", f"/v1/jobs/{job}/why"):
                assert SECRET in (await bob.get(view)).text, view
            assert (await bob.get(f"/v1/bookings/{SECRET}")).status_code == 403
            assert SECRET not in (await bob.get("/v1/events?after=0&follow=false")).text

    serve(database_url, work)
