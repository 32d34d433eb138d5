"""A shape is found, or found to be new, without reading the others."""

from __future__ import annotations

import pytest

from odcd.records.job import JobSpec
from tests.support.builders.jobs import a_cluster, a_job, submit
from tests.support.harness.database import Sql

SHAPES = 5000
JOBS = 100
ROWS_EACH = 5
"""Rows of odc.shape that one job may read: its own when it is looked up and when it is written."""


@pytest.mark.parametrize("planned", ["while the table was empty", "with thousands there"])
def test_a_shape_is_found_by_an_index_however_many_there_are(
    database_url: str, planned: str
) -> None:
    """Found: each lookup read every shape with the same GPUs, CPUs and memory."""
    with Sql(database_url) as sql:
        sql.begin()
        a_cluster(sql, h100=2)
        sql.execute("insert into odc.licence (name, total) values ('lab', 1000000)")
        for count in range(1, 10):  # the plans are kept from here on
            submit(sql, asking(count))
        insert_shapes(sql)
        if planned == "with thousands there":
            sql.execute("analyze odc.shape")
        for first in (20, 100_000):  # new ones, and some that are there
            before = rows_read(sql)
            jobs = [asking(first + n) for n in range(JOBS)]
            assert all(answer.job_id for answer in submit(sql, *jobs))
            # A query plan for an empty table may read it once for all jobs, but not once per job.
            once = 2 * SHAPES if planned == "while the table was empty" else 0
            assert rows_read(sql) - before < ROWS_EACH * JOBS + once
        assert sql.value("select count(*) from odc.shape") == 9 + SHAPES + JOBS
        sql.rollback()


def test_a_refused_request_and_a_dry_run_keep_no_shape(database_url: str) -> None:
    with Sql(database_url) as sql:
        sql.begin()
        a_cluster(sql, h100=1)
        refused = submit(sql, a_job(gpus=1), a_job(partitions=["nowhere"]))
        assert [answer.code for answer in refused] == [None, "OD001"]
        submit(sql, a_job(gpus=2), dry_run=True)
        assert sql.value("select count(*) from odc.shape") == 0
        sql.rollback()


def asking(count: int) -> JobSpec:
    return a_job(gpus=1, licences={"lab": count})


def insert_shapes(sql: Sql) -> None:
    """Like those of asking(), numbered from 100,000."""
    sql.execute(
        """
        insert into odc.shape (partition_ids, node_count, gpus_per_node, gpu_type, cpus_per_node,
                               mem_per_node_mib, exclusive, licences)
        select partition_ids, node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib,
               exclusive, jsonb_build_object('lab', 100000 + n)
          from (select * from odc.shape limit 1) as s, generate_series(0, $1 - 1) as n
        """,
        SHAPES,
    )


def rows_read(sql: Sql) -> int:
    return sql.value(
        "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables "
        "where relid = 'odc.shape'::regclass"
    )
