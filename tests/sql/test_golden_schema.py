"""The result of all migrations, for reviewers to read: tests/sql/golden/schema.sql.

After a migration write it again: ODC_WRITE_GOLDEN=1 python -m pytest
tests/sql/test_golden_schema.py
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from odcd.home.postgres_files import wheel_install
from tests.support.harness.database import MAJOR

GOLDEN = Path(__file__).with_name("golden") / "schema.sql"
HEAD = re.compile(r"^--\n-- Name: (.*); Type: (.*); Schema: .*\n--\n", re.MULTILINE)
# Functions are read in their files; partitions are created as ids grow.
KINDS = (
    "TYPE", "SEQUENCE", "TABLE", "VIEW", "DEFAULT", "CONSTRAINT", "INDEX", "TRIGGER",
    "FK CONSTRAINT",
)  # fmt: skip
LEFT_OUT_KINDS = {"FUNCTION", "SCHEMA", "TABLE ATTACH", "INDEX ATTACH"}
LEFT_OUT_NAMES = re.compile(r"\b(job|attempt|event)_\d+")
NOISE = re.compile(r"^(SET |SELECT pg_catalog\.|\\|--).*\n?", re.MULTILINE)


def dump(dsn: str) -> str:
    """pg_dump's output for schemas odc and odc_report, without lines that differ between runs."""
    program = wheel_install(MAJOR) / "bin" / "pg_dump"
    text = subprocess.run(
        [
            program, "--schema-only", "--schema=odc", "--schema=odc_report", "--no-owner",
            "--no-privileges", f"--dbname={dsn}",
        ],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    _, *parts = HEAD.split(text)
    # pg_dump moves a table ahead of a function that needs it, so its order follows the functions.
    statements = sorted(
        (KINDS.index(kind), name, NOISE.sub("", body).strip())
        for name, kind, body in zip(parts[0::3], parts[1::3], parts[2::3], strict=True)
        if kind not in LEFT_OUT_KINDS and not LEFT_OUT_NAMES.search(name)
    )
    return "\n\n".join(text for _, _, text in statements) + "\n"


@pytest.mark.skipif(MAJOR != 18, reason="the golden dump is PostgreSQL 18's way of writing it")
def test_the_migrations_add_up_to_the_golden_schema(database_url: str) -> None:
    found = dump(database_url)
    if "ODC_WRITE_GOLDEN" in os.environ:
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text(), "see the head of this file"


def test_every_time_has_a_zone() -> None:
    """DAT-04, BUG-19: times are timestamptz, never text, numbers or times without a zone."""
    schema = GOLDEN.read_text()
    assert "timestamp without time zone" not in schema
    times = re.findall(r"^    (\w+_at) ([a-z ]+)", schema, re.MULTILINE)
    assert len(times) > 50
    wrong = {(name, kind) for name, kind in times if not kind.startswith("timestamp with time")}
    assert wrong == set()
