"""Times that a user writes break no list of other users: neither odcctl's nor the page's."""

from __future__ import annotations

import json
from typing import Any

from tests.odcctl.conftest import Odcctl, environment, home, odcctl, peer
from tests.odcctl.peer import Peer, Reply
from tests.odcd.api.service import ALICE, BOB, Service, serve
from tests.odcd.page.browse import Browsed, browse

__all__ = ["environment", "home", "odcctl", "peer"]

LAST = "9999-12-31T23:59:59Z"
"""It has no local time east of Greenwich."""
NO_TIME = "2026-99-99T99:99:99Z"
"""It looks like one of the daemon's times."""


def test_jobs_of_one_user_break_no_list_of_odcctl(
    database_url: str, peer: Peer, odcctl: Odcctl
) -> None:
    """Before: `odcctl queue` of all users in Asia and most of Europe ended with a traceback, and so
    did everybody's `odcctl events`, forever."""
    found: dict[str, Any] = {}

    async def work(service: Service) -> None:
        job_id = await service.submit(ALICE, begin_at=LAST)
        async with service.client(ALICE) as client:
            body = {"name": NO_TIME}
            answer = await client.patch(f"/v1/jobs/{job_id}", json=body)
            assert answer.status_code == 200, answer.text
        async with service.client(BOB) as client:
            found["jobs"] = (await client.get("/v1/jobs")).json()
            found["events"] = (await client.get("/v1/events?after=0&follow=false")).content

    serve(database_url, work)
    peer.on("GET", "/v1/jobs", found["jobs"])
    done = odcctl("queue", TZ="Asia/Tokyo")
    assert (done.code, done.err) == (0, "")
    assert "may not start before Dec 31 23:59" in done.out
    peer.on(
        "GET", "/v1/events", Reply(pieces=[found["events"]], media_type="text/event-stream")
    )  # fmt: skip
    done = odcctl("events", "--after", "0", TZ="Asia/Tokyo")
    assert (done.code, done.err) == (0, "")
    assert NO_TIME in done.out


def test_a_step_of_a_build_breaks_no_page(database_url: str) -> None:
    """Before: while a reservation waited for an image whose Dockerfile has such a step, the
    overview and the queue answered everybody with 500."""

    async def work(it: Browsed) -> None:
        job_id = await it.service.submit(ALICE)
        # As _judge_needs stores it.
        await it.service.database.execute(
            "update odc.pending set lacks = 'image', lacks_text = $2, eligible_at = null "
            "where job_id = $1",
            job_id, f"image: step 2/3: RUN echo {NO_TIME}",
        )  # fmt: skip
        async with it.inside(BOB) as client:
            for path in ("/", "/page/queue", f"/page/jobs/{job_id}", f"/page/jobs/{job_id}/why"):
                answer = await client.get(path)
                assert answer.status_code == 200, (path, answer.text)
                assert NO_TIME in answer.text, path
        answer = await it.service.client(BOB).get(f"/v1/jobs/{job_id}")
        assert NO_TIME in json.dumps(answer.json())

    browse(database_url, work)
