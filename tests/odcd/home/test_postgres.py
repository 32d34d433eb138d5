"""The embedded PostgreSQL: its owner, its access control, and its recovery."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from odcd.clock import SystemClock
from odcd.database.pool import connect
from odcd.errors import DatabaseDown, OdcError
from odcd.home.account import Account, database_account, service_account
from odcd.home.folder import prepare_home
from odcd.home.postgres import EmbeddedPostgres
from odcd.home.postgres_files import INSTALLS, failure
from tests.support.harness.daemon import gone
from tests.support.harness.database import Sql, admit_root, make_home, remove_home
from tests.support.harness.users import AS_ROOT, as_user, needs_open_checkout, needs_root


@pytest.fixture(scope="module")
def own_home() -> Iterator[Path]:
    home = make_home()
    yield home
    remove_home(home)


@pytest.fixture
def postgres(own_home: Path) -> EmbeddedPostgres:
    """A server to kill and stop; each test leaves it in a state in which it starts again."""
    return EmbeddedPostgres(own_home)


@pytest.fixture(scope="module", params=sorted(INSTALLS))
def shared(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    """A server of each version, for tests that only read."""
    home = make_home()
    server = EmbeddedPostgres(home, request.param)
    server.start()
    yield server
    remove_home(home)


def owner() -> Account:
    """Of the server and its files."""
    return database_account(service_account())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def pid_of(server: EmbeddedPostgres) -> int:
    running = server.postmaster()
    assert running is not None
    return running.pid


def sockets_of(server: EmbeddedPostgres) -> Path:
    running = server.postmaster()
    assert running is not None
    return running.sockets


def ask(dsn: str, query: str) -> object:
    """As the server's account, which alone may do so."""

    async def run() -> object:
        connection = await connect(dsn)
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    if AS_ROOT:
        return as_user(service_account().name, lambda: asyncio.run(run()))
    return asyncio.run(run())


def test_the_server_has_the_requested_version_and_a_fixed_sort_order(
    shared: EmbeddedPostgres,
) -> None:
    dsn = shared.dsn
    assert str(ask(dsn, "show server_version")).startswith(f"{shared.version}.")
    assert ask(dsn, "show server_encoding") == "UTF8"
    letters = "select string_agg(c, '' order by c) from unnest(array['b','A','a','B','é']) as c"
    assert ask(dsn, letters) == "ABabé"
    assert ask(dsn, "select upper('é')") == "É"


def test_the_server_does_not_listen_on_tcp(shared: EmbeddedPostgres) -> None:
    assert ask(shared.dsn, "show listen_addresses") == ""


def test_only_its_account_can_read_its_files_and_the_daemon_can_use_its_socket(
    shared: EmbeddedPostgres,
) -> None:
    for folder in (shared.data, shared.data.parent):
        assert mode(folder) == 0o700
        assert folder.stat().st_uid == owner().uid
    sockets = sockets_of(shared)
    assert mode(sockets) == (0o750 if AS_ROOT else 0o700)
    assert (sockets.stat().st_uid, sockets.stat().st_gid) == (owner().uid, service_account().gid)


@needs_root
def test_as_root_it_runs_under_an_account_of_its_own(shared: EmbeddedPostgres) -> None:
    server = Path(f"/proc/{pid_of(shared)}").stat().st_uid
    assert pwd.getpwuid(server).pw_name == "odc-db"
    executable = Path(f"/proc/{pid_of(shared)}/exe").readlink()
    assert executable.is_relative_to(shared.data.parent.parent / "pg")
    assert ask(shared.dsn, "select current_user") == "odc"


@needs_root
def test_no_other_local_user_can_log_in_not_even_root(shared: EmbeddedPostgres) -> None:
    dsn = shared.dsn
    with pytest.raises(DatabaseDown):
        asyncio.run(connect(dsn))
    with pytest.raises(OdcError, match="reached"):
        as_user("nobody", lambda: asyncio.run(connect(dsn)))


def test_a_second_start_adopts_the_server_that_runs(shared: EmbeddedPostgres) -> None:
    before = pid_of(shared)
    again = EmbeddedPostgres(shared.data.parent.parent)
    assert again.start() == shared.dsn
    assert pid_of(again) == before


def test_a_home_keeps_its_version(shared: EmbeddedPostgres) -> None:
    home = shared.data.parent.parent
    assert EmbeddedPostgres(home).version == shared.version
    other = 16 + 18 - shared.version
    with pytest.raises(OdcError, match=f"PostgreSQL {shared.version} database, not {other}"):
        EmbeddedPostgres(home, other)


def test_a_version_the_wheel_lacks_is_refused(odc_home: Path) -> None:
    with pytest.raises(OdcError, match="PostgreSQL 17 is not in the PostgreSQL wheel"):
        EmbeddedPostgres(odc_home, 17)


def test_committed_data_survives_kill_9(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    admit_root(postgres)
    with Sql(postgres.dsn) as sql:
        sql.execute("create table public.kept as select generate_series(1, 1000) as n")
        os.kill(pid_of(postgres), signal.SIGKILL)
        with suppress(DatabaseDown):
            while sql.value("select true"):
                pass
    assert ask(postgres.start(), "select count(*) from public.kept") == 1000


def test_watch_restarts_a_server_that_died(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    before = pid_of(postgres)

    async def run() -> None:
        watching = asyncio.create_task(postgres.watch(SystemClock()))
        os.kill(before, signal.SIGKILL)
        while (now := postgres.postmaster()) is None or now.pid == before:
            await asyncio.sleep(0.02)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching

    asyncio.run(asyncio.wait_for(run(), 60))
    assert ask(postgres.start(), "select 1") == 1


def test_a_pid_file_naming_another_process_does_not_keep_it_from_starting(
    postgres: EmbeddedPostgres,
) -> None:
    postgres.start()
    pid_file = postgres.data / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    postgres.stop("immediate")
    # As after a crash of the machine, when the number went to some other program of the account.
    other = subprocess.Popen(["/bin/sleep", "60"], user=owner().uid if AS_ROOT else None)
    try:
        pid_file.write_text("\n".join([str(other.pid), *lines[1:], ""]))
        assert not postgres.is_running()
        assert ask(postgres.start(), "select 1") == 1
    finally:
        other.kill()
        other.wait()


def test_start_waits_for_a_server_that_is_not_ready_yet(postgres: EmbeddedPostgres) -> None:
    """Adopting a server in the middle of its crash recovery, simulated by the status `starting`."""
    postgres.start()
    pid_file = postgres.data / "postmaster.pid"
    text = pid_file.read_text()

    def say(text: str) -> None:
        """As the server does. A file that is truncated first looks, for a moment, as if it had no
        server."""
        with pid_file.open("r+") as file:
            file.write(text)

    say(text.replace("ready   ", "starting"))
    other = EmbeddedPostgres(postgres.data.parent.parent)

    async def run() -> str:
        starting = asyncio.create_task(asyncio.to_thread(other.start))
        await asyncio.sleep(0.3)
        assert not starting.done()
        say(text)
        return await starting

    assert asyncio.run(run()) == postgres.dsn


def test_stop_ends_the_server_and_can_be_repeated(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    pid = pid_of(postgres)
    postgres.stop()
    assert not postgres.is_running()
    assert gone(pid)
    postgres.stop()
    with pytest.raises(DatabaseDown, match="no PostgreSQL runs in"):
        _ = postgres.dsn


def test_an_incomplete_data_folder_is_created_again(odc_home: Path) -> None:
    postgres = EmbeddedPostgres(odc_home)
    prepare_home(odc_home, service_account())
    scratch = postgres.data.with_name(f"{postgres.data.name}.new")
    scratch.mkdir(parents=True)
    (scratch / "PG_VERSION").write_text("half")
    assert ask(postgres.start(), "select 1") == 1
    assert not scratch.exists()


def test_a_home_too_long_for_a_socket_gets_a_private_folder_for_it(odc_home: Path) -> None:
    home = odc_home / ("long-" * 16)
    server = EmbeddedPostgres(home)
    dsn = server.start()
    try:
        folder = sockets_of(server)
        assert not folder.is_relative_to(home)
        assert mode(folder) == (0o750 if AS_ROOT else 0o700)
        assert folder.stat().st_uid == owner().uid
        assert ask(dsn, "select 1") == 1
        server.stop()
        server.start()
        assert sockets_of(server) == folder
    finally:
        server.stop("immediate")
        folder.rmdir()


def test_a_home_with_other_things_in_it_is_refused(odc_home: Path) -> None:
    (odc_home / "thesis.tex").write_text("")
    with pytest.raises(OdcError, match=r"already contains other files \(thesis\.tex\)"):
        EmbeddedPostgres(odc_home).start()


def test_a_folder_that_merely_looks_like_a_home_is_refused_and_left_alone(odc_home: Path) -> None:
    """As /etc would, which holds a folder ssh too."""
    for name in ("ssh", "data", "runner"):
        (odc_home / name).mkdir()
    before = odc_home.stat()
    with pytest.raises(OdcError, match="already contains other files"):
        EmbeddedPostgres(odc_home).start()
    assert odc_home.stat() == before


def test_a_home_that_is_a_file_is_refused(odc_home: Path) -> None:
    (odc_home / "file").write_text("")
    with pytest.raises(OdcError, match="is not a folder"):
        EmbeddedPostgres(odc_home / "file").start()


@needs_root
def test_a_home_of_another_user_is_refused(odc_home: Path) -> None:
    shutil.chown(odc_home, "nobody")
    with pytest.raises(OdcError, match="belongs to nobody"):
        EmbeddedPostgres(odc_home).start()
    assert odc_home.stat().st_uid == pwd.getpwnam("nobody").pw_uid


@needs_root
def test_permissions_of_folders_above_the_home_are_never_widened(odc_home: Path) -> None:
    closed = odc_home / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(OdcError, match=r"cannot enter .*/closed \(mode 0700, owner root\)"):
        EmbeddedPostgres(closed / "home").start()
    assert mode(closed) == 0o700
    assert closed.stat().st_uid == 0


@needs_root
@needs_open_checkout
def test_a_user_runs_the_server_under_their_own_account_without_copies(odc_home: Path) -> None:
    shutil.chown(odc_home, "nobody")
    odc_home.chmod(0o755)

    async def look(dsn: str) -> object:
        connection = await connect(dsn)
        return await connection.fetchval("select current_user")

    def run() -> tuple[int, bool, object]:
        server = EmbeddedPostgres(odc_home / "mine")
        dsn = server.start()
        owner = Path(f"/proc/{pid_of(server)}").stat().st_uid
        found = owner, (odc_home / "mine" / "pg").exists(), asyncio.run(look(dsn))
        server.stop("immediate")
        return found

    assert as_user("nobody", run) == (pwd.getpwnam("nobody").pw_uid, False, "odc")
    assert mode(odc_home / "mine") == 0o700


@contextmanager
def small_disk(folder: Path, size_mib: int) -> Iterator[Path]:
    folder.mkdir(mode=0o755)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m,mode=755", "odc", folder]
    if subprocess.run(mounting, capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@needs_root
def test_a_disk_too_small_to_begin_on_is_named(odc_home: Path) -> None:
    with small_disk(odc_home / "small", 60) as home, pytest.raises(DatabaseDown, match="is full"):
        EmbeddedPostgres(home).start()


@needs_root
def test_a_disk_that_fills_up_loses_nothing_and_may_be_emptied_again(odc_home: Path) -> None:
    with small_disk(odc_home / "small", 250) as home:
        server = EmbeddedPostgres(home)
        server.start()
        admit_root(server)
        try:
            with Sql(server.dsn) as sql:
                sql.execute("create table public.kept (n integer, filler text)")
                filler = home / "filler"
                with suppress(OSError), filler.open("wb", buffering=0) as file:
                    while True:
                        file.write(bytes(1 << 20))
                kept = 0
                with suppress(DatabaseDown):
                    while True:
                        sql.execute(
                            "insert into public.kept select $1, repeat(md5(n::text), 1000) "
                            "from generate_series(1, 100) as n", kept,
                        )  # fmt: skip
                        kept += 1
                filler.unlink()
            count = "select count(distinct n) from public.kept"
            # The last commit may be on the disk although no client got its answer.
            assert ask(server.start(), count) in (kept, kept + 1)
        finally:
            server.stop("immediate")


def test_a_failed_program_is_quoted_with_its_last_output() -> None:
    error = failure("it cannot be made", "one\ntwo\nthree\nFATAL:  four\n")
    assert error.message == "it cannot be made: two / three / FATAL:  four"


def test_the_private_settings_are_in_effect(shared: EmbeddedPostgres) -> None:
    expected = {
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        "fsync": "on",
        "full_page_writes": "on",
    }
    for name, value in expected.items():
        assert ask(shared.dsn, f"show {name}") == value
