"""Images that reservations wait for: one build per context, before GPUs are allocated."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from odcd.errors import LimitExceeded, UnknownBuild
from odcd.records.job import Identity
from tests.sql.cluster.measure.figures import measured
from tests.support.builders.dev_servers import Reservations, actor
from tests.support.builders.disks import Disks
from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue

TARGET = "registry.example/builds"
IMAGE = f"{TARGET}@sha256:{'d' * 64}"
DAY = 86_400


class Builds:
    """Requests of users and of the leader about images."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.sql = queue.sql
        self.reservations = Reservations(queue)

    def put(
        self, digest: str = "a", who: Identity = ALICE, *, anew: bool = False
    ) -> dict[str, Any]:  # fmt: skip
        build = self.sql.value(
            "select odc.put_build($1::jsonb, $2, $3, 'Dockerfile', $4, $5, $6)",
            actor(who), digest * 64, TARGET, digest.encode(), anew, self.queue.now,
        )  # fmt: skip
        return json.loads(build)

    def reserve(
        self, digest: str = "a", who: Identity = ALICE, disk: str | None = None, **fields: Any
    ) -> int:
        build = self.put(digest, who)
        ask = {"build": digest * 64, "build_id": build["id"]}
        ask |= {"disk": disk} if disk else {}
        return self.reservations.reserve(who, details=ask, **fields)

    def take(self, most: int = 8) -> list[tuple[int, int, bool]]:
        """Build, attempt, and whether it had a Job."""
        rows = self.sql.rows("select * from odc.take_builds(0, $1, $2)", most, self.queue.now)
        return [(row["id"], row["attempt"], row["made"]) for row in rows]

    def note(self, build: int, attempt: int, step: str | None = None) -> None:
        self.sql.rows(
            "select odc.note_build(0, $1, $2, true, $3, $3, $4)",
            build, attempt, step, self.queue.now,
        )  # fmt: skip

    def end(
        self, build: int, attempt: int, image: str | None = None, error: str | None = None, *,
        lost: bool = False,
    ) -> bool:  # fmt: skip
        return self.sql.value(
            "select odc.end_build(0, $1, $2, $3, $4, $5, 'the log', $6)",
            build, attempt, image, error, lost, self.queue.now,
        )  # fmt: skip

    def show(self, digest: str = "a", who: Identity = ALICE) -> dict[str, Any]:
        build = self.sql.value(
            "select odc.show_build($1::jsonb, $2, $3)", actor(who), digest * 64, TARGET
        )
        return json.loads(build)

    def contexts(self) -> int:
        return self.sql.value("select count(*) from odc.build_context")

    def dispatched_image(self, job_id: int) -> str | None:
        dispatch = self.sql.value("select odc.dispatch_of($1)", job_id)
        return json.loads(dispatch)["options"].get("image")


@pytest.fixture
def builds(queue: Queue) -> Builds:
    return Builds(queue)


def test_a_build_is_measured_from_its_own_begin(builds: Builds, queue: Queue) -> None:
    """A build has no GPUs, and may wait behind other jobs, but only where images are built."""

    def oldest() -> float:
        name = "odcd_reservation_phase_oldest_seconds"
        return measured(queue, "measure_reservations")[name, "image_build"]

    builds.reserve("a")
    builds.reserve("b", BOB)
    queue.move(3600)
    assert oldest() == 3600
    [(first, _, _)] = builds.take(1)
    queue.move(60)
    assert oldest() == 60
    builds.end(first, 1, IMAGE)
    assert oldest() == 3660
    builds.take(1)
    queue.move(5)
    assert oldest() == 5


def test_a_new_begin_time_does_not_end_the_wait_for_an_image(builds: Builds, queue: Queue) -> None:
    dev_server = builds.reserve()
    for hours in (1, -1):
        begin_at = (queue.now + timedelta(hours=hours)).isoformat()
        assert queue.update(dev_server, changes={"begin_at": begin_at}) == {dev_server: "updated"}
    assert queue.pending(dev_server)["lacks"] == "image"
    assert queue.pending(dev_server)["eligible_at"] is None


def test_no_gpus_are_allocated_before_the_image_exists(builds: Builds, queue: Queue) -> None:
    """IMG-10, LIF-03, BUG-06: the wait is a state of the queue, with its reason and its end."""
    dev_server = builds.reserve()
    [(build, attempt, made)] = builds.take()
    assert (attempt, made) == (1, False)
    assert queue.start() == []
    pending = queue.pending(dev_server)
    assert pending["lacks"] == "image"
    assert pending["lacks_until"] == queue.now + timedelta(minutes=5)
    builds.note(build, attempt, "step 3/5: RUN pip install numpy")
    shown = builds.reservations.show(dev_server)
    assert (shown["reason"], shown["phase"]) == ("ImageBuild", "image_build")
    assert "image: step 3/5: RUN pip install numpy" in shown["message"]
    queue.move(60)
    assert builds.end(build, attempt, IMAGE)
    assert builds.take() == []
    assert queue.start() == [dev_server]
    assert builds.reservations.show(dev_server)["image"] == IMAGE


def test_reservations_that_wait_for_no_image_start_first(builds: Builds, queue: Queue) -> None:
    """IMG-10: a pending build blocks no other job."""
    builds.reserve(gpus=8)
    other = builds.reservations.reserve(BOB, gpus=8)
    builds.take()
    assert queue.start() == [other]


def test_the_same_context_is_one_build(builds: Builds, queue: Queue) -> None:
    """IMG-08: for all users, at the same time or later."""
    first, second = builds.reserve(), builds.reserve(who=BOB)
    [(build, attempt, _)] = builds.take()
    builds.end(build, attempt, IMAGE)
    third = builds.reserve()
    assert builds.take() == []
    assert sorted(queue.start()) == [first, second, third]
    assert builds.contexts() == 0


def test_a_failed_build_fails_its_reservations_with_the_end_of_its_log(
    builds: Builds, queue: Queue
) -> None:
    """IMG-07, LIF-18"""
    dev_server = builds.reserve()
    [(build, attempt, _)] = builds.take()
    builds.end(build, attempt, None, "RUN make: exit code 2")
    shown = builds.reservations.show(dev_server)
    assert shown["status"] == "failed"
    assert shown["failure_reason"] == "its image could not be built: RUN make: exit code 2"
    assert builds.show()["error"] == "RUN make: exit code 2"
    assert queue.contradictions() == []


def test_a_failed_build_is_retried_when_requested_again(builds: Builds) -> None:
    """IMG-07: the cause of the failure may be gone."""
    builds.reserve()
    [(build, attempt, _)] = builds.take()
    builds.end(build, attempt, None, "no network")
    builds.reserve()
    assert builds.take() == [(build, 2, False)]


def test_a_reservation_of_a_build_that_just_failed_fails(builds: Builds) -> None:
    builds.reserve()
    other = builds.put("a", BOB)
    [(build, attempt, _)] = builds.take()
    builds.end(build, attempt, None, "no such file")
    late = builds.reservations.reserve(BOB, details={"build": "a" * 64, "build_id": other["id"]})
    builds.take()
    assert "no such file" in builds.reservations.show(late, BOB)["failure_reason"]


def test_the_build_ends_when_its_last_reservation_is_cancelled(
    builds: Builds, queue: Queue
) -> None:
    """IMG-08: a user who asks again gets a new attempt, with another number."""
    first, second = builds.reserve(), builds.reserve(who=BOB)
    [(build, _, _)] = builds.take()
    builds.note(build, 1)
    queue.cancel(first)
    assert builds.take() == [(build, 1, True)]
    queue.cancel(second, who=BOB)
    assert builds.take() == []
    assert builds.show()["state"] == "queued"
    assert not builds.end(build, 1, IMAGE), "what an old attempt says is not heard"
    builds.reserve()
    assert builds.take() == [(build, 2, False)]


def test_a_lost_build_is_retried_a_limited_number_of_times(builds: Builds) -> None:
    """An attempt counts once, even if it is reported twice."""
    dev_server = builds.reserve()
    for attempt in (1, 2, 3):
        [(build, number, made)] = builds.take()
        assert (number, made) == (attempt, False)
        builds.note(build, number)
        assert not builds.end(build, number, None, "its Job is gone", lost=True)
        assert not builds.end(build, number, None, "its Job is gone", lost=True)
    assert builds.reservations.status(dev_server) == "failed"


def test_the_number_of_concurrent_builds_is_limited(builds: Builds) -> None:
    for digest in "abc":
        builds.reserve(digest)
    (first, *_), *_ = built = builds.take(2)
    assert len(built) == 2
    builds.end(first, 1, IMAGE)
    assert len(builds.take(2)) == 2


def test_build_times_are_learned(builds: Builds, queue: Queue) -> None:
    builds.reserve()
    [(build, attempt, _)] = builds.take()
    queue.move(120)
    builds.end(build, attempt, IMAGE)
    dev_server = builds.reserve("b")
    builds.take()
    assert queue.pending(dev_server)["lacks_until"] == queue.now + timedelta(seconds=120)


def test_an_unused_context_is_deleted_after_a_day(builds: Builds, queue: Queue) -> None:
    builds.put("a")
    dev_server = builds.reserve("b")
    queue.move(DAY + 1)
    builds.take()
    assert builds.contexts() == 1, "who waits needs it"
    late = builds.reservations.reserve(
        details={"build": "a" * 64, "build_id": builds.show("a")["id"]}
    )
    builds.take()
    assert "no longer kept" in builds.reservations.show(late)["failure_reason"]
    assert queue.state(dev_server) == "PENDING"


def test_contexts_of_one_user_do_not_fill_the_database(builds: Builds) -> None:
    for number in range(50):
        builds.put(f"{number:02d}")
    with pytest.raises(LimitExceeded, match="alice already has 50 contexts"):
        builds.put("z")
    builds.put("z", BOB)


def test_a_build_is_shown_only_to_users_with_its_context(builds: Builds) -> None:
    builds.put()
    with pytest.raises(UnknownBuild):
        builds.show(who=BOB)
    assert builds.show(who=ROOT)["asked_by"] == "alice"
    builds.put(who=BOB)
    assert builds.show(who=BOB)["state"] == "queued"


def test_an_image_can_be_rebuilt(builds: Builds, queue: Queue) -> None:
    """For example when the registry has lost the image."""
    builds.reserve()
    [(build, attempt, _)] = builds.take()
    builds.end(build, attempt, IMAGE)
    assert builds.put()["state"] == "completed"
    assert builds.put(anew=True)["state"] == "queued"
    builds.reserve()
    assert builds.take() == [(build, 2, False)]


def test_an_attempt_runs_the_image_that_was_built(builds: Builds, queue: Queue) -> None:
    """IMG-15: by its digest, also after a requeue."""
    dev_server = builds.reserve()
    [(build, attempt, _)] = builds.take()
    builds.end(build, attempt, IMAGE)
    queue.start()
    assert builds.dispatched_image(dev_server) == IMAGE


def test_a_reservation_waiting_for_an_image_blocks_no_disk(builds: Builds, queue: Queue) -> None:
    """IMG-10: the image is checked before the disk, and the disk goes to a job that could start."""
    disks = Disks(queue)
    disks.create()
    first = builds.reserve(disk="main")
    second = builds.reservations.reserve(details={"disk": "main"})
    assert [queue.pending(dev_server)["lacks"] for dev_server in (first, second)] == ["image", None]
    [(build, attempt, _)] = builds.take()
    assert queue.start() == [second]
    builds.end(build, attempt, IMAGE)
    assert queue.pending(first)["lacks"] == "disk"


def test_reservations_with_images_keep_their_place_in_the_queue(
    builds: Builds, queue: Queue
) -> None:
    disks = Disks(queue)
    disks.create()
    first = builds.reserve(disk="main")
    second = builds.reservations.reserve(details={"disk": "main"})
    [(build, attempt, _)] = builds.take()
    builds.end(build, attempt, IMAGE)
    assert [queue.pending(dev_server)["lacks"] for dev_server in (first, second)] == [None, "disk"]
    assert queue.start() == [first]
