"""The events before the sessions of a schedule start."""

from __future__ import annotations

from tests.interleave.world import World
from tests.support.builders.jobs import BOB, Queue

LABELS = ("array", "b", "gang", "small", "waits", "held", "later", "single", "licensed")


def a_busy_morning(world: World, queue: Queue) -> None:
    """b and two tasks of an array run on the H100. A gang waits for both nodes. The other jobs wait
    for an end, a release, a time, a name or a licence, except small, which fits."""
    queue.sql.execute("insert into odc.licence values ('solver', 1)")

    def submit(label: str, tasks: int = 1, **fields: object) -> None:
        who = fields.pop("who", None)
        request = {"name": label, "time_limit_s": 3600, **fields}
        job = queue.submit(BOB, **request) if who is BOB else queue.submit(**request)
        world.add(label, job, tasks)

    submit("b", gpus=4, gpu_type="h100", licences={"solver": 1}, who=BOB)
    submit("array", 6, array="0-5%2", gpus=4, gpu_type="h100")
    queue.start()
    submit("gang", node_count=2, gpus_per_node=8, gpu_type="h100")
    submit("small", gpus=2, gpu_type="l4", time_limit_s=600)
    submit("waits", gpus=1, dependency=world.text("after:{small},afterok:{b}"))
    submit("held", gpus=1, hold=True)
    submit("later", gpus=1, begin_at=world.at(60))
    submit("single", gpus=1, dependency="singleton", **{"name": "b"}, who=BOB)
    submit("licensed", gpus=1, licences={"solver": 1})
