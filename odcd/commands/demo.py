"""odcd demo: a morning of real jobs on a scheduler of its own, which is gone afterwards."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from odcctl.cli.plain import new_app
from odcd.cli.params import Command
from odcd.commands._demo_jobs import SCRIPTS
from odcd.errors import OdcError

NODES = "n[1-4]=h100:8"
COMMAND_TIMEOUT_S = 60

app = new_app()


@app.command(cls=Command, epilog="odcd demo")
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="keep the home and its daemon")] = False,
) -> int:
    """Run real jobs on a scheduler of its own in a temporary home."""
    home = Path(tempfile.mkdtemp(prefix="odc-demo-", dir="/tmp"))
    # The account of the database and of the jobs must be able to enter it.
    home.chmod(0o755)
    shown = Demo(home)
    try:
        shown.morning()
    finally:
        if keep:
            home = f"ODC_HOME={shown.odc_home}"
            print(f"\nThe scheduler keeps running: {home}; stop it with `odcd down`.")
            print(f"To open its page: {home} odcctl page --open")
        else:
            shown.clean_up()
    return 0


class Demo:
    """Shows each command as a person would type it, and runs it."""

    def __init__(self, home: Path) -> None:
        self.odc_home = home / "odc"
        self._home = home
        self._work = home / "work"
        self._work.mkdir()
        self._up = False
        self._environment = {
            **os.environ,
            "ODC_HOME": str(self.odc_home),
            "ODC_CONFIG": "none",
            "COLUMNS": "110",
            "NO_COLOR": "1",
        }
        for name, text in SCRIPTS.items():
            script = self._work / name
            script.write_text(text)
            script.chmod(0o755)

    def morning(self) -> None:
        self._say("A scheduler on this machine: PostgreSQL, the daemon, four declared 8-GPU nodes")
        self._show("odcd", "up", "--node", NODES, "--node", "self", "--detach", "--allow-root-jobs")
        self._up = True
        self._show("odcctl", "nodes")

        self._say("Submit jobs")
        hogs = self._submit("-J", "sweep", "-a", "0-3", "-G", "h100:8", "-t", "0:20", "sweep.sh")
        gang = self._submit("-J", "gang", "-N", "2", "--gres", "gpu:h100:8", "-t", "1", "gang.sh")
        primes = self._submit("-J", "primes", "-a", "1-6%3", "-w", _self(), "-t", "1", "primes.sh")
        data = self._submit("-J", "prepare", "-G", "h100:1", "-t", "1", "prepare.sh")
        train = self._submit(
            "-J", "train", "-G", "h100:2", "-t", "1", "-d", f"afterok:{data}", "train.sh"
        )
        report = self._submit("-J", "report", "-t", "1", "-d", f"afterok:{train}", "report.sh")
        failing = self._submit("-J", "typo", "-t", "1", "typo.sh")
        endless = self._submit("-J", "endless", "-t", "0:03", "endless.sh")

        self._say("Every queued job has a reason and an expected start")
        self._show("odcctl", "queue")
        self._show("odcctl", "why", gang)
        self._say("An impossible request is rejected at once")
        self._show("odcctl", "submit", "-G", "h100:16", "-N", "1", "train.sh", expect=1)

        self._say("Wait without polling; the exit code is the job's")
        self._show("odcctl", "wait", hogs, primes, data, train, report)
        self._show("odcctl", "wait", gang)
        self._show("odcctl", "wait", failing, expect=3)
        self._show("odcctl", "wait", endless, expect=143)

        self._say("The output of the jobs")
        self._show("odcctl", "logs", gang, "--rank", "all")
        self._show("odcctl", "logs", f"{primes}_2")
        self._show("odcctl", "logs", report)
        self._show("odcctl", "logs", failing, "--stderr")

        self._say("A dev server: a terminal with GPUs for some hours, in the same queue")
        self._show("odcctl", "reserve", "-t", "h100", "-g", "2", "-h", "1", "--name", "debug")
        self._show("odcctl", "extend", "debug", "-h", "0.5")
        self._show("odcctl", "list")
        self._show("odcctl", "avail")
        self._show("odcctl", "cancel", "--name", "debug")

        self._say("The results")
        self._show("odcctl", "history")
        self._check()

    def _submit(self, *args: str) -> str:
        """Submit and show it; the job's id."""
        printed = self._show("odcctl", "submit", *args)
        return printed.split()[-1]

    def _check(self) -> None:
        """A demo that only looks right is worth nothing."""
        printed = self._call(["odcctl", "queue", "--output", "quiet"]).stdout
        if printed.strip():
            raise OdcError(f"the demo left jobs in the queue: {printed.split()}")

    def _show(self, *command: str, expect: int = 0) -> str:
        print(f"\n$ {shlex.join(command)}", flush=True)
        done = self._call(list(command))
        print(done.stdout, end="", flush=True)
        print(done.stderr, end="", file=sys.stdout, flush=True)
        if done.returncode != expect:
            raise OdcError(
                f"`{shlex.join(command)}` exited with {done.returncode}, not {expect}",
                "To inspect the home afterwards, run `odcd demo --keep`.",
            )
        if expect:
            print(f"(exit code {done.returncode})")
        return done.stdout

    def _call(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [sys.executable, "-m", *command],
                cwd=self._work,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=COMMAND_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise OdcError(
                f"`{shlex.join(command)}` did not end in {COMMAND_TIMEOUT_S} s",
                "To inspect the home afterwards, run `odcd demo --keep`.",
            ) from None

    def _say(self, text: str) -> None:
        print(f"\n== {text}", flush=True)

    def clean_up(self) -> None:
        """Leave the machine as it was."""
        if self._up:
            self._say("Stop the scheduler")
            self._show("odcd", "down", "--force")
        elif self.odc_home.exists():
            # The daemon of an `odcd up` that was too late.
            with suppress(OdcError):
                self._call(["odcd", "down", "--force"])
        shutil.rmtree(self._home, ignore_errors=True)


def _self() -> str:
    return os.uname().nodename.split(".")[0]
