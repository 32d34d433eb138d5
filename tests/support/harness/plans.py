"""The plans that PostgreSQL makes for the statements inside functions, without an extension."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.harness.database import Sql

NODE = re.compile(r"\{([A-Z]\w*)\s|\{|\}|:join\.joinqual\s(<>)?")
WHERE = re.compile(r"function (?:odc\.)?(\w+)\(.*?\) line \d+|SQL function \"(\w+)\" statement \d+")


@contextmanager
def pairwise_joins(sql: Sql) -> Iterator[set[str]]:
    """The functions in which a statement is planned that compares each row of one set with each
    row of another: a nested loop with a join condition. Complete when the block has ended; plans
    that the session has already made are made again."""
    found: set[str] = set()

    def note(_: Any, message: Any) -> None:
        if message.message == "plan:" and _compares_pairs(message.detail):
            where = WHERE.search(message.context or "")
            found.add((where.group(1) or where.group(2)) if where else "")

    connection = sql._connection  # pyright: ignore[reportPrivateUsage]
    sql.execute("discard plans; set debug_print_plan = on; set debug_pretty_print = off")
    sql.execute("set client_min_messages = log")
    connection.add_log_listener(note)
    try:
        yield found
    finally:
        connection.remove_log_listener(note)
        sql.execute("reset client_min_messages; reset debug_print_plan; reset debug_pretty_print")


def _compares_pairs(plan: str) -> bool:
    """Whether a nested loop of the plan has a join condition of its own. If its inner side is found
    by index for each outer row, the condition is in the inner side."""
    path: list[str] = []
    for part in NODE.finditer(plan):
        text = part.group(0)
        if text == "}":
            path.pop()
        elif text.startswith("{"):
            path.append(part.group(1) or "")
        elif path and path[-1] == "NESTLOOP" and part.group(2) is None:
            return True
    return False
