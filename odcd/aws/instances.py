"""Power EC2 instances off, so that a node that does not answer is certain to run nothing."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Literal

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session

from odcd.aws.errors import asking
from odcd.clock import Clock
from odcd.disks.cloud import CloudBusy

if TYPE_CHECKING:
    from types_aiobotocore_ec2 import EC2Client

How = Literal["stop", "terminate"]
_PROVIDER = re.compile(r"aws:///[a-z0-9-]+/(i-[0-9a-f]{8,40})", re.ASCII)
OFF = frozenset({"stopped", "terminated"})
LOOK_S = 5.0
WAIT_S = 600.0
"""How long an instance may take to be off, until the request is repeated."""


class Instances:
    def __init__(
        self, how: How, region: str | None, endpoint: str | None, clock: Clock,
    ) -> None:  # fmt: skip
        """how: to stop an instance, or to terminate it."""
        self._how: How = how
        self._region = region
        self._endpoint = endpoint
        self._clock = clock

    async def fence(self, machine: str) -> None:
        """See odcd.executor.kubernetes.fence. Raises CloudBusy or CloudRefused."""
        found = _PROVIDER.fullmatch(machine)
        if found is None:
            raise CloudBusy(f'"{machine}" does not name an EC2 instance', sent=False)
        instance = found[1]
        async with AsyncExitStack() as opened:
            config = AioConfig(connect_timeout=5, read_timeout=30)
            client: Any = get_session().create_client(
                "ec2", region_name=self._region, endpoint_url=self._endpoint, config=config
            )
            ec2: EC2Client = await opened.enter_async_context(client)
            async with asking(f"{self._how} {instance}", "InvalidInstanceID.NotFound"):
                if self._how == "stop":
                    await ec2.stop_instances(InstanceIds=[instance], Force=True)
                else:
                    await ec2.terminate_instances(InstanceIds=[instance])
            await self._wait(ec2, instance)

    async def _wait(self, ec2: EC2Client, instance: str) -> None:
        deadline = self._clock.monotonic() + WAIT_S
        while True:
            state = await self._state(ec2, instance)
            if state in OFF:
                return
            if self._clock.monotonic() > deadline:
                raise CloudBusy(f"{instance} is still {state} after {WAIT_S:.0f} s", sent=True)
            await self._clock.sleep(LOOK_S)

    async def _state(self, ec2: EC2Client, instance: str) -> str:
        """An instance that AWS does not know has been terminated for a while."""
        answer: Any = {}
        async with asking(f"describe {instance}", "InvalidInstanceID.NotFound"):
            answer = await ec2.describe_instances(InstanceIds=[instance])
        for reservation in answer.get("Reservations", []):
            for one in reservation["Instances"]:
                return one["State"]["Name"]
        return "terminated"
