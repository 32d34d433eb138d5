"""odcctl attach: the terminal of a job that was submitted with one."""

from __future__ import annotations

from odcctl.exits import DONE
from odcctl.http.client import Client
from odcctl.options import Arguments, Command
from odcctl.text.jobs import check_selector
from odcctl.text.render import note


def run(arguments: Arguments) -> int:
    from odcctl.terminal import DETACH_KEYS, Detached, attach

    job = check_selector(arguments.words[0])
    if arguments.form != "table":
        arguments.command.wrong("a terminal has no other form")
    told = f"odcctl: attached to job {job}; {DETACH_KEYS} detaches"
    try:
        return attach(Client.of(arguments), job, lambda: note(told))
    except Detached:
        note(f"\nodcctl: detached; job {job} runs on")
        return DONE


COMMAND = Command(
    name="attach",
    summary="Use the terminal of a job that runs with one",
    usage="attach ID",
    words=(1, 1),
    takes_jobs=True,
    notes=(
        "For jobs of odcctl run --pty. Ctrl-] d detaches, and the job runs on; Ctrl-] twice "
        "sends one. Exits with the job's code when the job ends."
    ),
    example="odcctl attach 7",
    run=run,
    what="not attached",
)
