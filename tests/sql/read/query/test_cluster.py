"""Nodes, partitions, and totals."""

from __future__ import annotations

import json

import msgspec
import pytest

from odcd.api.answers import cluster as cluster_answers
from odcd.api.answers.nodes import Node, TypeFragmentation
from odcd.api.answers.partitions import Partition
from tests.sql.read.query.cluster import Cluster
from tests.support.harness.database import Sql


def _set_state(sql: Sql, cluster: Cluster, state: str) -> None:
    sql.execute(
        "select odc.set_node_state($1::jsonb, '{n1}', $2, 'why', $3)",
        '{"user": "root", "uid": 0, "operator": true}', state, cluster.now,
    )  # fmt: skip


EXECUTOR = {"executor": {"name": None, "unreached_s": None}}
"""The fields that the daemon adds."""


def test_nodes_have_the_documented_keys_and_count_what_is_used(sql: Sql) -> None:
    cluster = Cluster(sql, nodes=2)
    job_id = cluster.submit(gpus=3, cpus_per_task=5, time_limit_s=60)
    cluster.plan()
    nodes = cluster.nodes()
    msgspec.convert(nodes, list[Node])
    assert [list(node) for node in nodes] == [list(Node.__struct_fields__)] * 2
    used, idle = nodes
    assert (used["state"], used["gpus_used"], used["jobs"]) == ("MIXED", 3, [job_id])
    assert used["cpus_used"] == 5
    assert used["free_at"] == "2026-01-01T00:01:00Z"
    assert (idle["state"], idle["gpus_used"], idle["jobs"], idle["free_at"]) == (
        "IDLE",
        0,
        [],
        None,
    )
    assert idle["partitions"] == ["main"]


def test_fragmentation_measures_the_spread_of_free_gpus(sql: Sql) -> None:
    cluster = Cluster(sql, nodes=5)
    sql.execute("update odc.node set zone = case when id % 2 = 0 then 'a' else 'b' end")
    sql.execute("select odc._regroup_nodes()")
    # One node with 3 GPUs in use, one idle, one drained: 5 + 3 x 8 ... of the nodes that are up.
    cluster.submit(gpus=3)
    cluster.submit(gpus=8)
    cluster.plan()
    idle = next(node["name"] for node in cluster.nodes() if node["gpus_used"] == 0)
    sql.execute("update odc.node set state = 'DRAIN' where name = $1", idle)
    sql.execute("select odc._regroup_nodes()")
    types = json.loads(sql.value("select odc.list_fragmentation()"))
    [kind] = msgspec.convert(types, list[TypeFragmentation])
    assert list(types[0]) == list(TypeFragmentation.__struct_fields__)
    assert (kind.gpu_type, kind.nodes, kind.gpus) == ("h100", 4, 32)
    assert (kind.gpus_free, kind.gpus_whole, kind.nodes_whole) == (21, 16, 2)
    assert kind.fragmented == pytest.approx(5 / 21, abs=1e-4)
    assert kind.fits == {"1": 21, "2": 2 + 8, "4": 1 + 4, "8": 2}
    whole = {d.domain: d.nodes_whole for d in kind.domains}
    assert set(whole) == {"a", "b"}
    assert (sum(whole.values()), kind.largest_gang) == (2, max(whole.values()))


def test_fragmentation_of_nothing_free_is_none(sql: Sql) -> None:
    cluster = Cluster(sql, nodes=1)
    cluster.submit(gpus=8)
    cluster.plan()
    [kind] = json.loads(sql.value("select odc.list_fragmentation()"))
    assert (kind["gpus_free"], kind["fragmented"], kind["largest_gang"]) == (0, None, 0)


@pytest.mark.parametrize(
    ("gpus", "state", "shown"),
    [
        (0, None, "IDLE"), (4, None, "MIXED"), (8, None, "ALLOCATED"),
        (0, "DRAIN", "DRAIN"), (4, "DRAIN", "DRAINING"), (0, "DOWN", "DOWN"),
    ],
)  # fmt: skip
def test_a_nodes_state_is_named_as_in_sinfo(
    sql: Sql, gpus: int, state: str | None, shown: str
) -> None:
    cluster = Cluster(sql)
    if gpus:
        cluster.submit(gpus=gpus)
        cluster.plan()
    if state:
        _set_state(sql, cluster, state)
    assert cluster.nodes()[0]["state"] == shown


def test_a_gang_is_one_job_on_each_of_its_nodes(sql: Sql) -> None:
    cluster = Cluster(sql, nodes=2)
    job_id = cluster.submit(node_count=2, gpus_per_node=8, gpus=None)
    cluster.plan()
    assert [node["jobs"] for node in cluster.nodes()] == [[job_id], [job_id]]
    assert cluster.job(job_id)["node_names"] == ["n1", "n2"]


def test_partitions_have_the_documented_keys(sql: Sql) -> None:
    Cluster(sql, nodes=2)
    [partition] = msgspec.convert(
        json.loads(sql.value("select odc.list_partitions()")), list[Partition]
    )
    assert (partition.name, partition.is_default) == ("main", True)
    assert (partition.node_names, partition.gpus, partition.gpus_free) == (["n1", "n2"], 16, 16)
    assert partition.gpu_types == ["h100"]


def test_the_diagnosis_counts_the_queue(sql: Sql) -> None:
    cluster = Cluster(sql)
    empty = msgspec.convert(cluster.diag() | EXECUTOR, cluster_answers.Cluster)
    assert (empty.jobs["PENDING"], empty.oldest_pending_s, empty.last_pass) == (0, None, None)
    cluster.submit(gpus=8)
    cluster.submit(gpus=8)
    cluster.submit(array="0-9", gpus=8)
    cluster.plan()
    cluster.move(7)
    diagnosis = msgspec.convert(cluster.diag() | EXECUTOR, cluster_answers.Cluster)
    assert diagnosis.jobs == {"PENDING": 2, "CONFIGURING": 1, "RUNNING": 0, "COMPLETING": 0}
    assert (diagnosis.pending_tasks, diagnosis.oldest_pending_s, diagnosis.planned) == (11, 7, 2)
    assert (diagnosis.gpus, diagnosis.nodes["UP"]) == ({"total": 8, "used": 8}, 1)
    assert diagnosis.last_pass is not None
    assert diagnosis.last_pass.started == 1


def test_an_empty_cluster_is_reported(sql: Sql) -> None:
    assert sql.value("select odc.list_nodes(now())") == "[]"
    assert json.loads(sql.value("select odc.diagnose(now())"))["gpus"] == {"total": 0, "used": 0}
