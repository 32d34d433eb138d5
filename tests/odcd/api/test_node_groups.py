"""/v1/node-groups: the elastic groups."""

from __future__ import annotations

import msgspec

from odcd.api.answers.nodes import NodeGroupList
from tests.odcd.api.service import Service, serve
from tests.support.builders.groups import Group, Groups
from tests.support.builders.jobs import Queue
from tests.support.harness.database import Sql


def test_elastic_groups_are_listed_with_their_jobs(database_url: str) -> None:
    with Sql(database_url) as sql:
        queue = Queue(sql)
        groups = Groups(queue, Group("g", max_nodes=3))
        job = queue.submit(gpus=8, gpu_type="h100")
        groups.grow()

    async def work(service: Service) -> None:
        async with service.client() as client:
            answer = await client.get("/v1/node-groups")
        [group] = msgspec.json.decode(answer.content, type=NodeGroupList).groups
        assert (group.name, group.gpu_type, group.state) == ("g", "h100", "growing")
        assert (group.desired_nodes, group.nodes, group.max_nodes) == (1, 0, 3)
        assert group.jobs == [job]

    serve(database_url, work)
