"""Help, reference and completion come from the commands, and everyday verbs start light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from odcctl.cli.app import new_root, unknown
from odcctl.cli.commands import Actions
from odcctl.cli.verbs import ALIASES, ELSEWHERE, VERBS
from odcctl.reference import contexts, page
from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.objects import a_job, a_reservation, a_type, availability
from tests.odcctl.peer import Peer, Reply

PAGE = Path("docs/reference/odcctl.md")
HEAVY = (
    "rich", "pydantic", "httpx", "http.client", "asyncio", "argparse", "websockets", "ssl",
)  # fmt: skip


def test_the_overview_names_every_verb(odcctl: Odcctl, golden: Golden) -> None:
    done = odcctl("--help")
    assert done.code == 0
    golden("overview", done.out)
    assert all(f"  {verb} " in done.out for verb in VERBS)
    assert odcctl().err == done.out


def test_the_commands_of_gpu_dev_are_there(odcctl: Odcctl) -> None:
    """CLI-01: help is one of them, of all and of each."""
    promised = {"reserve", "list", "show", "connect", "cancel", "edit", "avail", "status", "disk",
                "config", "login", "extend"}  # fmt: skip
    assert promised <= set(VERBS)
    for verb, actions in (
        ("disk", ("list", "create", "delete", "list-content", "rename")),
        ("config", ("show", "set", "ssh-include")),
    ):
        command = new_root().load(verb)
        assert isinstance(command, Actions)
        assert set(actions) <= set(command.commands)
    assert odcctl("help").out == odcctl("--help").out
    assert odcctl("help", "reserve").out == odcctl("reserve", "--help").out
    assert odcctl("help", "node", "drain").out == odcctl("node", "drain", "--help").out
    wrong = odcctl("help", "resrve")
    assert (wrong.code, "Did you mean: odcctl reserve" in wrong.err) == (2, True)


@pytest.mark.parametrize("word", ELSEWHERE)
def test_words_of_slurm_and_kubernetes_lead_to_ours(word: str) -> None:
    verb, _, action = ELSEWHERE[word].partition(" ")
    assert unknown(word).hint == f"Did you mean: odcctl {ELSEWHERE[word]}"
    command = new_root().load(verb)
    if action:
        assert isinstance(command, Actions)
        assert action in command.commands


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    for context in contexts(verb):
        command = context.command
        text = command.get_help(context)
        assert text.startswith(f"Usage: odcctl {verb}")
        assert max(map(len, text.splitlines())) <= 100
        options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
        names = [name for option in options for name in option.opts]
        assert len(set(names)) == len(names)
        assert "--json" in names
        assert all(option.help for option in options)
        if not isinstance(command, Actions):
            assert command.epilog is not None
            assert f"Example:\n  {command.epilog.splitlines()[0]}" in text
        assert (command.help or "")[0].isupper()


def test_license_is_another_spelling(peer: Peer, odcctl: Odcctl) -> None:
    assert ALIASES == {"license": "licence"}
    peer.on("GET", "/v1/licences", {"licences": []})
    assert odcctl("license", "list").out == odcctl("licence", "list").out


def test_help_reads_the_same_everywhere(odcctl: Odcctl, golden: Golden) -> None:
    golden("help-cancel", odcctl("cancel", "--help").out)
    golden("help-node", odcctl("node", "--help").out)
    assert odcctl("cancel", "-h").out == odcctl("--help", "cancel").out


def test_help_of_submit_lists_the_daemons_options(peer: Peer, odcctl: Odcctl) -> None:
    gpus = {"long": "gpus", "short": "G", "value": "N", "help": "GPUs of the whole job"}
    peer.on("GET", "/v1/submit-options", {"options": [gpus]})
    assert "-G, --gpus N" in odcctl("submit", "--help").out
    assert "No daemon answers" in odcctl("submit", "--help", ODC_HOME="/nowhere").out


def test_the_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"run: python -m odcctl.reference {PAGE}"


def test_the_version_is_the_packages(odcctl: Odcctl) -> None:
    from odcd import __version__

    assert odcctl("--version").out == f"odcctl {__version__}\n"


@pytest.mark.parametrize(
    "argv",
    [
        ["queue"],
        ["submit", "--wrap", "true"],
        ["show", "7"],
        ["cancel", "7"],
        ["nodes"],
        ["wait", "7"],
        ["list"],
        ["reserve", "-t", "h100"],
        ["connect", "12"],
        ["extend", "12", "-h", "1"],
        ["avail"],
    ],
    ids=lambda argv: argv[0],
)
def test_everyday_verbs_import_nothing_heavy(
    home: Path, peer: Peer, environment: dict[str, str], argv: list[str]
) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": [a_job()], "next": None})
    peer.on("GET", "/v1/jobs/7", {"jobs": [a_job()], "ended": True})
    peer.on("GET", "/v1/availability", availability(a_type()))
    peer.on("GET", "/v1/reservations", {"reservations": [a_reservation()]})
    peer.on("GET", "/v1/reservations/12", a_reservation(12, "queued"), a_reservation(12, "failed"))
    peer.on("POST", "/v1/reservations", a_reservation(12, "pending"))
    peer.on("GET", "/v1/jobs/12/events", lambda _: Reply(pieces=[]))
    code = (
        f"import sys; sys.argv = ['odcctl', *{argv}]\n"
        "from odcctl.__main__ import main\nmain()\n"
        f"print('HEAVY', *[name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        env=environment, capture_output=True, text=True, timeout=120, cwd=home, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1:] == ["HEAVY"], done.stdout + done.stderr


@pytest.mark.long
def test_bash_completes_verbs_options_states_and_jobs(
    peer: Peer, odcctl: Odcctl, environment: dict[str, str], home: Path
) -> None:
    bin_folder = home / "bin"
    bin_folder.mkdir()
    (bin_folder / "odcctl").write_text(f'#!/bin/sh\nexec {sys.executable} -m odcctl "$@"\n')
    (bin_folder / "odcctl").chmod(0o755)
    peer.on("GET", "/v1/jobs", {"jobs": [a_job(71), a_job(80)], "next": None})
    peer.on("GET", "/v1/reservations", {"reservations": [a_reservation(71)]})
    gpus = {"long": "gpus", "short": "G", "value": "N", "help": "GPUs of the whole job"}
    peer.on("GET", "/v1/submit-options", {"options": [gpus]})

    def completed(*arguments: str) -> list[str]:
        script = (
            'eval "$(odcctl completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
            "_odcctl_completion odcctl; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", script, "bash", "odcctl", *arguments],
            env={**environment, "PATH": f"{bin_folder}:{environment['PATH']}"},
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return done.stdout.split()

    assert completed("re") == ["reserve", "release", "requeue", "replay"]
    assert completed("queue", "--st") == ["--state", "--start"]
    assert completed("queue", "-t", "PEND") == ["PENDING"]
    assert completed("cancel", "7") == ["71"]
    assert completed("connect", "7") == ["71"]
    assert completed("list", "-s", "a") == ["active"]
    assert completed("submit", "--gp") == ["--gpus"]
    assert completed("node", "d") == ["drain", "down", "delete"]


def test_names_are_completed_from_the_daemon(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/partitions", {"partitions": [{"name": "main"}, {"name": "old"}]})
    peer.on("GET", "/v1/nodes", {"nodes": [{"name": "gpu-01", "state": "IDLE"}]})
    peer.on("GET", "/v1/users", {"users": [{"user": "ann"}]})
    peer.on("GET", "/v1/disks", {"disks": [{"name": "home", "state": "available"}]})
    peer.on("GET", "/v1/reservations", {"reservations": [a_reservation(12, name="debug")]})

    def completed(*arguments: str) -> list[str]:
        env = {"_ODCCTL_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(("odcctl", *arguments)),
               "COMP_CWORD": str(len(arguments))}  # fmt: skip
        done = odcctl(**env)
        assert done.err == ""
        return [line.partition(",")[2] for line in done.out.split()]

    assert completed("queue", "-p", "m") == ["main"]
    assert completed("queue", "-p", "main,o") == ["main,old"]
    assert completed("node", "drain", "g") == ["gpu-01"]
    assert completed("queue", "--user", "a") == ["ann"]
    assert completed("disk", "delete", "h") == ["home"]
    assert completed("connect", "deb") == ["debug"]
    peer.on("GET", "/v1/partitions", Reply(status=500))
    assert completed("queue", "-p", "m") == []


def test_completion_is_silent_without_a_daemon(odcctl: Odcctl) -> None:
    env = {
        "_ODCCTL_COMPLETE": "bash_complete",
        "COMP_WORDS": "odcctl queue -p m",
        "COMP_CWORD": "3",
    }
    done = odcctl(**env)
    assert (done.out.strip(), done.err) == ("", "")


def test_scripts_of_older_versions_still_work(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": [a_job(71, name="train")], "next": None})
    done = odcctl("completion", "words", "--", "cancel", "7")
    assert (done.code, done.out) == (0, "71\tPENDING train\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script(odcctl: Odcctl, shell: str) -> None:
    done = odcctl("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("# In ~/.")
    assert f"_ODCCTL_COMPLETE={shell}_complete" in done.out
