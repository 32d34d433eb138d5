"""The loop that changes elastic groups, against the Auto Scaling of moto with faults."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from odcd.aws.groups import Groups
from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.disks.cloud import CloudRefused
from odcd.errors import RunnerDown
from odcd.loops.elastic import Elastic
from odcd.records.elastic import ElasticNode
from odcd.stores.elastic import ElasticStore
from tests.support.builders.jobs import NODES, Queue
from tests.support.fakes.aws import REGION, ZONES, FakeAws
from tests.support.harness.database import Sql

WHOLE = {"gpus": 8, "gpu_type": "h100"}


class Clock(SystemClock):
    """The time is set by the test."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def now(self) -> datetime:
        return self._queue.now


@dataclass
class Nodes:
    """A cluster in which every instance of the groups is a node."""

    aws: FakeAws
    closed: set[str] = field(default_factory=set[str])
    pods_of: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    broken: bool = False
    before_pods: Callable[[str], None] = lambda name: None

    async def nodes(self) -> list[ElasticNode]:
        if self.broken:
            raise RunnerDown("the API server is away")
        there = instances(self.aws)
        self.closed &= set(there)
        return [ElasticNode(name=one, instance_id=one, closed=one in self.closed) for one in there]

    async def close_off(self, name: str) -> None:
        self.closed.add(name)

    async def reopen(self, name: str) -> None:
        self.closed.discard(name)

    async def pods(self, name: str) -> list[str]:
        assert name in self.closed, "pods are counted on a node that accepts more"
        await asyncio.to_thread(self.before_pods, name)
        return self.pods_of.get(name, [])


def instances(aws: FakeAws) -> list[str]:
    groups: Any = aws.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    return [
        one["InstanceId"]
        for group in groups
        for one in group["Instances"]
        if one["LifecycleState"] == "InService"
    ]


def a_group(aws: FakeAws, name: str = "g", *, most: int = 3, least: int = 0, **tags: str) -> None:
    aws.autoscaling.create_launch_configuration(
        LaunchConfigurationName=name, ImageId="ami-12345678", InstanceType="p5.48xlarge"
    )
    every = {
        "odc.dev/cluster": "c", "odc.dev/elastic": "true", "GpuType": "h100",
        **{key.replace("__", "."): value for key, value in tags.items()},
    }  # fmt: skip
    aws.autoscaling.create_auto_scaling_group(
        AutoScalingGroupName=name, LaunchConfigurationName=name, MinSize=least, MaxSize=most,
        DesiredCapacity=least, AvailabilityZones=[ZONES[0]],
        Tags=[
            {"Key": key, "Value": value, "ResourceId": name,
             "ResourceType": "auto-scaling-group", "PropagateAtLaunch": False}
            for key, value in every.items()
        ],
    )  # fmt: skip


class World:
    """A database, moto, and rounds of the loop; each round is a new daemon, which knows nothing."""

    def __init__(self, runner: asyncio.Runner, database: Database, sql: Sql, aws: FakeAws) -> None:
        self.runner = runner
        self.store = ElasticStore(database)
        self.cloud = Groups("c", REGION, aws.url)
        self.aws = aws
        self.queue = Queue(sql)
        self.queue.now = SystemClock().now()
        self.sql = sql
        self.cluster = Nodes(aws)
        runner.run(self.cloud.open())
        for kind, (_, cpus, mem_mib) in NODES.items():
            sql.execute(
                "update odc.gpu_type set cpus_per_node = $2, mem_per_node_mib = $3 where name = $1",
                kind, cpus, mem_mib,
            )  # fmt: skip

    def round(self, times: int = 1, *, settle_s: float = 0) -> None:
        loop = Elastic(
            0, self.store, self.cloud, self.cluster, Clock(self.queue), timedelta(seconds=15),
            settle_s=settle_s,
        )  # fmt: skip

        async def work() -> None:
            for _ in range(times):
                await loop.run_once()

        self.runner.run(work())
        self.register()

    def register(self) -> None:
        gpus, cpus, mem_mib = NODES["h100"]
        body = [
            {"name": one, "gpu_type": "h100", "gpus": gpus, "cpus": cpus, "mem_mib": mem_mib}
            for one in instances(self.aws)
        ]
        if body or self.sql.value("select count(*) from odc.node"):
            self.sql.execute(
                "select odc.register_nodes(0, $1::jsonb, true, $2)", json.dumps(body),
                self.queue.now,
            )  # fmt: skip

    def desired(self, name: str = "g") -> int:
        found: Any = self.aws.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        return found["AutoScalingGroups"][0]["DesiredCapacity"]

    def states(self) -> list[str]:
        return self.sql.values("select state from odc.elastic_instance order by 1")

    def empty_node(self) -> str:
        """A node that was empty for long."""
        self.queue.submit(**WHOLE)
        self.round()
        self.round()
        [job] = self.queue.start()
        self.queue.end(job)
        self.round()
        self.queue.move(601)
        [name] = instances(self.aws)
        return name


@pytest.fixture
def world(database_url: str, fake: FakeAws) -> Iterator[World]:
    with Sql(database_url) as sql, asyncio.Runner() as runner:
        database = Database(database_url, size=1)
        runner.run(database.__aenter__())
        world = World(runner, database, sql, fake)
        try:
            yield world
        finally:
            runner.run(world.cloud.close())
            runner.run(database.__aexit__(None, None, None))


def test_a_group_grows_for_a_job_and_shrinks_after_it(world: World) -> None:
    a_group(world.aws)
    world.round()
    job = world.queue.submit(**WHOLE)
    world.round()
    assert world.desired() == 1
    world.round()
    assert world.queue.start() == [job]
    world.queue.end(job)
    world.round()
    world.queue.move(601)
    world.round()
    assert (world.desired(), instances(world.aws)) == (0, [])
    world.round()
    assert world.states() == []
    assert world.sql.values("select state::text from odc.node") == ["DOWN"]
    last = world.aws.last("TerminateInstanceInAutoScalingGroup")
    assert last["ShouldDecrementDesiredCapacity"] == "true"


def test_groups_of_other_clusters_and_groups_that_are_not_elastic_are_left_alone(
    world: World,
) -> None:
    a_group(world.aws, "other", **{"odc.dev/cluster": "d"})
    a_group(world.aws, "fixed", **{"odc.dev/elastic": "false"})
    world.round()
    assert world.sql.values("select name from odc.elastic_group") == []


def test_tags_set_the_times_and_a_bad_tag_is_reported_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    a_group(world.aws, "g", **{"odc.dev/idle-s": "60", "odc.dev/features": "spot fast"})
    a_group(world.aws, "bad", **{"odc.dev/idle-s": "soon"})
    a_group(world.aws, "typo", GpuType="h1000")
    with caplog.at_level(logging.ERROR):
        world.round(3)
    row = world.sql.row("select * from odc.elastic_group")
    assert (row["name"], row["idle"].total_seconds(), row["features"]) == (
        "g", 60, ["fast", "spot"],
    )  # fmt: skip
    said = [vars(r)["group"] for r in caplog.records if r.message == "elastic.group_ignored"]
    assert sorted(said) == ["bad", "typo"]


FAULTS = [
    "throttle",
    *(pytest.param(fault, marks=pytest.mark.long) for fault in ("error", "cut", "swallow")),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_size_is_requested_until_aws_answers(world: World, fault: Any) -> None:
    a_group(world.aws)
    world.queue.now = SystemClock().now()
    world.round()
    world.queue.submit(**WHOLE)
    world.aws.fail("SetDesiredCapacity", fault, times=3)
    world.round()
    world.round()
    assert world.desired() == 1
    assert world.sql.values("select failures from odc.elastic_group") == [0]


def test_without_rights_the_group_pauses_and_the_job_says_why(world: World) -> None:
    a_group(world.aws)
    world.round()
    job = world.queue.submit(**WHOLE)
    world.aws.fail("SetDesiredCapacity", "refuse", times=9, code="AccessDenied")
    world.round(3)
    assert world.aws.count("SetDesiredCapacity") == 1
    row = world.sql.row("select failures, failure from odc.elastic_group")
    assert row["failures"] == 1
    assert "AccessDenied" in row["failure"]
    assert world.queue.state(job) == "PENDING"


@pytest.mark.parametrize("code", ["AccessDenied", "UnauthorizedOperation"])
def test_a_list_that_fails_changes_nothing(world: World, code: str) -> None:
    a_group(world.aws, least=1)
    world.round()
    before = world.sql.rows("select * from odc.elastic_group")
    world.aws.fail("DescribeAutoScalingGroups", "refuse", times=9, code=code)
    world.queue.move(5000)
    world.round()
    world.aws.heal()
    world.cluster.broken = True
    world.round()
    assert world.sql.rows("select * from odc.elastic_group") == before


def test_a_node_with_a_pod_of_someone_else_stays(world: World) -> None:
    """A pod without requests uses nothing that the inventory counts."""
    a_group(world.aws)
    world.round()
    name = world.empty_node()
    world.cluster.pods_of[name] = ["team/notebook"]
    world.round(2)
    assert world.aws.count("TerminateInstanceInAutoScalingGroup") == 0
    assert world.states() == ["IN"]
    assert world.cluster.closed == set()
    assert world.sql.values("select state::text from odc.node") == ["UP"]


def test_pods_are_counted_only_after_the_node_was_closed_for_a_while(world: World) -> None:
    a_group(world.aws)
    world.round()
    name = world.empty_node()
    world.round(3, settle_s=3600)
    assert world.cluster.closed == {name}
    assert world.aws.count("TerminateInstanceInAutoScalingGroup") == 0


def test_an_operator_who_resumes_the_node_while_it_is_closed_keeps_it(world: World) -> None:
    a_group(world.aws)
    world.round()
    world.empty_node()
    job = world.queue.submit(**WHOLE)

    def resume(name: str) -> None:
        world.sql.value(
            "select odc.set_node_state($1::jsonb, array[$2], 'UP', null, $3)",
            '{"user": "root", "uid": 0, "operator": true}', name, world.queue.now,
        )  # fmt: skip
        assert world.queue.start() == [job]

    world.cluster.before_pods = resume
    world.queue.hold(job)
    world.sql.execute("select odc.shrink_groups(0, $1)", world.queue.now)
    world.queue.release(job)
    world.round()
    assert world.aws.count("TerminateInstanceInAutoScalingGroup") == 0
    assert world.queue.state(job) == "CONFIGURING"
    assert world.cluster.closed == set()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_removal_that_is_not_answered_is_repeated_and_the_node_stays_closed(
    world: World, fault: Any
) -> None:
    a_group(world.aws)
    world.round()
    name = world.empty_node()
    world.aws.fail("TerminateInstanceInAutoScalingGroup", fault, times=3)
    world.round()
    world.register()
    if instances(world.aws):
        assert (world.states(), world.cluster.closed) == (["SENT"], {name})
        job = world.queue.submit(**WHOLE)
        assert world.queue.start() == []
        world.queue.cancel(job)
    world.round()
    world.round()
    assert (world.desired(), instances(world.aws), world.states()) == (0, [], [])


def test_a_removal_without_rights_returns_the_node(world: World) -> None:
    a_group(world.aws)
    world.round()
    world.empty_node()
    world.aws.fail("TerminateInstanceInAutoScalingGroup", "refuse", times=9, code="AccessDenied")
    world.round(3)
    assert world.aws.count("TerminateInstanceInAutoScalingGroup") == 1
    assert (world.states(), world.cluster.closed) == (["IN"], set())
    job = world.queue.submit(**WHOLE)
    assert world.queue.start() == [job]


STEPS = (
    "grow", "resize", "record_size", "shrink", "close_off", "pods", "confirm_removal", "terminate",
    "record_removal",
)  # fmt: skip


class KilledError(BaseException):
    """The process ends here."""


@contextmanager
def killed(monkeypatch: pytest.MonkeyPatch, step: str) -> Iterator[None]:
    """The daemon is killed after this step."""
    with monkeypatch.context() as patch:
        for kind in (Groups, Nodes, ElasticStore):
            method = getattr(kind, step, None)
            if method is None:
                continue

            async def die(
                self: Any, *args: Any, method: Callable[..., Awaitable[Any]] = method
            ) -> Any:
                await method(self, *args)
                raise KilledError

            patch.setattr(kind, step, die)
        yield


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
def test_a_daemon_that_is_killed_at_any_step_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Killed while the group grows, and again while it shrinks: the next daemons bring each to its
    end, and no node stays drained or closed."""
    a_group(world.aws)
    world.round()
    job = world.queue.submit(**WHOLE)
    with killed(monkeypatch, step):
        try:
            world.round()
        except KilledError:
            world.register()
    for _ in range(3):
        world.round()
    assert world.desired() == 1
    assert world.queue.start() == [job]
    world.queue.end(job)
    world.round()
    world.queue.move(601)
    with killed(monkeypatch, step):
        try:
            world.round()
        except KilledError:
            world.register()
    late = world.queue.submit(**WHOLE)
    started = world.queue.start()
    for _ in range(3):
        world.round()
    if started:
        assert world.queue.state(late) == "CONFIGURING"
        assert len(instances(world.aws)) == 1
    assert (
        world.sql.values(
            "select name from odc.node as n where state = 'DRAIN' and not exists "
            "(select from odc.elastic_instance as i where i.node_id = n.id and i.state <> 'IN')"
        )
        == []
    )
    assert world.cluster.closed <= set(instances(world.aws))
    world.queue.move(400)
    for _ in range(2):
        world.round()
    if not started:
        world.queue.start()
    assert world.queue.state(late) == "CONFIGURING"
    assert world.cluster.closed == set()
    assert world.queue.contradictions() == []


def test_a_failed_launch_is_reported_by_aws(fake: FakeAws) -> None:
    """Refusals of the list of activities are those of the whole list."""
    a_group(fake)
    fake.fail("DescribeAutoScalingGroups", "refuse", code="AccessDenied")

    async def ask() -> None:
        groups = Groups("c", REGION, fake.url)
        await groups.open()
        try:
            with pytest.raises(CloudRefused, match="list Auto Scaling groups"):
                await groups.groups()
            [one] = await groups.groups()
            assert (one.name, one.max_nodes, one.zone) == ("g", 3, ZONES[0])
        finally:
            await groups.close()

    asyncio.run(ask())
