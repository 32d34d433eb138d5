"""The database as the daemon sees it."""

from __future__ import annotations

from tests.support.database import Sql


def test_a_rolled_back_session_leaves_nothing(sql: Sql) -> None:
    assert sql.value("select count(*) from odc.node") == 0
    sql.execute(
        "insert into odc.gpu_type (name,label,gpus_per_node,cpus_per_node,mem_per_node_mib) values ('x','x',0,1,1)"
    )
