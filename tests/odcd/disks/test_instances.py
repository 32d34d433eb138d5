"""Nodes are powered off by EC2, as far as EC2 itself confirms it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odcd.aws.instances import How, Instances
from odcd.clock import SystemClock
from odcd.disks.cloud import CloudBusy, CloudRefused
from tests.support.fakes.aws import ZONES, FakeAws

REGION = "us-east-2"


def an_instance(fake: FakeAws) -> str:
    made: Any = fake.ec2.run_instances(
        ImageId="ami-12345678", MinCount=1, MaxCount=1, InstanceType="p5.48xlarge"
    )
    return made["Instances"][0]["InstanceId"]


def state(fake: FakeAws, instance: str) -> str:
    found: Any = fake.ec2.describe_instances(InstanceIds=[instance])
    return found["Reservations"][0]["Instances"][0]["State"]["Name"]


def fence(fake: FakeAws, how: How, machine: str) -> None:
    asyncio.run(Instances(how, REGION, fake.url, SystemClock()).fence(machine))


@pytest.mark.parametrize(("how", "after"), [("stop", "stopped"), ("terminate", "terminated")])
def test_an_instance_is_off_when_the_fence_returns(fake: FakeAws, how: How, after: str) -> None:
    instance = an_instance(fake)
    for _ in range(2):
        fence(fake, how, f"aws:///{ZONES[0]}/{instance}")
        assert state(fake, instance) == after


def test_an_instance_that_no_longer_exists_is_off(fake: FakeAws) -> None:
    fence(fake, "stop", f"aws:///{ZONES[0]}/i-0123456789abcdef0")


@pytest.mark.parametrize("machine", ["", "kind://docker/kind/n1", "aws:///us-east-2a/i-1;reboot"])
def test_a_node_of_another_cloud_cannot_be_fenced(fake: FakeAws, machine: str) -> None:
    with pytest.raises((CloudBusy, CloudRefused), match="does not name an EC2 instance"):
        fence(fake, "stop", machine)
