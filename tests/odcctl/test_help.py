"""Help, reference and completion come from the commands, and everyday verbs start light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from odcctl.__main__ import overview
from odcctl.commands import ELSEWHERE, VERBS, load
from odcctl.exits import WrongUsage
from odcctl.reference import page
from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.objects import a_job, a_reservation, a_type, availability
from tests.odcctl.peer import Peer, Reply

PAGE = Path("docs/reference/odcctl.md")
HEAVY = (
    "typer", "rich", "httpx", "http.client", "asyncio", "dataclasses", "argparse", "websockets",
    "ssl", "pathlib",
)  # fmt: skip


def test_the_overview_names_every_verb(odcctl: Odcctl, golden: Golden) -> None:
    done = odcctl("--help")
    assert done.code == 0
    golden("overview", done.out)
    assert odcctl().err == done.out


def test_the_commands_of_gpu_dev_are_there(odcctl: Odcctl) -> None:
    """CLI-01: help is one of them, of all and of each."""
    promised = {"reserve", "list", "show", "connect", "cancel", "edit", "avail", "status", "disk",
                "config", "login", "extend"}  # fmt: skip
    assert promised <= set(VERBS)
    for verb, words in (
        ("disk", ("list", "create", "delete", "list-content", "rename")),
        ("config", ("show", "set", "ssh-include")),
    ):
        assert all(word in load(verb).usage for word in words)
    assert odcctl("help").out == odcctl("--help").out
    assert odcctl("help", "reserve").out == odcctl("reserve", "--help").out
    wrong = odcctl("help", "resrve")
    assert (wrong.code, "Did you mean: odcctl reserve" in wrong.err) == (2, True)


@pytest.mark.parametrize("word", ELSEWHERE)
def test_words_of_slurm_and_kubernetes_lead_to_ours(word: str) -> None:
    with pytest.raises(WrongUsage) as refused:
        load(word)
    verb, _, action = ELSEWHERE[word].partition(" ")
    assert refused.value.hint == f"Did you mean: odcctl {ELSEWHERE[word]}"
    assert action in load(verb).usage


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    command = load(verb)
    text = command.help()
    assert command.name == verb
    assert text.startswith(f"Usage: odcctl {verb}")
    assert f"Example:\n  {command.example.splitlines()[0]}" in text
    assert max(map(len, text.splitlines())) <= 100
    assert max(map(len, overview().splitlines())) <= 100
    assert command.summary[0].isupper()
    assert not command.summary.endswith(".")
    longs = [option.long for option in command.all_options]
    shorts = [option.short for option in command.all_options if option.short]
    assert len(set(longs)) == len(longs)
    assert len(set(shorts)) == len(shorts)
    assert "json" in longs


def test_help_reads_the_same_everywhere(odcctl: Odcctl, golden: Golden) -> None:
    golden("help-cancel", odcctl("cancel", "--help").out)
    assert odcctl("cancel", "-h").out == odcctl("--help", "cancel").out


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


def test_bash_completes_verbs_options_states_and_jobs(
    peer: Peer, odcctl: Odcctl, environment: dict[str, str], home: Path
) -> None:
    bin_folder = home / "bin"
    bin_folder.mkdir()
    (bin_folder / "odcctl").write_text(f'#!/bin/sh\nexec {sys.executable} -m odcctl "$@"\n')
    (bin_folder / "odcctl").chmod(0o755)
    peer.on("GET", "/v1/jobs", {"jobs": [a_job(71), a_job(80)], "next": None})
    gpus = {"long": "gpus", "short": "G", "value": "N", "help": "GPUs of the whole job"}
    peer.on("GET", "/v1/submit-options", {"options": [gpus]})

    def completed(*words: str) -> list[str]:
        script = (
            'eval "$(odcctl completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _odcctl; '
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", script, "bash", "odcctl", *words],
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
    assert completed("node", "d") == ["drain", "down"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script(odcctl: Odcctl, shell: str) -> None:
    done = odcctl("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert "odcctl completion words --" in done.out
