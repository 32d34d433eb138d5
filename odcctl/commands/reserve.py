"""odcctl reserve: request a dev server for some hours, and follow its start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import HOURS_CONTEXT, Verb, new_app
from odcctl.commands import _reserve_options as params
from odcctl.exits import INTERRUPTED, Refused
from odcctl.http.client import Client
from odcctl.reservations import asking
from odcctl.reservations.guide import agree_on_nodes, refuse_nodes
from odcctl.reservations.request import Options, check, read_labels
from odcctl.reservations.start import follow_start, make, preview, report_interrupted
from odcctl.text import render
from odcctl.text.hours import MIN_HOURS, read_hours

if TYPE_CHECKING:
    from odcctl.reservations.build_context import Context
    from odcctl.reservations.remote_run import Task

EXAMPLE = (
    "odcctl reserve\nodcctl reserve -t h100 -g 2 -h 4 --name debug\n"
    "odcctl reserve -t h100 -g 1 -h 2 --send . -- python train.py --epochs 3"
)

HELP = """\
Reserve a dev server for some hours, and wait until it is active.

On a terminal, odcctl asks for the GPU type, the number of GPUs and the hours if they are missing.
Without a terminal, or with --no-interactive, --json or --output quiet, it asks nothing; the
default is 1 GPU of the default type for 8 hours. Ctrl-C does not change the reservation, and
odcctl prints how to show and how to cancel it. Exits with 0 when the reservation is active, and
with 1 if it failed. -h is hours here; for help use --help.

A command after -- runs on the first node in /workspace/run when the reservation is active. With
--send DIR, odcctl first copies that folder there and fetches new files at the end. It then cancels
the reservation, also after Ctrl-C. The exit code is that of the command, or 124 if the time limit
of --timeout was reached.
"""


class WithCommand(Verb):
    """Arguments after -- are a command with its own options; other arguments are not allowed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        cut = args.index("--") if "--" in args else len(args)
        command = args[cut + 1 :]
        if cut < len(args) and not command and not ctx.resilient_parsing:
            ctx.fail("write a command after --")
        super().parse_args(ctx, args[:cut])
        ctx.args = command
        return ctx.args

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND [ARGUMENTS]]"]


app = new_app()


@app.command(cls=WithCommand, help=HELP, epilog=EXAMPLE, context_settings=HOURS_CONTEXT)
def reserve(
    ctx: typer.Context,
    gpu_type: params.GpuType = None,
    gpus: params.Gpus = None,
    hours: params.Hours = None,
    name: params.Name = None,
    distributed: params.Distributed = False,
    disk: params.Disk = None,
    no_persist: params.NoPersist = False,
    ignore_no_persist: params.IgnoreNoPersist = False,
    recreate_env: params.RecreateEnv = False,
    jupyter: params.Jupyter = False,
    image: params.Image = None,
    dockerfile: params.Dockerfile = None,
    rebuild: params.Rebuild = False,
    preserve_entrypoint: params.PreserveEntrypoint = False,
    node_label: params.NodeLabel = None,
    github_user: params.GithubUser = None,
    account: params.Account = None,
    qos: params.Qos = None,
    partition: params.Partition = None,
    booking: params.Booking = None,
    verbose: params.Verbose = False,
    no_interactive: params.NoInteractive = False,
    test_only: params.TestOnly = False,
    no_wait: params.NoWait = False,
    send: params.Send = None,
    no_fetch: params.NoFetch = False,
    keep_alive: params.KeepAlive = False,
    timeout: params.Timeout = None,
    trace: params.Trace = False,
) -> int:  # fmt: skip
    call = Call.of(ctx, failing="nothing reserved")
    request: dict[str, Any] = {
        "gpu_type": gpu_type, "gpus": gpus, "hours": _hours(call, hours), "name": name,
        "distributed": distributed, "disk": disk, "no_persist": no_persist,
        "recreate_env": recreate_env, "jupyter": jupyter, "image": image,
        "preserve_entrypoint": preserve_entrypoint, "github_user": github_user,
        "account": account, "qos": qos, "partition": partition, "booking": booking,
    }  # fmt: skip
    options = Options(
        interactive=call.may_prompt() and not no_interactive,
        test_only=test_only, waits=not no_wait, ignore_no_persist=ignore_no_persist,
        verbose=verbose, trace=trace,
    )  # fmt: skip
    of_command = {
        "send": send, "no-fetch": no_fetch, "keep-alive": keep_alive, "timeout": timeout,
    }  # fmt: skip
    try:
        request["labels"] = read_labels(node_label or ())
        check(request, dockerfile, rebuild=rebuild)
        task = _task(call, options, ctx.args, of_command)
    except ValueError as error:
        call.wrong(str(error))
    request["ssh"] = task is not None
    try:
        return _carry_out(call, options, request, task, dockerfile, rebuild=rebuild)
    except KeyboardInterrupt:
        render.note("odcctl: nothing reserved")
        return INTERRUPTED


def _hours(call: Call, text: str | None) -> float | None:
    try:
        return None if text is None else read_hours(text, MIN_HOURS)
    except ValueError as error:
        call.wrong(f"--hours takes {error}")


def _task(
    call: Call, options: Options, command: list[str], of_command: Mapping[str, Any]
) -> Task | None:
    """The command to run in the reservation, with its options; None if there is no command. Raises
    ValueError for wrong usage."""
    if not command:
        for name, value in of_command.items():
            if value not in (None, False):
                call.wrong(f"--{name} requires a command after --")
        return None
    from odcctl.reservations.remote_run import task_of

    if call.form != "table":
        call.wrong("the command's output is passed through: it has no other output format")
    if not options.waits:
        call.wrong("--no-wait and a command cannot be used together")
    return task_of(
        command, send=of_command["send"], fetches=not of_command["no-fetch"],
        keeps=of_command["keep-alive"], timeout=of_command["timeout"],
    )  # fmt: skip


def _carry_out(
    call: Call, options: Options, request: dict[str, Any], task: Task | None,
    dockerfile: str | None, *, rebuild: bool,
) -> int:  # fmt: skip
    client = call.client()
    context = _context(client, dockerfile)
    asking.complete(client, options, request)
    if context is not None:
        from odcctl.reservations.build_context import send

        request["build"] = send(client, context, rebuild=rebuild)
    try:
        return _request(call, options, request, task)
    except Refused as refused:
        # Cheaper than a request before: availability needs a plan for each size.
        kind = asking.of_several_nodes(client, request, refused)
        if kind is None:
            raise
        if not options.interactive:
            raise refuse_nodes(kind, request["gpus"]) from None
        agree_on_nodes(kind, request)
    return _request(call, options, request, task)


def _request(call: Call, options: Options, request: Mapping[str, Any], task: Task | None) -> int:
    if options.test_only:
        return preview(call, request)
    client = call.client()
    made, interrupted = make(client, request, verbose=options.verbose)
    if made is None:
        return INTERRUPTED
    if task is not None:
        from odcctl.reservations.remote_run import see_through

        return see_through(client, made, task, verbose=options.verbose, interrupted=interrupted)
    try:
        if interrupted:
            raise KeyboardInterrupt
        return follow_start(call, options, made)
    except KeyboardInterrupt:
        report_interrupted(client, made)
        return INTERRUPTED


def _context(client: Client, dockerfile: str | None) -> Context | None:
    if dockerfile is None:
        return None
    from odcctl.reservations.build_context import check_builds, pack  # only with a Dockerfile

    # First: errors in the folder do not matter if the server builds no images.
    check_builds(client)
    return pack(dockerfile)
