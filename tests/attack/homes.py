"""Homes as earlier versions left them: everything in them belongs to `odc`, whose role is a
superuser."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from odcd.clock import SystemClock
from odcd.database import schema
from odcd.home import account, postgres_files, postgres_roles
from odcd.home.account import service_account
from odcd.home.database_access import as_account
from odcd.home.postgres import EmbeddedPostgres


def make_former(home: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddedPostgres:
    """With the schema; its server runs, as `odc`."""
    with monkeypatch.context() as former:
        former.setattr(account, "database_account", lambda daemon: daemon)
        former.setattr(postgres_roles, "ADMIN_ROLE", postgres_roles.ROLE)
        former.setattr(postgres_roles, "NEW", (f"create database {postgres_roles.DATABASE}",))
        former.setattr(postgres_files, "split_roles", lambda *_: None)
        postgres = EmbeddedPostgres(home)
        dsn = postgres.start()
        source = schema.read_source(schema.sql_folder())
        as_account(
            postgres,
            lambda: asyncio.run(schema.install(dsn, SystemClock(), source)),
            of=schema.Installed,
        )
    (postgres.data / postgres_roles.MADE).unlink()
    give_all(home)
    return postgres


def give_all(home: Path) -> None:
    """Make the home the account's, but for the runner's folder."""
    daemon = service_account()
    if os.geteuid() != 0:
        return
    for part in (home / "pg", home / "data", home / "s"):
        subprocess.run(["chown", "-hR", f"{daemon.uid}:{daemon.gid}", part], check=True)
    for path in (home, home / "odcd.lock"):
        os.chown(path, daemon.uid, daemon.gid)
    home.chmod(0o755)
    (home / "odcd.lock").chmod(0o644)
