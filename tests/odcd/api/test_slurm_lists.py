"""Lists of Slurm's commands that would be very long."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from odcctl.remote.program import frames
from odcd.api.slurm import fetch
from tests.odcd.api.service import BODY, Service, serve


def test_a_list_of_too_many_jobs_is_refused(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: `sacct -a -S 1970-01-01` read a whole history into the daemon's memory."""
    monkeypatch.setattr(fetch, "PAGE", 2)
    monkeypatch.setattr(fetch, "MAX_ROWS", 4)

    async def work(service: Service) -> None:
        async with service.client() as client:
            for count in range(1, 6):
                assert (await client.post("/v1/jobs", json=BODY)).status_code == 201
                for command, argv in (("squeue", ["-h"]), ("sacct", ["-n", "-a"])):
                    answer = await client.post(f"/v1/slurm/{command}", json={"argv": argv})
                    found = list(frames(iter([answer.content])))
                    if count < 5:
                        assert found[0][1].count(b"\n") == count
                        assert found[-1] == (b"x", b"0")
                    else:
                        assert found[0] == (
                            b"e",
                            f"{command}: error: more than 4 jobs match: name jobs or users, or a "
                            "later time\n".encode(),
                        )
                        assert found[-1] == (b"x", b"1")

    serve(database_url, work)


def test_sinfo_shows_times_in_the_callers_zone(database_url: str) -> None:
    async def work(service: Service) -> None:
        times: list[datetime] = []
        async with service.client() as client:
            for zone in ("UTC", "Asia/Kathmandu"):
                body = {"argv": ["-h", "-N", "-o", "%H"], "environment": {"TZ": zone}}
                answer = await client.post("/v1/slurm/sinfo", json=body)
                [(_, text), _] = frames(iter([answer.content]))
                times.append(datetime.fromisoformat(text.decode().split()[0]))
        assert times[1] - times[0] == timedelta(hours=5, minutes=45)

    serve(database_url, work)
