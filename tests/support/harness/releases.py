"""The SQL functions that a release's daemon calls, kept in tests/sql/releases.

In a rolling upgrade old daemons run on the next schema, which must answer all of it.

Record a release before its tag: python -m tests.support.harness.releases [COMMIT]
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg

from odcd.clock import SystemClock
from odcd.database import schema
from odcd.database.pool import connect
from tests.support.harness.database import shared_server

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "tests/sql/releases"
STATEMENT = re.compile(
    r"\s*(select|insert|update|delete|with)\b.*\bodc(_past|_report)?\.", re.DOTALL | re.IGNORECASE
)
FUNCTIONS = """
    select p.proname as name, p.pronargs as count, p.pronargdefaults as defaults,
           coalesce(p.proargnames, '{}') as names, p.proargmodes::text[] as modes,
           array(select format_type(t.oid, null)
                   from unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]))
                        with ordinality as t (oid, at) order by t.at) as types,
           format_type(p.prorettype, null) as result
      from pg_proc as p
     where p.pronamespace = 'odc'::regnamespace and p.prokind = 'f'
       and p.prorettype <> 'trigger'::regtype
     order by p.proname, p.oid::regprocedure::text
"""

Pairs = list[list[str]]


def recorded() -> list[dict[str, Any]]:
    """The recorded releases, the oldest first."""
    return [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]


def texts(root: Path) -> Iterator[str]:
    """Every string in the daemon's code."""
    for path in sorted((root / "odcd").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


async def statements(connection: asyncpg.Connection, found: set[str]) -> list[dict[str, Any]]:
    """The statements that the database accepts, and their results; a part of a composed statement
    is not counted."""
    kept: list[dict[str, Any]] = []
    for sql in sorted(found):
        try:
            columns = await answer(connection, sql)
        except asyncpg.PostgresError:
            continue
        kept.append({"sql": sql, "columns": columns})
    return kept


async def answer(connection: asyncpg.Connection, sql: str) -> Pairs:
    prepared = await connection.prepare(sql)
    return [[a.name, a.type.name] for a in prepared.get_attributes()]


async def functions(connection: asyncpg.Connection, names: set[str]) -> list[dict[str, Any]]:
    """The functions with these names: how they are called by name, and what they return."""
    kept: list[dict[str, Any]] = []
    for row in await connection.fetch(FUNCTIONS):
        if row["name"] not in names or row["name"].startswith("_"):
            continue
        modes = row["modes"] or ["i"] * row["count"]
        every = list(zip(row["names"], row["types"], modes, strict=False))
        takes = [[name, kind] for name, kind, mode in every if mode in "iv"]
        needed = len(takes) - row["defaults"]
        kept.append(
            {
                "name": row["name"],
                "takes": takes,
                "needs": [name for name, _ in takes[:needed]],
                "returns": [[name, kind] for name, kind, mode in every if mode in "ot"]
                or [["", row["result"]]],
            }
        )
    return kept


def answers_as_before(old: dict[str, Any], new: list[dict[str, Any]]) -> bool:
    """True if a call of the old function, with any of its arguments by name, works on one of the
    new ones."""
    takes = {tuple(pair) for pair in old["takes"]}
    returns = {tuple(pair) for pair in old["returns"]}
    return any(
        f["name"] == old["name"]
        and takes <= {tuple(pair) for pair in f["takes"]}
        and set(f["needs"]) <= set(old["needs"])
        and returns <= {tuple(pair) for pair in f["returns"]}
        for f in new
    )


async def describe(dsn: str, root: Path) -> dict[str, Any]:
    source = schema.read_source(root / "sql")
    await schema.install(dsn, SystemClock(), source)
    found = list(texts(root))
    connection = await connect(dsn, name="odc test")
    try:
        return {
            "version": source.version,
            "digest": source.digest,
            "migrations": {m.name: m.digest for m in source.migrations},
            "statements": await statements(
                connection, {text for text in found if STATEMENT.match(text)}
            ),
            "functions": await functions(
                connection, {word for text in found for word in re.findall(r"\w+", text)}
            ),
        }
    finally:
        await connection.close()


def _lines(done: dict[str, Any]) -> str:
    """JSON with an entry a line, for a diff to read."""
    parts = {key: json.dumps(value) for key, value in done.items() if not isinstance(value, list)}
    for key in ("statements", "functions"):
        parts[key] = "[\n" + ",\n".join(json.dumps(entry) for entry in done[key]) + "\n]"
    return "{" + ",\n".join(f'"{key}": {value}' for key, value in parts.items()) + "}\n"


def check_out(commit: str, folder: Path) -> bool:
    """The statements that the daemon of that commit needs; False: this checkout does not have its
    history."""
    packed = subprocess.run(
        ["git", "archive", commit, "odcd", "sql"], cwd=ROOT, capture_output=True, check=False
    )
    if packed.returncode == 0:
        subprocess.run(["tar", "x", "-C", folder], input=packed.stdout, check=True)
    return packed.returncode == 0


def main() -> None:
    commit = subprocess.run(
        ["git", "rev-parse", *(sys.argv[1:] or ["HEAD"])],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    with tempfile.TemporaryDirectory() as run, shared_server(Path(run)) as server:
        code = Path(run) / "code"
        code.mkdir()
        assert check_out(commit, code)
        done = {"commit": commit} | asyncio.run(describe(server.empty(), code))
    path = FOLDER / f"{done['version']:04}.json"
    FOLDER.mkdir(exist_ok=True)
    path.write_text(_lines(done))
    print(path, len(done["statements"]), "statements", len(done["functions"]), "functions")


if __name__ == "__main__":
    main()
