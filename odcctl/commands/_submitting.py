"""Shared by submit and run: arguments that only the daemon understands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from odcctl.exits import Failure
from odcctl.http.client import Client
from odcctl.http.wire import LostAnswer
from odcctl.options import (
    HELP_WIDTH,
    OF_SUBMIT,
    Arguments,
    Command,
    Option,
    indent,
    option_lines,
    wrap,
)
from odcctl.submission import submit
from odcctl.text.render import local_moments, note, put, put_json

NO_OPTIONS = """\
No daemon answers, so its options cannot be listed here. They are sbatch's, and described in
docs/reference/submit-options.md."""


class SubmitCommand(Command):
    """A verb whose words are the daemon's to parse; --json and --server may stand before them."""

    common = OF_SUBMIT  # --output is sbatch's here

    def parse(self, argv: Sequence[str]) -> Arguments:
        rest, arguments = list(argv), Arguments(self, [])
        while rest and (taken := _take_own(self, arguments, rest)):
            del rest[:taken]
        arguments.words = rest
        if arguments.flag("help"):
            self.ask_options(Client.of(arguments))
        return arguments

    def help(self) -> str:
        parts = [f"Usage: odcctl {self.usage}", f"{self.summary}."]
        parts.append("\n".join(wrap(self.notes, HELP_WIDTH)))
        parts.append("Options:\n" + option_lines(self.options) if self.options else NO_OPTIONS)
        parts.append("Options of odcctl, before those:\n" + option_lines(self.common))
        parts.append("Example:\n" + indent(self.example))
        return "\n\n".join(parts)

    def ask_options(self, client: Client, timeout_s: float = 10.0) -> None:
        """Ask the daemon for its options; help shows NO_OPTIONS if no daemon answers."""
        try:
            reply = client.request("GET", "/v1/submit-options", timeout_s=timeout_s)
        except (Failure, LostAnswer):
            return
        self.options = tuple(
            Option(o["long"], o.get("short"), o.get("value"), o.get("help") or "")
            for o in reply.json()["options"]
        )


def _take_own(command: SubmitCommand, arguments: Arguments, rest: Sequence[str]) -> int:
    """How many words the option at the front takes, when it is one of odcctl's own."""
    word, equals, value = rest[0].partition("=")
    if rest[0] in ("--json", "--help", "-h"):
        arguments.given["help" if rest[0] == "-h" else rest[0][2:]] = [""]
        return 1
    if word != "--server":
        return 0
    if not equals and len(rest) < 2:
        command.wrong("option --server requires argument")
    arguments.given["server"] = [value if equals else rest[1]]
    return 1 if equals else 2


def submit_words(arguments: Arguments) -> tuple[Client, dict[str, Any]]:
    client = Client.of(arguments)
    answer = submit(client, arguments.command.name, arguments.words)
    for warning in answer.get("warnings") or ():
        note(f"odcctl: warning: {local_moments(warning)}")
    if answer.get("json"):
        arguments.given["json"] = [""]  # Where --json stood among its options, the daemon saw.
    if "test_only" in answer:
        text = local_moments(answer["test_only"]["text"])
        if arguments.flag("json"):
            put_json(answer)
        elif answer.get("preview_preemption"):
            put(f"{text}\n")
        if not answer.get("preview_preemption"):
            note(f"odcctl: {text}")
    return client, answer


def tell_submitted(arguments: Arguments, answer: dict[str, Any]) -> None:
    if arguments.flag("json"):
        put_json(answer)
    elif answer.get("parsable"):
        put(f"{answer['id']}\n")
    elif not answer.get("quiet"):
        put(f"Submitted batch job {answer['id']}\n")
    sys.stdout.flush()
