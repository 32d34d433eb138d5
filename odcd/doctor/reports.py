"""Checks the rights of logins that read reports, such as Grafana's, without changing anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from odcd.database.pool import Database
from odcd.doctor.host import Finding
from odcd.errors import OdcError

ABOUT = "reports"
TROUBLES = {
    "views": "the role odc_report may not read all views",
    "locks": "its logins may take the locks of passes, and store data",
    "limit": "odcd may not end their long statements",
}


def examine_reports(dsn: str) -> Iterator[Finding]:
    """dsn: of an external PostgreSQL. Only odc's own account reaches the embedded one."""
    try:
        lacking = asyncio.run(_lacking(dsn))
    except OdcError as error:
        yield Finding(
            about=ABOUT, verdict="note", text=f"not checked: {error.message}", hint=error.hint
        )
        return
    if lacking is None:
        yield Finding(about=ABOUT, verdict="ok", text="no login has the role odc_report")
    elif lacking:
        yield Finding(
            about=ABOUT,
            verdict="note",
            text="; ".join(TROUBLES.get(one, one) for one in lacking),
            hint="Run `select odc.grant_reports()` once in odc's database, as a superuser.",
        )
    else:
        yield Finding(
            about=ABOUT, verdict="ok", text="logins with the role odc_report read views only"
        )


async def _lacking(dsn: str) -> list[str] | None:
    async with Database(dsn, size=1) as database:
        if not await database.fetchval("select to_regprocedure('odc.reports_lack()') is not null"):
            return None
        return await database.fetchval("select odc.reports_lack()")
