"""Versions are ordered, and this one answers the daemons of every version it is compatible with.

tests/support/harness/releases.py explains how a release is recorded.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odcd.database import schema
from odcd.database.pool import connect
from tests.support.harness.releases import answer, answers_as_before, functions, recorded

SOURCE = schema.read_source(schema.sql_folder())
RELEASES = recorded()
COMPATIBLE = [r for r in RELEASES if SOURCE.compatible_since <= r["version"] < SOURCE.version]


def version(release: dict[str, Any]) -> str:
    return f"v{release['version']}"


def test_functions_that_changed_since_a_release_have_a_migration_after_it() -> None:
    """The number of the newest migration shows a database which odc is newer."""
    newest = RELEASES[-1]
    assert SOURCE.version >= newest["version"]
    if SOURCE.version == newest["version"]:
        assert SOURCE.digest == newest["digest"], (
            f"functions or views changed since version {newest['version']} was released: "
            "add a migration; a comment is enough"
        )


@pytest.mark.parametrize("release", RELEASES, ids=version)
def test_released_migrations_are_frozen(release: dict[str, Any]) -> None:
    ours = {m.name: m.digest for m in SOURCE.migrations}
    assert {name: ours.get(name) for name in release["migrations"]} == release["migrations"]


@pytest.mark.parametrize("release", COMPATIBLE, ids=version)
def test_statements_of_compatible_daemons_answer_as_before(
    database_url: str, release: dict[str, Any]
) -> None:
    """If a statement cannot, raise sql/compatible_since: then old daemons must be stopped
    before `odcd migrate`."""

    async def wrong() -> dict[str, object]:
        connection = await connect(database_url, name="odc test")
        found: dict[str, object] = {}
        try:
            for statement in release["statements"]:
                try:
                    columns = await answer(connection, statement["sql"])
                except Exception as error:
                    columns = [["error", str(error)]]
                if not _answers(statement["columns"], columns):
                    found[statement["sql"]] = columns
        finally:
            await connection.close()
        return found

    assert asyncio.run(wrong()) == {}


def _answers(before: list[list[str]], now: list[list[str]]) -> bool:
    """Rows are read by name, so more columns and another order are compatible."""
    return all(column in now for column in before)


@pytest.mark.parametrize("release", COMPATIBLE, ids=version)
def test_functions_of_compatible_daemons_are_called_as_before(
    database_url: str, release: dict[str, Any]
) -> None:
    async def current() -> list[dict[str, Any]]:
        connection = await connect(database_url, name="odc test")
        try:
            return await functions(connection, {f["name"] for f in release["functions"]})
        finally:
            await connection.close()

    now = asyncio.run(current())
    assert [f["name"] for f in release["functions"] if not answers_as_before(f, now)] == []


OLD = {"name": "f", "takes": [["p_a", "integer"]], "needs": ["p_a"], "returns": [["", "text"]]}


@pytest.mark.parametrize(
    ("change", "answers"),
    [
        ({}, True),
        ({"takes": [["p_b", "text"], ["p_a", "integer"]]}, True),
        ({"takes": [["p_b", "text"], ["p_a", "integer"]], "needs": ["p_b", "p_a"]}, False),
        ({"takes": [["p_b", "integer"]], "needs": ["p_b"]}, False),
        ({"takes": [["p_a", "bigint"]]}, False),
        ({"returns": [["", "integer"]]}, False),
        ({"name": "g"}, False),
    ],
)
def test_a_changed_function_is_noticed(change: dict[str, Any], answers: bool) -> None:
    assert answers_as_before(OLD, [{**OLD, **change}]) is answers
