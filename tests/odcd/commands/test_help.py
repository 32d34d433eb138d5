"""odcd's command line: help, usage errors, completion, and what a start imports."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import click
import pytest

from odcctl.cli.completion_scripts import variable_of
from odcctl.cli.markdown import contexts_of
from odcd import __version__
from odcd.__main__ import COMPLETE, main
from odcd.cli.app import COMMANDS, GROUPS, new_root

GOLDEN = Path(__file__).parent / "golden"
FOLDER = Path(__file__).parents[3] / "odcd" / "commands"


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def golden(name: str, text: str) -> None:
    """Compare a text with golden/NAME.txt; ODC_UPDATE_GOLDEN=1 rewrites it."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("ODC_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text()


def test_help_reads_the_same_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    for name, argv in (
        ("overview", ["--help"]),
        ("help-up", ["up", "--help"]),
        ("help-history", ["history", "--help"]),
        ("help-simulate", ["simulate", "-h"]),
    ):
        assert main(argv) == 0
        golden(name, capsys.readouterr().out)


def test_the_overview_names_every_command_and_is_shown_without_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    modules = {path.stem for path in FOLDER.glob("[!_]*.py")}
    assert modules == set(COMMANDS) == {name for names in GROUPS.values() for name in names}
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    assert all(f"  {name} " in overview for name in COMMANDS)
    assert main([]) == 2
    assert capsys.readouterr() == ("", overview)
    assert main(["help"]) == 0
    assert capsys.readouterr().out == overview


@pytest.mark.parametrize("name", COMMANDS)
def test_every_commands_help_starts_with_a_verb_and_has_an_example(name: str) -> None:
    for context in contexts_of(new_root(), "odcd", name):
        command = context.command
        text = command.get_help(context)
        assert text.startswith(f"Usage: odcd {name}")
        assert max(map(len, text.splitlines())) <= 100
        assert (command.help or "")[0].isupper()
        options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
        assert all(option.help for option in options)
        if not isinstance(command, click.Group):
            assert f"Example:\n  {command.epilog}" in text
            assert context.command_path in (command.epilog or "")


def test_help_of_a_command_is_found_in_every_spelling(capsys: pytest.CaptureFixture[str]) -> None:
    printed: set[str] = set()
    for argv in (["up", "-h"], ["up", "--help"], ["help", "up"], ["--help", "up"]):
        assert main(argv) == 0
        printed.add(capsys.readouterr().out)
    assert len(printed) == 1


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--version", "-V"):
        assert main([option]) == 0
        assert capsys.readouterr().out == f"odcd {__version__}\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fly", 'odcd: no command "fly"'),
        ("serv", "  Did you mean: odcd serve"),
        ("--fast", 'odcd: no option "--fast"'),
        ("up --fast", 'odcd: up: no option "--fast"'),
        ("up --detatch", 'no option "--detatch"; did you mean --detach?'),
        ("up --deta", 'no option "--deta"'),
        ("up word", 'odcd: up: unexpected argument "word"'),
        ("up --pg 17", 'odcd: up: --pg must be 16 or 18, not "17"'),
        ("up --log-format xml", '--log-format must be text or json, not "xml"'),
        ("up --home", "odcd: up: option --home requires an argument"),
        ("up --home --detach", "odcd: up: option --home requires an argument"),
        ("serve --executor slurm", '--executor must be local or kubernetes, not "slurm"'),
        ("backup", "odcd: backup: FILE is missing"),
        ("backup a b", 'unexpected argument "b"'),
        ("migrate --home /a --dsn b", "odcd: --home and --dsn exclude each other"),
        ("token", "Usage: odcd token"),
        ("token create", "odcd: token create: USER is missing"),
        ("token ann --hours soon", 'takes a number of hours above 0 and up to 8760, as 8, 90m'),
        ("token ann --hours 0", 'not "0"'),
        ("token ann --hours nan", 'not "nan"'),
        ("token ann --hours 366-0", 'not "366-0"'),
        ("token ann --uid x", 'odcd: token create: --uid takes a whole number, not "x"'),
        ("history", "Usage: odcd history"),
        ("history keep", 'odcd: history: "keep" is none of: export, list, restore'),
        ("history export", "odcd: history export: TARGET is missing"),
        ("history restore /a b --keep-days soon", 'from 1 to 3650, not "soon"'),
        ("history restore /a b --keep-days 3651", 'from 1 to 3650, not "3651"'),
        ("simulate x --jobs 1.5", '--jobs takes a whole number of at least 1, not "1.5"'),
        ("simulate x --backfill none", "--backfill must be order, fifo, sjbf or safbf"),
        ("completion csh", 'must be bash, zsh or fish, not "csh"'),
        ("config", "Usage: odcd config"),
        ("config show", 'odcd: config: "show" is none of: check, logrotate'),
        ("purge", "odcd: purge: --older-than is missing"),
        ("help fly", 'no command "fly"'),
    ],
)  # fmt: skip
def test_wrong_usage_exits_2_with_what_is_wrong(
    capsys: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    assert main(line.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_a_usage_error_shows_the_usage_and_where_the_help_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["backup"]) == 2
    assert capsys.readouterr().err == (
        "odcd: backup: FILE is missing\n"
        "  Usage: odcd backup [OPTIONS] FILE\n"
        "  See: odcd backup --help\n"
    )


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "argv",
    [
        ["--version"],
        ["serve", "--help"],
        ["serve", "--dsn", "postgresql://nobody@/x?host=/nowhere"],
        ["up", "--home", "/proc/x"],
    ],
    ids=["version", "help", "serve", "up"],
)
def test_a_start_imports_no_other_command_and_not_the_simulator(argv: list[str]) -> None:
    found = run_python(
        "import sys\nfrom odcd.__main__ import main\n"
        f"main({argv})\n"
        "print([name for name in sys.modules if name.startswith(('odcd.commands.', 'odcd.simul',"
        " 'rich', 'argparse'))])"
    )
    own = [f"odcd.commands.{argv[0]}"] if argv[0] != "--version" else []
    assert set(eval(found)) <= {*own, "odcd.commands._starting"}, found


def test_version_and_help_import_no_daemon() -> None:
    for argv in (["--version"], ["--help"], ["serve", "--help"], ["up", "--help"]):
        found = run_python(
            f"import sys\nfrom odcd.__main__ import main\nmain({argv})\n"
            "print([name for name in ('asyncio', 'asyncpg', 'odcd.settings', 'starlette', 'rich')"
            " if name in sys.modules])"
        )
        assert found == "[]", (argv, found)


def completed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
              *words: str) -> list[str]:  # fmt: skip
    monkeypatch.setenv(COMPLETE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(("odcd", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    main([])
    return capsys.readouterr().out.split()


def test_commands_options_values_accounts_and_files_are_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def of(*words: str) -> list[str]:
        return completed(monkeypatch, capsys, *words)

    assert of("s") == ["plain,serve", "plain,simulate"]
    assert of("up", "--de") == ["plain,--detach"]
    assert of("serve", "--executor", "k") == ["plain,kubernetes"]
    assert of("up", "--home", "/va") == ["dir,/va"]
    assert of("backup", "q") == ["file,q"]
    assert of("history", "re") == ["plain,restore"]
    assert of("simulate", "ph") == ["plain,philly-sample", "file,ph"]
    user = pwd.getpwuid(os.getuid()).pw_name
    assert f"plain,{user}" in of("token", user)
    (tmp_path / "jobs-1-9-20260101T000000000000Z").mkdir()
    assert of("history", "restore", str(tmp_path), "j") == ["plain,jobs-1-9-20260101T000000000000Z"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert variable_of("odcd") == COMPLETE
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert script.startswith("# In ~/.")
    assert f"{COMPLETE}={shell}_complete" in script
