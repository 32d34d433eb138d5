"""A compromised daemon has the rights of the account `odc`: neither root's nor those of
PostgreSQL's superuser."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pwd
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from odcd.database.pool import connect
from odcd.errors import OdcError
from odcd.home import account, postgres_files, postgres_process
from odcd.home import folder as home_folder
from odcd.home import postgres as database
from odcd.home import root_helper as keeper
from odcd.home.account import service_account
from odcd.home.postgres import EmbeddedPostgres
from odcd.home.postgres_roles import ADMIN_ROLE
from odcd.home.processes import uid_of
from odcd.runner import launch
from odcd.runner.launch import LaunchFailed, launch_runner
from tests.attack.homes import make_former
from tests.attack.strangers import ALICE
from tests.support.harness.daemon import Odc, gone, new_odc, wait
from tests.support.harness.users import AS_ROOT, as_user, needs_root

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def odc() -> Iterator[Odc]:
    with new_odc() as found:
        found.up()
        yield found


def as_daemon(work: Callable[[], Any]) -> Any:
    return as_user("odc", work) if AS_ROOT else work()


def ask(dsn: str, *statements: str) -> object:
    async def run() -> object:
        connection = await connect(dsn)
        try:
            for statement in statements[:-1]:
                await connection.execute(statement)
            return await connection.fetchval(statements[-1])
        finally:
            await connection.close()

    return asyncio.run(run())


def dsn_of(odc: Odc) -> str:
    return EmbeddedPostgres(odc.home).dsn


# -- the daemon's role ------------------------------------------------------------------------


def test_the_daemons_role_is_no_superuser(odc: Odc) -> None:
    [role] = odc.rows(
        "select rolname, rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls"
        " as mighty from pg_roles where rolname = current_user"
    )
    assert dict(role) == {"rolname": "odc", "mighty": False}
    member = odc.rows(
        "select r.rolname from pg_auth_members as m join pg_roles as r on r.oid = m.roleid "
        "where m.member = 'odc'::regrole order by 1"
    )
    assert [row["rolname"] for row in member] == ["odc_report", "pg_read_all_stats"]


@pytest.mark.parametrize(
    "statement",
    [
        "copy (select 1) to program 'id > /tmp/attack'",
        "copy (select 1) to '/tmp/attack'",
        "create temp table t (x text); copy t from '/etc/passwd'",
        "select pg_read_file('/etc/passwd')",
        "select pg_ls_dir('.')",
        "select lo_import('/etc/passwd')",
        "alter system set archive_command = 'id'",
        "create role attack superuser",
        "alter role odc superuser",
        f"set role {ADMIN_ROLE}",
        "grant pg_execute_server_program to odc",
        "create function f() returns void language c as '/tmp/x', 'f'",
        "load '/tmp/x.so'",
        "create extension plpython3u",
        "update pg_authid set rolsuper = true where rolname = 'odc'",
    ],
)
def test_the_daemons_role_reaches_no_file_program_or_role_of_the_server(
    odc: Odc, statement: str
) -> None:
    dsn = dsn_of(odc)

    def attack() -> str:
        try:
            ask(dsn, *statement.split("; "))
        except Exception as error:
            return str(error)
        return "it worked"

    message = as_daemon(attack)
    refusals = ("permission denied", "must be", "not available", "not allowed")
    assert any(refusal in message for refusal in refusals), message


@needs_root
def test_only_postgresqls_own_account_is_superuser(odc: Odc) -> None:
    admin = dsn_of(odc).replace("//odc@", f"//{ADMIN_ROLE}@")
    for who in ("odc", "nobody"):
        with pytest.raises(OdcError, match=r"refuses the login|Permission denied"):
            as_user(who, lambda: ask(admin, "select 1"))
    assert as_user("odc-db", lambda: ask(admin, "select rolsuper from pg_roles where oid = 10"))


# -- the accounts -----------------------------------------------------------------------------


@needs_root
def test_the_daemon_can_neither_read_nor_write_nor_signal_its_database(odc: Odc) -> None:
    pid = odc.postmaster_pid
    assert pid is not None
    data = odc.home / "data" / "18"
    assert uid_of(pid) == pwd.getpwnam("odc-db").pw_uid

    def attack() -> list[str]:
        refused: list[str] = []
        attempts: list[Callable[[], object]] = [
            lambda: (data / "postgresql.conf").read_text(),
            lambda: (data / "pg_ident.conf").write_text("odc odc odc_admin"),
            lambda: list(data.iterdir()),
            lambda: os.kill(pid, signal.SIGKILL),
            lambda: next((odc.home / "pg").iterdir()).rename(odc.home / "pg" / "x"),
            lambda: (odc.home / "pg" / "new").mkdir(),
            lambda: (odc.home / "s" / "new").touch(),
        ]
        for attempt in attempts:
            try:
                attempt()
            except PermissionError:
                refused.append("refused")
            else:
                refused.append("worked")
        return refused

    assert as_user("odc", attack) == ["refused"] * 7


@needs_root
def test_a_database_that_the_daemon_cannot_start_is_started_again(odc: Odc) -> None:
    before = odc.postmaster_pid
    assert before is not None
    os.kill(before, signal.SIGKILL)
    after = wait(
        lambda: pid if (pid := odc.postmaster_pid) not in (None, before) else None,
        lambda: f"it stays away{odc.log()}",
    )
    assert after is not None
    assert uid_of(after) == pwd.getpwnam("odc-db").pw_uid
    wait(lambda: odc.odcctl("queue", check=False).returncode == 0, lambda: odc.log())


@needs_root
def test_another_user_cannot_lock_the_home(odc: Odc) -> None:
    def lock() -> None:
        with (odc.home / "odcd.lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)

    with pytest.raises(PermissionError):
        as_user("nobody", lock)


def test_the_daemon_leaves_no_core_and_its_memory_is_unreadable(odc: Odc) -> None:
    # The kernel gives these to root once a process is not to be dumped.
    assert Path(f"/proc/{odc.pid}/environ").stat().st_uid == 0


def test_an_account_that_is_missing_is_no_reason_to_take_another_services(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`postgres` belongs to a PostgreSQL that may be installed already."""
    if not AS_ROOT:
        assert service_account() == account.current()
        return
    monkeypatch.setattr(account, "exists", lambda name: name == "postgres")  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(account, "_create", lambda name: None)  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(OdcError, match="the account odc does not exist") as refused:
        service_account()
    assert "useradd" in str(refused.value.hint)


@needs_root
def test_without_an_account_for_postgresql_the_daemons_stands_in(
    odc_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "database_account", lambda daemon: daemon)  # pyright: ignore[reportUnknownLambdaType]
    postgres = EmbeddedPostgres(odc_home)
    dsn = postgres.start()
    try:
        assert postgres.owner == postgres.account
        assert as_user("odc", lambda: ask(dsn, "select not rolsuper from pg_roles "
                                          "where rolname = current_user"))  # fmt: skip
    finally:
        postgres.stop("immediate")


# -- root's helpers ---------------------------------------------------------------------------


def test_the_keeper_obeys_fixed_words_and_takes_no_arguments(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    if (pid := os.fork()) == 0:
        ours.close()
        keeper._keep(theirs, tmp_path / "runner", service_account(), None)
    theirs.close()
    remote = keeper._Remote(ours)
    for word in ("launch --dir /etc", "launch\nlook", "exec /bin/sh", "look", "", "{}"):
        assert "no such request" in remote.ask_blocking(word)["error"], word
    assert not (tmp_path / "runner").exists()
    ours.close()
    wait(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, lambda: "the keeper stays")


@needs_root
def test_root_runs_no_runner_in_a_folder_of_the_account(tmp_path: Path) -> None:
    folder = tmp_path / "runner"
    folder.mkdir(mode=0o711)
    odc = service_account()
    os.chown(folder, odc.uid, odc.gid)
    with pytest.raises(LaunchFailed, match="another user"):
        launch_runner(folder, odc.uid, odc.gid)
    folder.rmdir()
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    folder.symlink_to(target)
    os.chown(folder, odc.uid, odc.gid, follow_symlinks=False)
    with pytest.raises(LaunchFailed):
        launch_runner(folder, odc.uid, odc.gid)
    assert list(target.iterdir()) == []
    assert not launch._accepts(folder)


@needs_root
def test_every_start_stands_in_a_log_that_the_daemon_cannot_change(odc: Odc) -> None:
    job = odc.submit("--wrap", "true")
    odc.wait_for(job, "COMPLETED")
    log = odc.home / "runner" / "runner.log"
    assert f"member.starts member={job}-1-0 uid=0" in log.read_text()

    def attack() -> list[str]:
        done: list[str] = []
        for change in (log.unlink, log.read_text, lambda: log.rename(log.with_name("away")),
                       lambda: log.write_text("")):  # fmt: skip
            with suppress(PermissionError):
                change()
                done.append(str(change))
        return done

    assert as_user("odc", attack) == []


@needs_root
def test_down_signals_no_process_that_the_daemon_named_falsely(odc_home: Path) -> None:
    home = odc_home / "home"
    home_folder.prepare_home(home, service_account())
    roots = subprocess.Popen(["/bin/sleep", "600"])
    lock = os.open(home / "odcd.lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.pwrite(lock, f"{roots.pid}\n".encode(), 0)
        refused = Odc(home, odc_home).odcd("down", check=False)
        assert (refused.returncode, "is not odcd" in refused.stderr) == (1, True)
        assert roots.poll() is None
    finally:
        os.close(lock)
        roots.kill()
        roots.wait()


@needs_root
def test_stop_kills_no_process_that_postgresql_named_falsely(odc_home: Path) -> None:
    """Such as root's own program that looks at the data folder."""
    postgres = EmbeddedPostgres(odc_home)
    postgres.start()
    pid_file = postgres.data / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    postgres.stop("immediate")
    roots = subprocess.Popen([postgres.data, "600"], executable="/bin/sleep")
    try:
        pid_file.write_text("\n".join([str(roots.pid), *lines[1:], ""]))
        postgres.stop("immediate")
        assert not postgres.is_running()
        assert roots.poll() is None
    finally:
        roots.kill()
        roots.wait()


@needs_root
def test_a_process_in_a_folder_of_the_same_name_does_not_keep_the_database_from_starting(
    odc_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /proc shows it, a process with its own mounts works in the data folder."""
    monkeypatch.setattr(database, "ORPHAN_TIMEOUT_S", 0.0)
    postgres = EmbeddedPostgres(odc_home)
    postgres.start()
    postgres.stop("immediate")
    script = 'mount -t tmpfs t "$1" && mkdir -p "$2" && cd "$2" && echo && exec sleep 600'
    with subprocess.Popen(
        ["unshare", "-rm", "sh", "-c", script, "sh", odc_home.parent, postgres.data],
        user=ALICE, group=ALICE, extra_groups=[], stdout=subprocess.PIPE,
    ) as stranger:  # fmt: skip
        try:
            assert stranger.stdout
            if not stranger.stdout.readline():
                pytest.skip("this machine lets no user have mounts of their own")
            assert Path(f"/proc/{stranger.pid}/cwd").readlink() == postgres.data
            postgres.start()
            assert postgres.is_running()
        finally:
            stranger.kill()
    postgres.stop("immediate")


# -- homes of earlier versions ----------------------------------------------------------------


@pytest.fixture
def former(
    odc_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Odc, EmbeddedPostgres]]:
    """With a row that an earlier version wrote; its server runs."""
    with new_odc(odc_home / "home") as odc:
        postgres = make_former(odc.home, monkeypatch)
        as_daemon(lambda: ask(
            postgres.dsn, "create table odc.of_old as select 7 as n", "select 1"
        ))  # fmt: skip
        yield odc, postgres


OWNERS = """
    select distinct pg_get_userbyid(owner) as name
      from (select relowner from pg_class
             where relnamespace in ('odc'::regnamespace, 'odc_report'::regnamespace)
            union all select proowner from pg_proc where pronamespace = 'odc'::regnamespace
            union all select typowner from pg_type where typnamespace = 'odc'::regnamespace
            union all select nspowner from pg_namespace where nspname in ('odc', 'odc_report')
            union all select datdba from pg_database where datname = 'odc') as o (owner)
"""


def check_taken_over(odc: Odc) -> None:
    assert [row["name"] for row in odc.rows(OWNERS)] == ["odc"]
    assert odc.rows("select rolsuper from pg_roles where rolname = current_user") == [
        {"rolsuper": False}
    ]
    assert odc.rows("select n from odc.of_old") == [{"n": 7}]
    if AS_ROOT:
        owner = pwd.getpwnam("odc-db").pw_uid
        data = odc.home / "data"
        found = {path.lstat().st_uid for path in [data, *data.rglob("*")] if path.exists()}
        assert found == {owner}
        assert odc.home.stat().st_uid == 0
        assert (odc.home / "pg").stat().st_uid == 0
        assert odc.postmaster_pid is not None
        assert uid_of(odc.postmaster_pid) == owner


@pytest.mark.long
def test_a_home_of_an_earlier_version_is_taken_over_with_its_server_running(
    former: tuple[Odc, EmbeddedPostgres],
) -> None:
    odc, postgres = former
    running = postgres.postmaster()
    assert running is not None
    odc.up()
    assert gone(running.pid) or not AS_ROOT
    if not AS_ROOT:
        # A server of the user's own account is adopted; its role changes at its next start.
        odc.odcd("down")
        odc.up()
    check_taken_over(odc)
    assert odc.wait_for(odc.submit("--wrap", "true"), "COMPLETED")["exit_code"] == 0
    odc.odcd("down")
    odc.up()
    check_taken_over(odc)


class Killed(BaseException):
    """As by kill -9: no code after it runs."""


@pytest.mark.long
def test_a_takeover_that_is_killed_at_any_step_goes_on_at_the_next_start(
    former: tuple[Odc, EmbeddedPostgres], monkeypatch: pytest.MonkeyPatch
) -> None:
    odc, _ = former
    EmbeddedPostgres(odc.home).retire_former()
    EmbeddedPostgres(odc.home).stop()
    for name in ("chown", "run_sql"):
        for step in (1, 2, 3, 500):
            interrupted(odc.home, name, step, monkeypatch)
    odc.up()
    check_taken_over(odc)
    assert odc.wait_for(odc.submit("--wrap", "true"), "COMPLETED")["exit_code"] == 0


def interrupted(home: Path, name: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the server, and die right before the step-th of these calls."""
    module: Any = os if name == "chown" else postgres_files
    real = getattr(module, name)
    calls = 0

    def counted(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == step:
            raise Killed
        return real(*args, **more)

    postgres = EmbeddedPostgres(home)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, counted)
        # Never as far as a server, which the next try would find.
        patch.setattr(postgres_process, "launch", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            postgres.begin()
