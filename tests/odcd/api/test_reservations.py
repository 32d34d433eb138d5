"""/v1/reservations: valid requests, visibility and refusals."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from odcd.api.answers.reservations import (
    AvailabilityList,
    ClusterCount,
    Extension,
    Reservation,
    ReservationList,
)
from odcd.api.answers.submit import Preview
from odcd.errors import BadRequest, NeverFits
from odcd.jobs.gpu_types import TypeThere, sizes_of
from odcd.jobs.reservations import Reserve, find_type, seconds_of, spec_of
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve

H100 = TypeThere(
    gpu_type="h100", gpus_per_node=8, cpus_per_node=192, mem_per_node_mib=2_000_000, nodes=6
)
CPU = TypeThere(
    gpu_type="cpu-x86", gpus_per_node=0, cpus_per_node=16, mem_per_node_mib=32_000, nodes=2
)


async def ask(
    service: Service, method: str, path: str, body: Any = None, *, peer: Any = ALICE,
    key: str | None = None,
) -> httpx.Response:  # fmt: skip
    headers = {"Idempotency-Key": key} if key else None
    async with service.client(peer) as client:
        return await client.request(method, path, json=body, headers=headers)


def read(answer: httpx.Response, status: int = 200) -> Reservation:
    assert answer.status_code == status, answer.text
    return msgspec.json.decode(answer.content, type=Reservation)


async def started(service: Service, job_id: int) -> None:
    """Started, with its only member ready."""
    await service.plan()
    await service.database.execute(
        "select odc.record_facts(0, array[$1::bigint], array[1], array[0], array['started'], "
        "array[$2::timestamptz], array[null::integer], array[null::integer], array[null::text], "
        "array[null::text], $2)",
        job_id, service.api.clock.now(),
    )  # fmt: skip


def test_a_dev_server_is_reserved_shown_extended_and_cancelled(database_url: str) -> None:
    """API-03, API-11, API-12: synchronous, with the new state as the answer."""

    async def work(service: Service) -> None:
        body = {"gpu_type": "H100", "gpus": 2, "hours": 1.5}
        made = read(await ask(service, "POST", "/v1/reservations", body, key="k"), 201)
        assert (made.status, made.name, made.gpu_type, made.gpus) == (
            "pending", "2x h100", "h100", 2,
        )  # fmt: skip
        assert made.duration_s == 5400
        again = read(await ask(service, "POST", "/v1/reservations", body, key="k"), 201)
        assert again.id == made.id
        await started(service, made.id)
        shown = read(await ask(service, "GET", f"/v1/reservations/{made.id}"))
        assert (shown.status, shown.connect, shown.node_names) == ("active", "terminal", ["n1"])
        assert shown.history is not None
        assert len(shown.history) == 3
        renamed = await ask(service, "PATCH", f"/v1/reservations/{made.id}", {"name": "mine"})
        assert read(renamed).name == "mine"
        extension = msgspec.json.decode(
            (
                await ask(service, "POST", f"/v1/reservations/{made.id}/extend", {"hours": 0.5})
            ).content,
            type=Extension,
        )
        assert (extension.extended_s, extension.delays, extension.dry_run) == (1800, [], False)
        await ask(service, "POST", f"/v1/jobs/{made.id}/cancel")
        await service.end(made.id)
        ended = read(await ask(service, "GET", f"/v1/reservations/{made.id}"))
        assert (ended.status, ended.phase) == ("cancelled", None)
        listed = msgspec.json.decode(
            (await ask(service, "GET", "/v1/reservations")).content, type=ReservationList
        )
        assert [one.id for one in listed.reservations] == [made.id]

    serve(database_url, work)


def test_a_repeated_request_gets_the_same_answer_after_the_nodes_changed(
    database_url: str,
) -> None:
    """API-11: the daemon may derive something else from a request later; the request is still the
    same."""

    async def work(service: Service) -> None:
        first = read(await ask(service, "POST", "/v1/reservations", {"gpus": 2}, key="k"), 201)
        await service.database.execute("update odc.node set cpus = 32, mem_mib = 32000")
        again = read(await ask(service, "POST", "/v1/reservations", {"gpus": 2}, key="k"), 201)
        assert again.id == first.id
        other = await ask(service, "POST", "/v1/reservations", {"gpus": 3}, key="k")
        assert (other.status_code, other.json()["code"]) == (409, "OD014")

    serve(database_url, work)


def test_listing_reservations_of_an_unknown_user_is_refused(database_url: str) -> None:
    async def work(service: Service) -> None:
        answer = await ask(service, "GET", "/v1/reservations?user=ghost")
        assert 400 <= answer.status_code < 500
        assert "ghost" in answer.text

    serve(database_url, work)


def test_a_reservation_accepts_no_environment_variables(database_url: str) -> None:
    """API-10: so none can name LD_PRELOAD, PATH, AWS_*, KUBERNETES_* or NVIDIA_*."""

    async def work(service: Service) -> None:
        for name in ("env", "environment", "env_vars"):
            body = {"gpus": 1, name: {"LD_PRELOAD": "/x.so"}}
            answer = await ask(service, "POST", "/v1/reservations", body)
            assert answer.status_code == 400
            assert name in answer.json()["detail"]

    serve(database_url, work)


def test_several_nodes_must_be_whole_nodes_with_four_or_eight_gpus() -> None:
    """MNE-01, MNE-27, CLI-03: multiples of a node, up to six nodes; of nodes with four GPUs 8, 12,
    16 and 20, too."""

    def kind(name: str, gpus: int) -> TypeThere:
        return TypeThere(
            gpu_type=name, gpus_per_node=gpus, cpus_per_node=96, mem_per_node_mib=1000, nodes=9
        )

    there = [*(kind(n, 8) for n in ("b200", "h200", "h100", "a100")),
             *(kind(n, 4) for n in ("l4", "t4", "a10g"))]  # fmt: skip
    for one in there:
        per_node = one.gpus_per_node
        for nodes in range(2, 7):
            request = Reserve(gpu_type=one.gpu_type, gpus=nodes * per_node, distributed=True)
            spec = spec_of(request, there, "/", "/bin/sh")
            assert (spec.node_count, spec.gpus_per_node) == (nodes, per_node)
        for gpus in (7 * per_node, per_node + 1):
            with pytest.raises(BadRequest):
                spec_of(
                    Reserve(gpu_type=one.gpu_type, gpus=gpus, distributed=True), there, "/", "sh"
                )


def test_availability_shows_what_a_reservation_would_get(database_url: str) -> None:
    """CLI-34, SCH-13: availability contains the waits of the plan, by size."""

    async def work(service: Service) -> None:
        await service.submit(gpus=8, time_limit_s=3600)
        await service.plan()
        there = msgspec.json.decode(
            (await ask(service, "GET", "/v1/availability")).content, type=AvailabilityList
        )
        [kind] = there.types
        assert (kind.gpu_type, kind.total, kind.free, kind.max_reservable) == ("h100", 16, 8, 8)
        assert [(w.gpus, w.nodes, w.wait_s == 0) for w in kind.waits] == [
            (1, 1, True), (2, 1, True), (4, 1, True), (8, 1, True), (16, 2, False),
        ]  # fmt: skip
        answer = await ask(service, "POST", "/v1/reservations?dry_run=true", {"gpus": 3})
        preview = msgspec.json.decode(answer.content, type=Preview)
        assert "would start now on n2" in preview.text
        assert (await ask(service, "GET", "/v1/reservations")).json() == {"reservations": []}
        count = msgspec.json.decode(
            (await ask(service, "GET", "/v1/cluster/use")).content, type=ClusterCount
        )
        assert (count.gpus, count.gpus_free, count.jobs.running) == (16, 8, 1)

    serve(database_url, work, nodes=2)


def test_the_wait_of_a_size_that_a_limit_refuses_names_the_limit(database_url: str) -> None:
    async def work(service: Service) -> None:
        await service.submit(peer=ALICE, hold=True)
        limit = {"limits": {"job": {"gpus": 4}}}
        changed = await ask(service, "PATCH", "/v1/qos/normal", limit, peer=OPERATOR)
        assert changed.status_code == 200, changed.text
        there = msgspec.json.decode(
            (await ask(service, "GET", "/v1/availability")).content, type=AvailabilityList
        )
        waits = {wait.gpus: wait for wait in there.types[0].waits}
        assert [(waits[n].wait_s, waits[n].reason) for n in (2, 4)] == [(0, None), (0, None)]
        for size in (8, 16):
            assert waits[size].wait_s is None
            assert "4" in str(waits[size].refused)
            assert "normal" in str(waits[size].refused)

        # Not refused, but it waits until an operator changes the limit.
        pends = {"deny_on_limit": False}
        changed = await ask(service, "PATCH", "/v1/qos/normal", pends, peer=OPERATOR)
        assert changed.status_code == 200, changed.text
        there = msgspec.json.decode(
            (await ask(service, "GET", "/v1/availability?hours=7")).content, type=AvailabilityList
        )
        reasons = {wait.gpus: (wait.refused, wait.reason) for wait in there.types[0].waits}
        assert reasons[4] == (None, None)
        assert reasons[8] == reasons[16] == (None, "QOSMaxGRESPerJob")

    serve(database_url, work, nodes=2)


def test_a_type_is_closed_by_a_booking_to_all_but_those_it_names(database_url: str) -> None:
    """SCH-20: others see the reason; users named in the booking get in."""

    async def work(service: Service) -> None:
        # A user is known after a submit.
        await service.submit(peer=ALICE, hold=True)
        booking = {"name": "works", "starts_at": "now", "duration_s": 7200, "gpu_type": "h100",
                   "users": ["64001"], "comment": "new driver"}  # fmt: skip
        made = await ask(service, "POST", "/v1/bookings", booking, peer=OPERATOR)
        assert made.status_code == 201, made.text
        await service.database.fetchval("select odc.sweep(0, $1)", service.api.clock.now())
        there = (await ask(service, "GET", "/v1/availability")).json()
        assert there["types"][0]["maintenance"].startswith("new driver, until ")
        assert all(wait["wait_s"] > 0 for wait in there["types"][0]["waits"])
        inside = read(
            await ask(service, "POST", "/v1/reservations", {"hours": 1, "booking": "works"}), 201
        )
        outside = read(await ask(service, "POST", "/v1/reservations", {"hours": 1}, peer=BOB), 201)
        assert await service.plan() == [inside.id]
        why = await ask(service, "GET", f"/v1/jobs/{outside.id}/why", peer=BOB)
        assert 'booked by \\"#1\\" until' in why.text

    serve(database_url, work)


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"gpu_type": "b300"}, 404, "h100"),
        ({"gpus": 9}, 400, "--distributed also 16"),
        ({"gpus": 16}, 400, "--distributed"),
        ({"gpus": 56, "distributed": True}, 400, "more than the 48"),
        ({"gpus": 0}, 422, "no node has"),
        ({"gpus": -1}, 400, "gpus"),
        ({"gpus": 1.5}, 400, "gpus"),
        ({"gpus": 2**40}, 400, "gpus"),
        ({"hours": 24.01}, 400, "between 0.0833 and 24"),
        ({"hours": 0.08}, 400, "between 0.0833 and 24"),
        ({"hours": -1}, 400, "between"),
        ({"hours": 1e300}, 400, "between"),
        ({"hours": "8"}, 400, "hours"),
        ({"disk": "a b"}, 400, "letters, digits"),
        ({"disk": "x" * 51}, 400, "1 to 50"),
        ({"disk": "mine", "no_persist": True}, 400, "cannot be used together"),
        ({"jupyter": True}, 501, "Jupyter"),
        ({"preserve_entrypoint": True}, 400, "--dockerimage"),
        ({"ssh": True}, 501, "ssh cannot reach them"),
        ({"ssh": True, "image": "a:1", "preserve_entrypoint": True}, 400, "--preserve-entrypoint"),
        ({"labels": {"nsight": "true; x"}}, 400, "feature"),
        ({"labels": {"nsight": "true"}}, 422, 'has the features "nsight"'),
        ({"github_user": "-a"}, 400, "GitHub"),
        ({"github_user": "octocat"}, 400, "does not use SSH"),
        ({"recreate_env": True}, 400, "needs a disk"),
        ({"name": ""}, 400, "name"),
        ({"name": "  "}, 400, "is not a valid name"),
        ({"name": "17"}, 400, "looks like an id"),
        ({"name": "a\0b"}, 400, "cannot be shown"),
        ({"account": "nobody"}, 404, "nobody"),
        ({"gpu": 1}, 400, "gpu"),
        ([], 400, "object"),
    ],
)
def test_an_invalid_request_is_refused_and_creates_nothing(
    database_url: str, body: Any, status: int, word: str
) -> None:
    """CLI-05, CLI-09, CLI-37, CLI-54, API-06, API-07, API-08."""

    async def work(service: Service) -> None:
        answer = await ask(service, "POST", "/v1/reservations", body)
        assert answer.status_code == status, answer.text
        problem = answer.json()
        assert word in problem["detail"] + str(problem["hint"])
        assert "/docs#InternalError" not in answer.text
        assert (await ask(service, "GET", "/v1/jobs?ended=true")).json()["jobs"] == []

    serve(database_url, work, nodes=6)


def test_ssh_is_offered_only_where_dev_servers_have_ssh(database_url: str) -> None:
    """CLI-50"""

    async def work(service: Service) -> None:
        read(await ask(service, "POST", "/v1/reservations", {"ssh": True}), 201)

    serve(database_url, work, dev_server_terminals=False)


def test_labels_are_features_that_its_nodes_must_have() -> None:
    """PRF-01, PRF-07: without such a node it is refused, not placed elsewhere."""
    labels = {"nsight": "true", "disk": "nvme"}
    assert spec_of(Reserve(labels=labels), [H100], "/", "/bin/sh").constraint == "nsight&disk-nvme"
    assert spec_of(Reserve(), [H100], "/", "/bin/sh").constraint is None


@pytest.mark.parametrize(
    ("peer", "seen", "changed"), [(ALICE, 200, 200), (BOB, 200, 403), (OPERATOR, 200, 200)]
)
def test_only_owner_and_operators_can_change_a_reservation(
    database_url: str, peer: Any, seen: int, changed: int
) -> None:
    """AUT-08, AUT-09: all users see it, as in the queue; only its owner and operators act on it."""

    async def work(service: Service) -> None:
        made = read(await ask(service, "POST", "/v1/reservations", {}), 201)
        await started(service, made.id)
        path = f"/v1/reservations/{made.id}"
        shown = await ask(service, "GET", path, peer=peer)
        assert shown.status_code == seen
        assert (shown.json()["connect"] is not None) == (changed == 200)
        for method, where, body in [
            ("POST", f"{path}/extend", {"hours": 1, "dry_run": True}),
            ("PATCH", path, {"comment": "x"}),
            ("PATCH", path, {"name": "x"}),
        ]:
            answer = await ask(service, method, where, body, peer=peer)
            assert answer.status_code == changed, answer.text

    serve(database_url, work)


@pytest.mark.parametrize(
    "path", ["/v1/reservations/99", "/v1/reservations/x", "/v1/reservations/1_2"]
)
def test_an_unknown_reservation_is_not_found(database_url: str, path: str) -> None:
    async def work(service: Service) -> None:
        for method, where, body in [
            ("GET", path, None),
            ("PATCH", path, {"name": "x"}),
            ("POST", f"{path}/extend", {"hours": 1}),
        ]:
            answer = await ask(service, method, where, body)
            assert answer.status_code in (400, 404), answer.text

    serve(database_url, work)


def test_unknown_statuses_are_refused(database_url: str) -> None:
    """API-09, CLI-20."""

    async def work(service: Service) -> None:
        answer = await ask(service, "GET", "/v1/reservations?status=active,lost")
        assert answer.status_code == 400
        assert '"lost" is not a status' in answer.json()["detail"]

    serve(database_url, work)


def test_no_client_submits_a_reservation_as_a_job(database_url: str) -> None:
    async def work(service: Service) -> None:
        body = {"script": "#!/bin/sh\n", "work_dir": "/tmp", "kind": "reservation"}
        answer = await ask(service, "POST", "/v1/jobs", body)
        assert answer.status_code == 400

    serve(database_url, work)


def test_a_partial_node_gets_its_share_and_a_whole_node_everything() -> None:
    """GPU-02, GPU-05, GPU-07: a reservation of CPUs only gets a whole node, so that none evicts
    another."""
    part = spec_of(Reserve(gpus=3), [H100], "/home/a", "/bin/bash")
    assert (part.cpus_per_task, part.mem_per_node_mib, part.exclusive) == (72, 750_000, False)
    whole = spec_of(Reserve(gpus=8), [H100], "/home/a", "/bin/bash")
    assert (whole.exclusive, whole.mem_per_node_mib) == (True, 0)
    gang = spec_of(Reserve(gpus=24, distributed=True), [H100], "/", "/bin/sh")
    assert (gang.node_count, gang.gpus_per_node, gang.exclusive) == (3, 8, True)
    cpu = spec_of(Reserve(gpu_type="CPU-X86"), [H100, CPU], "/", "/bin/sh")
    assert (cpu.gpus_per_node, cpu.exclusive, cpu.name) == (0, True, "cpu-x86")


def test_a_cpu_type_takes_no_gpus_and_24_hours_at_most() -> None:
    """SCH-17, GPU-09: and a whole node, so there is one reservation per node."""
    one = spec_of(Reserve(gpu_type="cpu-x86", hours=24), [H100, CPU], "/", "/bin/sh")
    assert (one.gpus_per_node, one.exclusive, one.time_limit_s) == (0, True, 86_400)
    with pytest.raises(NeverFits, match="have no GPUs"):
        spec_of(Reserve(gpu_type="cpu-x86", gpus=1), [H100, CPU], "/", "/bin/sh")
    with pytest.raises(BadRequest, match=r"between 0\.0833 and 24"):
        spec_of(Reserve(gpu_type="cpu-x86", hours=24.5), [H100, CPU], "/", "/bin/sh")


def test_every_option_is_kept_with_the_request() -> None:
    """SCH-23, BUG-10, STO-13."""
    request = Reserve(no_persist=True, github_user="octocat", image="a:1", comment="x")
    kept = spec_of(request, [H100], "/", "/bin/sh").details
    assert kept == {
        "no_persist": True, "github_user": "octocat", "image": "a:1",
    }  # fmt: skip


def test_the_type_may_be_left_out_where_there_is_one() -> None:
    """CLI-52."""
    assert find_type(Reserve(), [H100]) is H100
    assert find_type(Reserve(), [H100, CPU]) is H100
    assert find_type(Reserve(gpus=0), [H100, CPU]) is CPU
    assert find_type(Reserve(gpu_type="H100"), [H100, CPU]) is H100


def test_hours_have_decimals() -> None:
    assert seconds_of(0.0833) == 300
    assert seconds_of(0.5) == 1800
    assert seconds_of(24) == 86_400


def test_expected_waits_cover_partial_nodes_and_several_nodes() -> None:
    """CLI-34, BUG-34."""
    assert [(s["gpus"], s["nodes"]) for s in sizes_of(H100)] == [
        (1, 1), (2, 1), (4, 1), (8, 1), (16, 2), (24, 3), (32, 4), (40, 5), (48, 6),
    ]  # fmt: skip
    assert sizes_of(CPU) == [{"gpus": 0, "nodes": 1}]
