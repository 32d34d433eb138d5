"""The accounts of odcd and PostgreSQL leave links in their folders: root must not follow them."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from odcd.errors import OdcError
from odcd.home import account
from odcd.home.folder import own_folder, own_tree, read_own
from odcd.simulate import server
from tests.attack.homes import give_all
from tests.support.harness.daemon import Odc
from tests.support.harness.database import make_home
from tests.support.harness.users import as_user, needs_root

pytestmark = needs_root

SECRET = "root's own\n"


@pytest.fixture
def secret(odc: Odc) -> Path:
    path = odc.work / "secret"
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


@pytest.fixture
def secrets_folder(odc: Odc) -> Path:
    folder = odc.work / "folder"
    folder.mkdir(mode=0o700)
    return folder


def check_untouched(path: Path) -> None:
    status = path.stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (
        (0, 0o700) if path.is_dir() else (0, 0o600)
    )
    if path.is_dir():
        assert list(path.iterdir()) == []
    else:
        assert path.read_text() == SECRET


def plant(path: Path, target: Path) -> None:
    """As the account: put a link in the place of whatever is there, if the folder allows it."""
    away = path.with_name(f"{path.name}.away")
    with suppress(FileNotFoundError):
        path.rename(away)
    path.symlink_to(target)


def accounts_of(home: Path) -> list[str]:
    return [name for name in ("odc", "odc-db") if account.exists(name)]


def attack(home: Path, name: str, target: Path) -> None:
    """Both accounts try; each attempt may fail."""
    for who in accounts_of(home):
        with suppress(OSError):
            as_user(who, lambda: plant(home / name, target))


# Rounds: what keeps the daemon from starting would hide what comes after it.
FILES = (
    ("odcd.log", "odcd.log.1", "odcd.sock", "data/18/odc.conf.new", "data/18/pg_hba.conf.new",
     "data/18/pg_ident.conf.new", "data/18/startup.log", "data/18/postmaster.pid",
     "data/18/odc_roles", "runner/term", "runner/runner.log", "runner/runner.lock"),
    ("odcd.lock",),
    ("data/18/odc.conf", "data/18/PG_VERSION"),
)  # fmt: skip
FOLDERS = (
    ("runner/members", "s", "data/18.new"),
    ("runner",),
    ("pg", "data/18"),
    ("data",),
)


@pytest.mark.long
@pytest.mark.parametrize("former", [False, True], ids=["home", "former-home"])
def test_a_link_for_a_file_never_gives_a_file_of_roots_away(
    odc: Odc, secret: Path, *, former: bool
) -> None:
    attack_in_rounds(odc, FILES, secret, former=former)


@pytest.mark.long
@pytest.mark.parametrize("former", [False, True], ids=["home", "former-home"])
def test_a_link_for_a_folder_never_gives_a_folder_of_roots_away(
    odc: Odc, secrets_folder: Path, *, former: bool
) -> None:
    attack_in_rounds(odc, FOLDERS, secrets_folder, former=former)


def attack_in_rounds(
    odc: Odc, rounds: Iterable[tuple[str, ...]], target: Path, *, former: bool
) -> None:
    """former: the home belongs to the account, as earlier versions left it."""
    odc.up()
    odc.odcd("down")
    for names in rounds:
        if former:
            give_all(odc.home)
        for name in names:
            attack(odc.home, name, target)
        odc.odcd("up", "--detach", check=False)
        check_untouched(target)
        odc.odcd("down", "--force", check=False)
        check_untouched(target)
        for name in names:
            restore(odc.home, name)


def restore(home: Path, name: str) -> None:
    """As an operator who found the link would."""
    path = home / name
    away = path.with_name(f"{path.name}.away")
    if path.is_symlink():
        path.unlink()
    if away.exists() or away.is_symlink():
        if path.is_dir():
            shutil.rmtree(path)
        away.replace(path)


@pytest.mark.long
def test_the_service_account_cannot_replace_root_files_in_the_home(odc: Odc) -> None:
    odc.up()

    def try_all() -> list[str]:
        done: list[str] = []
        for name in ("odcd.lock", "runner", "data", "pg", "s"):
            with suppress(PermissionError):
                (odc.home / name).rename(odc.home / f"{name}.away")
                done.append(name)
        return done

    for who in accounts_of(odc.home):
        assert as_user(who, try_all) == []


@pytest.mark.long
def test_a_link_for_the_lock_is_refused_and_named(odc: Odc, secret: Path) -> None:
    give_all_but_data(odc.home)
    as_user("odc", lambda: plant(odc.home / "odcd.lock", secret))
    refused = odc.odcd("up", "--detach", check=False)
    assert refused.returncode == 1
    assert f"{odc.home}/odcd.lock cannot be written" in refused.stderr
    assert "Someone replaced it" in refused.stderr
    check_untouched(secret)


@pytest.mark.long
def test_a_hard_link_for_the_lock_is_refused(odc: Odc) -> None:
    """Some machines allow every user to create a hard link to another user's file."""
    mine = odc.home.parent / "shadow"
    mine.write_text(SECRET)
    mine.chmod(0o600)
    (odc.home / "odcd.lock").unlink()
    os.link(mine, odc.home / "odcd.lock")
    refused = odc.odcd("up", "--detach", check=False)
    assert (refused.returncode, "is not a file created by odcd" in refused.stderr) == (1, True)
    check_untouched(mine)


def give_all_but_data(home: Path) -> None:
    daemon = account.service_account()
    os.chown(home, daemon.uid, daemon.gid)
    home.chmod(0o755)


@pytest.mark.long
def test_a_backup_does_not_write_through_a_link(odc: Odc, secret: Path) -> None:
    """Beside its file, in a folder that all users may write to."""
    odc.up()
    shared = odc.work / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    target = shared / "queue.odc"
    as_user("nobody", lambda: Path(f"{target}.partial").symlink_to(secret))
    odc.odcd("backup", target)
    check_untouched(secret)
    assert target.stat().st_uid == 0
    assert [path.name for path in shared.iterdir() if path.name.endswith(".partial")] == [
        "queue.odc.partial"
    ]


@pytest.fixture
def left_over() -> Iterator[Path]:
    """A link that looks like the folder of a replay that died: nothing has that process number."""
    path = Path(f"/tmp/{server.PREFIX}4194999-attack")
    yield path
    path.unlink(missing_ok=True)


@pytest.mark.long
def test_simulate_removes_nothing_through_a_link(left_over: Path, odc: Odc) -> None:
    """A home named `home`, as an operator may have one, whose server runs."""
    top = make_home()
    home = top / server.HOME
    odc.odcd("up", "--home", home, "--detach")
    try:
        as_user("nobody", lambda: left_over.symlink_to(top))
        server._remove_left_over()
        assert left_over.is_symlink()
        assert "is running" not in odc.odcd("doctor", "--home", home).stdout
        assert odc.odcd("backup", "--home", home, odc.work / "whole.odc").returncode == 0
    finally:
        odc.odcd("down", "--home", home, "--force", check=False)
        shutil.rmtree(top, ignore_errors=True)


def test_changing_the_owner_of_a_tree_skips_links_and_files_of_others(tmp_path: Path) -> None:
    nobody, odc = account._of(65534), account.service_account()
    secret, tree = tmp_path / "secret", tmp_path / "tree"
    secret.write_text(SECRET)
    (tree / "inner").mkdir(parents=True)
    own, linked = tree / "inner" / "own", tree / "inner" / "linked"
    own.write_text("")
    linked.write_text("")
    (tree / "soft").symlink_to(secret)
    os.link(secret, tree / "hard")
    for path in (tree, tree / "inner", own, linked):
        os.chown(path, odc.uid, odc.gid)
    os.link(linked, tmp_path / "elsewhere")
    own_tree(tree, nobody, frozenset({odc.uid}))
    assert secret.stat().st_uid == 0
    assert [p.stat().st_uid for p in (tree, tree / "inner", own)] == [nobody.uid] * 3
    assert linked.stat().st_uid == odc.uid


def test_a_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    odc = account.service_account()
    with pytest.raises(OdcError, match="belongs to"):
        own_folder(theirs, odc.uid, odc.gid, 0o700)
    assert theirs.stat().st_uid == 65534


def test_reading_an_accounts_file_never_waits_for_a_fifo(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="not a regular file"):
        read_own(tmp_path / "fifo")
