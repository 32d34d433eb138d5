"""Auto Scaling groups whose number of nodes odc changes."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session

from odcd.aws.errors import asking
from odcd.aws.link import CallListener
from odcd.call_metrics import NOBODY, Calls
from odcd.elastic.groups import CLUSTER, ELASTIC, TYPE, read_tags
from odcd.records.elastic import ElasticGroup

ENDING = ("Terminating", "Terminated", "Detaching", "Detached")
TRIES = 3


class Groups:
    """Implements odcd.elastic.groups.ElasticCloud."""

    def __init__(
        self, cluster: str, region: str | None, endpoint: str | None, calls: Calls = NOBODY
    ) -> None:
        """cluster: the value of the groups' tag odc.dev/cluster."""
        self._cluster = cluster
        self._region = region
        self._endpoint = endpoint
        self._calls = calls
        self._opened = AsyncExitStack()
        self._autoscaling: Any = None

    async def open(self) -> None:
        """Create the client. Nothing is sent yet."""
        retries: Any = {"mode": "standard", "total_max_attempts": TRIES}
        config = AioConfig(connect_timeout=5, read_timeout=30, retries=retries)
        session: Any = get_session()
        client: Any = session.create_client(
            "autoscaling", region_name=self._region, endpoint_url=self._endpoint, config=config
        )
        self._autoscaling = await self._opened.enter_async_context(client)
        listener = CallListener(self._calls)
        events = self._autoscaling.meta.events
        events.register("before-call.autoscaling", listener.begun)
        events.register("after-call.autoscaling", listener.answered)
        events.register("after-call-error.autoscaling", listener.broken)

    async def close(self) -> None:
        await self._opened.aclose()

    async def groups(self) -> list[ElasticGroup]:
        """See odcd.elastic.groups.ElasticCloud, also for the other methods."""
        wanted = {CLUSTER: self._cluster, ELASTIC: "true"}
        filters = [{"Name": f"tag:{tag}", "Values": [value]} for tag, value in wanted.items()]
        found: list[ElasticGroup] = []
        async with asking("list Auto Scaling groups"):
            pages = self._autoscaling.get_paginator("describe_auto_scaling_groups").paginate(
                Filters=filters
            )
            async for page in pages:
                for entry in page["AutoScalingGroups"]:
                    tags = {tag["Key"]: tag.get("Value", "") for tag in entry.get("Tags", ())}
                    if not entry.get("Status") and wanted.items() <= tags.items():
                        found.append(await self._group(entry, tags))
        return found

    async def _group(self, entry: dict[str, Any], tags: dict[str, str]) -> ElasticGroup:
        instances = [
            one["InstanceId"]
            for one in entry.get("Instances", ())
            if not one["LifecycleState"].startswith(ENDING)
        ]
        name, desired = entry["AutoScalingGroupName"], int(entry["DesiredCapacity"])
        zones = entry.get("AvailabilityZones", [])
        durations, features, problem = read_tags(tags)
        failure, failed_at = None, None
        if desired > len(instances):
            failure, failed_at = await self._last_failure(name)
        return ElasticGroup(
            name=name,
            gpu_type=tags.get(TYPE, ""),
            min_nodes=int(entry["MinSize"]),
            max_nodes=int(entry["MaxSize"]),
            desired=desired,
            features=features,
            zone=zones[0] if len(zones) == 1 else None,
            efa_domain=entry.get("PlacementGroup") or None,
            instances=instances,
            problem=problem,
            failure=failure,
            failed_at=failed_at,
            **durations,
        )

    async def _last_failure(self, name: str) -> tuple[str | None, datetime | None]:
        """Why and when the newest launch failed."""
        answer = await self._autoscaling.describe_scaling_activities(
            AutoScalingGroupName=name, MaxRecords=1
        )
        for activity in answer.get("Activities", ()):
            if activity.get("StatusCode") == "Failed":
                message = " ".join(str(activity.get("StatusMessage", "")).split())[:300]
                return f"AWS launched no instance: {message}", activity["StartTime"]
        return None, None

    async def resize(self, group: str, size: int) -> None:
        async with asking(f"set the size of {group}"):
            await self._autoscaling.set_desired_capacity(
                AutoScalingGroupName=group, DesiredCapacity=size, HonorCooldown=False
            )

    async def terminate(self, instance_id: str) -> None:
        async with asking(f"end {instance_id}"):
            await self._autoscaling.terminate_instance_in_auto_scaling_group(
                InstanceId=instance_id, ShouldDecrementDesiredCapacity=True
            )
