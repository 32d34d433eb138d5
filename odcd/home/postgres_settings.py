"""The settings of an embedded PostgreSQL, and the accounts that may log in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from odcd.home import postgres_roles as roles
from odcd.home.account import Account
from odcd.home.postgres_files import CONFIG, PORT, disk_trouble

FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""Settings of a database that need not survive a crash."""
SETTINGS: dict[str, object] = {
    "listen_addresses": "",
    "port": PORT,
    "max_connections": 100,
    "work_mem": "32MB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "10min",
    # A single server without a replica needs less WAL.
    "wal_level": "minimal",
    "max_wal_senders": 0,
    "jit": "off",
    "max_parallel_workers_per_gather": 0,
    "autovacuum_naptime": "10s",
    "autovacuum_vacuum_cost_delay": 0,
    "max_locks_per_transaction": 256,
    # A forgotten transaction would prevent vacuum on frequently updated tables.
    "idle_in_transaction_session_timeout": "10min",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "on",
    "log_filename": "postgresql-%a.log",
    "log_truncate_on_rotation": "on",
    "log_rotation_age": "1d",
    "log_rotation_size": 0,
    # A rejected request is an ERROR in the database; the daemon reports it, so it is not
    # logged.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "cluster_name": "odc",
}


def configure(
    data: Path, sockets: Path, owner: Account, daemon: Account, more: Mapping[str, str]
) -> None:
    """Write the settings and the login rules, again at every start.

    owner: the account that runs PostgreSQL. daemon: the account that connects. more: settings that
    override ours.
    """
    settings: dict[str, object] = {
        **SETTINGS,
        "unix_socket_directories": str(sockets),
        # The folder's permissions keep other users out; its group may be the daemon's.
        "unix_socket_permissions": "0700" if owner == daemon else "0777",
        "shared_buffers": f"{_shared_buffers_mib()}MB",
        **more,
    }
    lines = [f"{name} = {_quoted(value)}" for name, value in settings.items()]
    with owner.acting():
        _replace(
            data / CONFIG,
            "# Written by odcd at every start; put your own settings into postgresql.conf, last.",
            lines,
        )
        _replace(
            data / "pg_hba.conf",
            "# Only the accounts of odcd and of PostgreSQL, over the socket.",
            ["local all all peer map=odc"],
        )
        # Two roles: a compromised daemon is not a superuser. If both use one account, this only
        # prevents mistakes.
        _replace(
            data / "pg_ident.conf",
            "# map, system user, role",
            [
                f"odc {_name(daemon)} {roles.ROLE}",
                f"odc {_name(owner)} {roles.ADMIN_ROLE}",
            ],
        )


def _name(account: Account) -> str:
    quoted = account.name.replace('"', '""')
    return f'"{quoted}"'


def _replace(path: Path, head: str, lines: list[str]) -> None:
    """Run this as the folder's owner, so that a symbolic link there gives access to nothing new."""
    scratch = path.with_name(f"{path.name}.new")
    try:
        scratch.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(scratch, flags, 0o600), "w") as file:
            file.write("\n".join([head, *lines, ""]))
        scratch.rename(path)
    except OSError as error:
        raise disk_trouble(error, path) from error


def _quoted(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _shared_buffers_mib() -> int:
    memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return max(64, min(512, memory_mib // 8))
