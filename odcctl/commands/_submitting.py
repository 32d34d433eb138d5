"""Shared by submit and run: commands whose options only the daemon parses."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from odcctl.cli.call import Call
from odcctl.cli.commands import PassThrough
from odcctl.exits import Failure
from odcctl.http.client import Client
from odcctl.http.wire import LostAnswer
from odcctl.submission import submit
from odcctl.text.render import local_moments, note, put, put_json

NO_OPTIONS = """\
No daemon answers, so its options cannot be listed here. They are those of sbatch; see
docs/reference/submit-options.md."""
COMPLETE_TIMEOUT_S = 1.0


class SubmitVerb(PassThrough):
    """A command whose options the daemon lists, in help and for completion."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        arguments = "COMMAND [ARGUMENTS]" if self.name == "run" else "SCRIPT [ARGUMENTS]"
        return ["[OPTIONS]", arguments]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = _daemon_options(ctx.ensure_object(Call).client(), 10.0)
        if options:
            with formatter.section("Options"):
                formatter.write_dl([(_label(one), one.get("help") or "") for one in options])
        else:
            formatter.write(f"\n{NO_OPTIONS}\n")
        records = [param.get_help_record(ctx) for param in self.get_params(ctx)]
        with formatter.section("Options of odcctl, which come first"):
            formatter.write_dl([record for record in records if record])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if not incomplete.startswith("-"):
            return [CompletionItem(incomplete, type="file")]
        options = _daemon_options(ctx.ensure_object(Call).client(), COMPLETE_TIMEOUT_S)
        found = [(f"--{one['long']}", one.get("help")) for one in options]
        return [
            *(CompletionItem(name, help=text) for name, text in found
              if name.startswith(incomplete)),
            *super().shell_complete(ctx, incomplete),
        ]  # fmt: skip


def _daemon_options(client: Client, timeout_s: float) -> list[dict[str, Any]]:
    """sbatch's options as the daemon lists them; [] if no daemon answers."""
    try:
        return client.request("GET", "/v1/submit-options", timeout_s=timeout_s).json()["options"]
    except (Failure, LostAnswer):
        return []


def _label(option: dict[str, Any]) -> str:
    short = f"-{option['short']}, " if option.get("short") else ""
    return f"{short}--{option['long']}" + (f" {option['value']}" if option.get("value") else "")


def submit_argv(
    call: Call, command: str, argv: list[str], sync: Mapping[str, object] | None = None
) -> tuple[Client, dict[str, Any]]:
    client = call.client()
    answer = submit(client, command, argv, sync)
    for warning in answer.get("warnings") or ():
        note(f"odcctl: warning: {local_moments(warning)}")
    if client.addresses[0].path is not None:
        _warn_of_missing(answer.get("folders") or ())
    if answer.get("json"):
        call.json = True  # The daemon found --json among its options.
    if "test_only" in answer:
        text = local_moments(answer["test_only"]["text"])
        if call.json:
            put_json(answer)
        elif answer.get("preview_preemption"):
            put(f"{text}\n")
        if not answer.get("preview_preemption"):
            note(f"odcctl: {text}")
    return client, answer


def _warn_of_missing(folders: Iterable[str]) -> None:
    for folder in folders:
        try:
            os.stat(folder)
        except (FileNotFoundError, NotADirectoryError):
            note(
                f"odcctl: warning: folder {folder} does not exist; the job fails if it does not "
                "exist when the job starts"
            )
        except OSError:
            continue


def print_submitted(call: Call, answer: dict[str, Any]) -> None:
    if call.json:
        put_json(answer)
    elif answer.get("parsable"):
        put(f"{answer['id']}\n")
    elif not answer.get("quiet"):
        put(f"Submitted batch job {answer['id']}\n")
    sys.stdout.flush()
