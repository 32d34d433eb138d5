"""The settings file: where it is searched, what it may contain, and `odcd config check`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from odcd.__main__ import main
from odcd.configuration import file, places
from odcd.configuration.declared import by_key, declared
from odcd.configuration.effective import configured
from odcd.configuration.file import find_file
from odcd.configuration.logrotate import logrotate_file
from odcd.configuration.report import notes, without_password
from odcd.errors import BadRequest
from odcd.home.account import ACCOUNT, exists
from odcd.settings import ROOT_HOME, Settings
from tests.support.harness.arguments import read_arguments


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "odcd.toml"
    path.touch(mode=0o640)
    return path


def read(path: Path, *argv: str, **environment: str) -> Settings:
    args = read_arguments(["up", "--config", str(path), *argv])
    return configured(args.config, args.home, environment).read(args)


def test_an_option_goes_before_the_environment_the_environment_before_the_file(toml: Path) -> None:
    toml.write_text('listen = "127.0.0.1:1"\nlease_s = 20\nsweep_s = 7.5\n')
    settings = read(toml, ODC_LEASE_S="30")
    assert settings.listen == ("127.0.0.1", 1)
    assert (settings.lease, settings.sweep) == (timedelta(seconds=30), timedelta(seconds=7.5))
    assert settings.grace == timedelta(seconds=30)
    assert read(toml, ODC_LISTEN="127.0.0.1:2").listen == ("127.0.0.1", 2)
    last = read(toml, "--listen", "127.0.0.1:3", ODC_LISTEN="127.0.0.1:2").listen
    assert last == ("127.0.0.1", 3)


def test_every_type_of_value_is_read(toml: Path) -> None:
    toml.write_text(
        'nodes = ["n[1,2]=h100:8", "self"]\noperators = ["ann", "bob"]\nallow_root_jobs = true\n'
        'keep_jobs_days = 30\nidle_gpu_percent = 2.5\nlog_format = "json"\npg = 16\n'
        'job_limits = ["nofile=4096", "core=unlimited"]\nhosts = "a.example, b.example"\n'
    )
    settings = read(toml)
    assert [node.name for node in settings.nodes] == ["n1", "n2"]
    assert settings.self_node
    assert settings.operators == {"ann", "bob"}
    assert settings.jobs.allow_root
    assert settings.jobs.limits == {"nofile": (4096, 4096), "core": (None, None)}
    assert settings.history.keep_jobs == timedelta(days=30)
    assert settings.gpu_use.idle_percent == 2.5
    assert (settings.log_format, settings.pg_version) == ("json", 16)
    assert settings.front.hosts == {"a.example", "b.example"}
    assert settings.config == toml
    toml.write_text('executor = "kubernetes"\ndsn = "x"\nquarantine = false\ncontext = "prod"\n')
    args = read_arguments(["serve", "--dsn", "y", "--config", str(toml)])
    served = configured(args.config, args.home, {}).read(args)
    assert (served.executor, served.dsn) == ("kubernetes", "y")
    assert (served.kubernetes.quarantine, served.kubernetes.context) == (False, "prod")
    with pytest.raises(BadRequest, match="`odcd up` runs jobs on this machine"):
        read(toml)


def test_every_mistake_is_named_with_the_nearest_setting(toml: Path) -> None:
    toml.write_text(
        'lese_s = 3\nODC_GRACE_S = 5\nsweep_s = "7"\nallow_root_jobs = 1\noperators = [1]\n'
        'disk_gib = true\nhome = "/x"\nmin_uid = 1.5\nzzzz = 1\n[builds]\nimage = "x"\n'
    )
    with pytest.raises(BadRequest) as caught:
        read(toml)
    assert caught.value.message.splitlines() == [
        f"the settings file {toml} is not valid:",
        '  there is no setting "lese_s"; did you mean lease_s?',
        '  there is no setting "ODC_GRACE_S"; did you mean grace_s?',
        '  sweep_s must be a number, not the text "7"',
        "  allow_root_jobs must be true or false, not the number 1",
        '  operators must be a text, or a list of texts, as ["a", "b"], not a list',
        "  disk_gib must be a whole number, not true",
        "  home cannot be set in the file: it says where the file is",
        "  min_uid must be a whole number, not the number 1.5",
        '  there is no setting "zzzz"',
        '  there is no section "builds"; the file has no sections, write SETTING = VALUE on a line '
        "of its own",
    ]


def test_an_invalid_value_names_the_file_and_the_setting(toml: Path) -> None:
    toml.write_text("lease_s = -1\n")
    with pytest.raises(BadRequest) as caught:
        read(toml)
    assert caught.value.message == f'{toml}: lease_s="-1" is not a number of seconds'
    with pytest.raises(BadRequest) as caught:
        read(toml, ODC_LEASE_S="-2")
    assert caught.value.message == 'ODC_LEASE_S="-2" is not a number of seconds'


class InFile(Exception):
    """A value of the file is invalid, and the error says so."""


def read_naming(path: Path) -> None:
    try:
        read(path)
    except BadRequest as error:
        raise (InFile if str(path) in error.message else AssertionError)(error.message) from None


@pytest.mark.long
def test_every_invalid_value_names_its_place(toml: Path) -> None:
    """Before: errors about listen, history_target and long lists of nodes named no file."""
    for key in by_key():
        for value in ('"x[1-=,:%"', "-7", '"n[1-99999]=h100:8"'):
            toml.write_text(f"{key} = {value}\n")
            with suppress(InFile):
                read_naming(toml)
    wrong = {"ODC_LISTEN": "x", "ODC_NODES": "n[1-99999]=h100:8", "ODC_HISTORY_TARGET": "x"}
    args = read_arguments(["up", "--config", "none"])
    for variable, value in wrong.items():
        with pytest.raises(BadRequest, match=variable):
            configured("none", None, {variable: value}).read(args)


def test_a_file_that_is_not_toml_or_that_others_can_write_is_refused(toml: Path) -> None:
    toml.write_text("lease_s = \n")
    with pytest.raises(BadRequest, match=r"is not TOML: .*line 1"):
        read(toml)
    toml.write_bytes(b"\xff\xfe")
    with pytest.raises(BadRequest, match="is not TOML"):
        read(toml)
    toml.write_text("lease_s = 3\n")
    toml.chmod(0o666)
    with pytest.raises(BadRequest, match="can be changed by other users"):
        read(toml)
    with pytest.raises(BadRequest, match="does not exist"):
        read(toml.parent / "none.toml")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner")
def test_roots_daemon_does_not_read_the_file_of_another_account(toml: Path) -> None:
    toml.write_text("allow_root_jobs = true\n")
    os.chown(toml, 1234, 1234)
    with pytest.raises(BadRequest, match="can be changed by other users") as caught:
        read(toml)
    assert "must belong to root" in str(caught.value.hint)


def test_the_file_is_searched_in_the_home_of_a_user_and_in_etc_for_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etc = tmp_path / "etc.toml"
    monkeypatch.setattr(file, "ROOT_FILE", etc)
    mine = tmp_path / "odcd.toml"
    mine.touch()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert find_file(None, tmp_path) == mine
    assert find_file(None, tmp_path / "other") is None
    assert find_file("none", tmp_path) is None
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert find_file(None, tmp_path) is None
    assert find_file(None, ROOT_HOME) is None
    etc.touch()
    assert find_file(None, ROOT_HOME) == etc
    assert find_file(str(mine), ROOT_HOME) == mine


def test_every_setting_with_a_variable_has_a_key_of_its_own() -> None:
    with_variable = [one for one in declared() if one.variable is not None]
    assert len(by_key()) == len(with_variable) - 2  # home and config
    flags = {"detached", "self_node", "socket", "socket_mode", "listen_first", "other_hosts"}
    assert {one.name for one in declared() if one.variable is None} == flags
    assert {key for key, one in by_key().items() if one.kind == "flag"} == {"allow_root_jobs"}
    assert by_key()["keep_jobs_days"].kind == "whole"
    assert by_key()["trusted_proxies"].kind == "list"


def test_config_check_prints_every_setting_with_its_source_and_no_password(
    toml: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toml.write_text('lease_s = 20\ngrace_s = 5\ndsn = "postgresql://odc:s3cr:e@t@db/odc"\n')
    toml.chmod(0o644)
    monkeypatch.setenv("ODC_GRACE_S", "6")
    monkeypatch.setenv("ODC_SWEEPS_S", "6")
    assert main(["config", "check", "--config", str(toml)]) == 0
    printed = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1:] for line in printed.out.splitlines()}
    assert rows["lease_s"] == ["20", str(toml)]
    assert rows["grace_s"] == ["6", "ODC_GRACE_S"]
    assert rows["sweep_s"] == ["30", "s", "default"]
    assert rows["dsn"] == ["postgresql://odc:***@db/odc", str(toml)]
    assert "s3cr" not in printed.out + printed.err
    assert printed.err.splitlines() == [
        "note: grace_s of the file is not used: ODC_GRACE_S is set",
        f"note: dsn has a password, and other users can read the file: chmod 640 {toml}",
        "note: ODC_SWEEPS_S is not a setting; did you mean ODC_SWEEP_S?",
        f"odcd: {toml} is valid",
    ]
    assert main(["config", "check", "--config", str(toml), "--set", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {"setting": "lease_s", "value": "20", "source": str(toml)} in answer["settings"]
    assert all(row["source"] != "default" for row in answer["settings"])


def test_config_check_reads_the_home_of_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: with ODC_HOME set, it printed that home."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.delenv("ODC_CONFIG", raising=False)
    other, mine = tmp_path / "other", tmp_path / "mine"
    for folder, lease in ((other, 20), (mine, 30)):
        folder.mkdir()
        (folder / "odcd.toml").write_text(f"lease_s = {lease}\n")
    monkeypatch.setenv("ODC_HOME", str(other))
    assert main(["config", "check", "--home", str(mine)]) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert rows["home"] == [str(mine), "--home"]
    assert rows["lease_s"] == ["30", str(mine / "odcd.toml")]
    assert main(["config", "check"]) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert (rows["home"], rows["lease_s"][0]) == ([str(other), "ODC_HOME"], "20")
    assert main(["config", "check", "--config", "none"]) == 0
    assert "none" in capsys.readouterr().out


def test_config_check_refuses_an_audit_log_that_cannot_be_written(
    toml: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(places, "ACCOUNT", "odc-nowhere")
    folder = toml.parent
    (folder / "link").symlink_to("x")
    (folder / "text").touch()
    wrong = {
        "/nowhere/audit.log": "the folder /nowhere does not exist",
        str(folder): "it is a folder",
        f"{folder}/link": "it is a symbolic link, which odcd does not follow",
        f"{folder}/text/audit.log": "Not a directory",
    }
    for place, why in wrong.items():
        toml.write_text(f'audit_log = "{place}"\n')
        assert main(["config", "check", "--config", str(toml)]) == 2
        message = f'odcd: {toml}: audit_log="{place}" cannot be written: {why}'
        assert capsys.readouterr().err.splitlines()[0] == message
    toml.write_text(f'audit_log = "{folder}/audit.log"\n')
    assert main(["config", "check", "--config", str(toml)]) == 0
    assert not (folder / "audit.log").exists()


@pytest.mark.skipif(os.geteuid() != 0 or not exists(ACCOUNT), reason="needs root's daemon")
def test_config_check_asks_for_the_account_of_roots_daemon(toml: Path) -> None:
    folder = toml.parent
    folder.chmod(0o700)
    with pytest.raises(BadRequest, match=r"Permission denied|may not write"):
        places.check_audit_log(f"{folder}/audit.log")
    places.check_audit_log("-")
    places.check_audit_log(None)


def test_a_file_in_the_home_of_root_is_named_as_unread(
    toml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: it had no effect, and nothing said so."""
    home = str(toml.parent)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    found = configured(None, home, {})
    assert found.file is None
    assert list(notes(found)) == [found.warning]
    assert str(found.warning).startswith(f"{toml} is not read, ")
    assert configured("none", home, {}).warning is None
    assert configured(str(toml), home, {}).warning is None
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert configured("none", home, {}).warning is None


def test_config_check_fails_with_every_mistake(
    toml: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml.write_text("lese_s = 3\nsweeps_s = 5\n")
    assert main(["config", "check", "--config", str(toml)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "did you mean lease_s?" in printed.err
    assert "did you mean sweep_s?" in printed.err
    # It does not advise to run itself.
    assert "config check" not in printed.err


def test_config_check_goes_on_after_a_mistake_and_after_an_invalid_value(
    toml: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ODC_LOOK_S", "never")
    toml.write_text(
        'lese_s = 3\nsweep_s = "7"\ngrace_s = -1\npg = 12\nsmtp_host = "mail"\n'
        'smtp_port = 99999\nwebhooks = "perhaps"\n'
    )
    assert main(["config", "check", "--config", str(toml)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"odcd: the settings file {toml} and the environment are not valid:"
    assert lines[1:3] == [
        '  there is no setting "lese_s"; did you mean lease_s?',
        '  sweep_s must be a number, not the text "7"',
    ]
    for place, text in (
        ("the file", '  grace_s="-1" is not a number of seconds. Give 1 to 86400.'),
        ("the environment", '  ODC_LOOK_S="never" is not a number of seconds. Give 1 to 86400.'),
    ):
        assert text in lines, place
    assert sum('pg="12"' in line for line in lines) == 1
    assert any("smtp" in line for line in lines)
    # A setting of the file is never named as a variable.
    assert [line for line in lines if "ODC_" in line and "ODC_LOOK_S" not in line] == []


def test_a_setting_that_is_missing_beside_one_of_the_file_is_named_as_in_the_file(
    toml: Path,
) -> None:
    """Before: smtp_host of the file without a sender named the variable ODC_SMTP_FROM."""
    toml.write_text('smtp_host = "mail"\n')
    with pytest.raises(BadRequest) as caught:
        read(toml)
    assert "ODC_" not in f"{caught.value.message} {caught.value.hint}"
    assert "smtp_from" in f"{caught.value.message} {caught.value.hint}"
    with pytest.raises(BadRequest) as caught:
        read(toml, ODC_SMTP_FROM="")
    assert "ODC_SMTP_FROM" in str(caught.value.hint)
    toml.write_text("")
    with pytest.raises(BadRequest, match="ODC_SMTP_HOST"):
        read(toml, ODC_SMTP_HOST="mail")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("host=db password='a b\\'c' user=odc", "host=db password=*** user=odc"),
        ("postgresql://db/odc?password=x&sslmode=require",
         "postgresql://db/odc?password=***&sslmode=require"),
        ("postgresql://odc@db/odc", "postgresql://odc@db/odc"),
        ("host=db sslpassword = x", "host=db sslpassword = ***"),
    ],
)  # fmt: skip
def test_passwords_are_masked_in_every_form_of_a_dsn(text: str, shown: str) -> None:
    assert without_password(text) == shown


def test_commands_find_the_database_of_the_file(
    toml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odcd.cli.params import environment_of, locate_database

    toml.write_text('dsn = "postgresql://x/y"\naudit_log = "/var/log/odc/audit.log"\n')
    monkeypatch.setenv("ODC_CONFIG", str(toml))
    monkeypatch.delenv("ODC_DSN", raising=False)
    assert locate_database(None, None)[1] == "postgresql://x/y"
    assert locate_database(None, "postgresql://z")[1] == "postgresql://z"
    assert environment_of()["ODC_AUDIT_LOG"] == "/var/log/odc/audit.log"


def test_commands_with_a_home_read_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: --home ignored dsn in odcd.toml of that home."""
    from odcd.cli.params import locate_database

    monkeypatch.delenv("ODC_CONFIG", raising=False)
    monkeypatch.setenv("ODC_DSN", "postgresql://other")
    (tmp_path / "odcd.toml").write_text('dsn = "postgresql://x/y"\n')
    home = str(tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert locate_database(home, None) == (tmp_path, "postgresql://x/y")
    assert locate_database(home + "/none", None)[1] is None
    assert main(["token", "list", "--home", home]) == 1
    assert "has no queue" not in capsys.readouterr().err
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert locate_database(home, None)[1] is None
    assert f"{tmp_path}/odcd.toml is not read" in capsys.readouterr().err
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (tmp_path / "data").mkdir()
    assert locate_database(home, None)[1] is None, "its own PostgreSQL"


def test_the_file_for_logrotate_names_the_audit_log_of_the_settings(
    toml: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "logrotate", "--config", "none"]) == 0
    assert "\n/var/log/odc/*.log {\n" in capsys.readouterr().out
    toml.write_text('audit_log = "/data/audit.log"\n')
    assert main(["config", "logrotate", "--config", str(toml)]) == 0
    assert '\n"/data/audit.log" {\n' in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("logrotate") is None, reason="needs logrotate")
def test_logrotate_accepts_the_file(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text("{}\n")
    text = logrotate_file(str(log)).replace("    su odc adm\n", "")
    conf = tmp_path / "odc"
    conf.write_text(text)
    conf.chmod(0o644)
    rotate = ["logrotate", "--force", "--verbose", "--state", str(tmp_path / "state"), str(conf)]
    done = subprocess.run(rotate, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "error" in done.stderr) == (0, False), done.stderr
    assert (tmp_path / "audit.log.1").read_text() == "{}\n"
    assert not log.exists(), "odcd creates it"
