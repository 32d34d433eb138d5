"""The steps of a forecast, one by one: three nodes with 8 GPUs, of which 2, 8 and none are free."""

from __future__ import annotations

from tests.support.harness.database import Sql

NODES, GROUP_VALUES, DOMAIN = 3, 3 * 3 + 64, 3 * 3 + 64 + 3
PARTLY, WHOLE = [1, 1, 2], [1, -2, 2]  # 2 GPUs of node 1, 2 GPUs of node 2


def free_lists(sql: Sql) -> list[int]:
    return sql.value("select odc._forecast_lists('{1,1,1}', '{2,8,-1}', '{8}', '{1}')")


def gang(sql: Sql, nodes: int, level: int) -> list[int]:
    query = "select odc._forecast_gang($1, 1, 1, '{1}', '{1}', '{1}', $2, '{8}', '{1}', $3, 3)"
    return sql.value(query, nodes, [level], free_lists(sql))


def beside(sql: Sql, slack: int, end_s: int) -> list[int]:
    """Take 2 GPUs of node 2, which a job needs whole in an hour."""
    then = [2, 8, 0, 1, 8, 7, 3600, slack, 0]
    return sql.value("select odc._forecast_beside($1, $2, 1, $3, 3, '{8}')", then, WHOLE, end_s)


def test_free_nodes_are_counted_and_others_listed(sql: Sql) -> None:
    free = free_lists(sql)
    assert [free[3 * NODES + level] for level in (0, 2, 8)] == [0, 1, 0]
    assert free[GROUP_VALUES:DOMAIN] == [1, 10, 2]
    assert free[DOMAIN:] == [1]


def test_a_gang_takes_parts_of_nodes_before_whole_ones(sql: Sql) -> None:
    assert gang(sql, 2, 2) == PARTLY + WHOLE
    assert gang(sql, 1, 8) == [1, 0, 1]
    assert gang(sql, 2, 8) == []


def test_an_end_gives_back_what_the_start_took(sql: Sql) -> None:
    before, picks = free_lists(sql), PARTLY + WHOLE
    taken = sql.value("select odc._forecast_take($1, $2, 3, '{8}', '{1}')", before, picks)
    assert taken[:NODES] == [0, 6, -1]
    assert taken[GROUP_VALUES:] == [0, 6, 3, 0]
    ahead = sql.value("select odc._forecast_ahead('{}', '{}', '{}', null, null, 7)")
    ahead = sql.value("select odc._forecast_add($1, 7, $2, 5, 9)", ahead, picks)
    assert ahead[:2] == [5, 9]
    release = "select odc._forecast_release($1, $2, $3, 3, '{8}', '{1}')"
    after = sql.value(release, taken, ahead, ahead[1 + 5])
    assert after[3 * NODES :] == before[3 * NODES :]


def test_a_job_starts_beside_a_protected_one_that_keeps_enough(sql: Sql) -> None:
    assert beside(sql, 0, 3600)[-1] == 1
    assert beside(sql, 0, 3601)[-1] == 0
    may = beside(sql, 1, 3601)
    assert (may[1], may[7], may[-1]) == (6, 0, 1)
