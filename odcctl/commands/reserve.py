"""odcctl reserve: a dev server for some hours, from the question to the way in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odcctl.exits import INTERRUPTED, Refused
from odcctl.http.client import Client
from odcctl.options import Arguments, HoursCommand, Option
from odcctl.reservations.asking import complete, of_several_nodes
from odcctl.reservations.guide import agree_on_nodes, refuse_nodes
from odcctl.reservations.request import wanted_of
from odcctl.reservations.start import foresee, make, see_it_start, tell_interrupted
from odcctl.text import render
from odcctl.text.prompts import on_terminal

if TYPE_CHECKING:
    from odcctl.reservations.build_context import Context
    from odcctl.reservations.remote_run import Task


def run(arguments: Arguments) -> int:
    wanted = wanted_of(arguments)
    task = _task(arguments)
    wanted["ssh"] = task is not None
    client = Client.of(arguments)
    try:
        context = _context(client, arguments)
        complete(client, arguments, wanted)
        if context is not None:
            from odcctl.reservations.build_context import send

            wanted["build"] = send(client, context, anew=arguments.flag("rebuild"))
        try:
            return _carry_out(client, arguments, wanted, task)
        except Refused as refused:
            # Which is cheaper than to look first: what is free is a plan for each size.
            kind = of_several_nodes(client, wanted, refused)
            if kind is None:
                raise
            if not on_terminal(arguments):
                raise refuse_nodes(kind, wanted["gpus"]) from None
            agree_on_nodes(kind, wanted)
        return _carry_out(client, arguments, wanted, task)
    except KeyboardInterrupt:
        render.note("odcctl: nothing reserved")
        return INTERRUPTED


def _carry_out(
    client: Client, arguments: Arguments, wanted: Mapping[str, Any], task: Task | None
) -> int:
    if arguments.flag("test-only"):
        return foresee(client, arguments, wanted)
    made, interrupted = make(client, arguments, wanted)
    if made is None:
        return INTERRUPTED
    if task is not None:
        from odcctl.reservations.remote_run import see_through

        verbose = arguments.flag("verbose")
        return see_through(client, made, task, verbose=verbose, interrupted=interrupted)
    try:
        if interrupted:
            raise KeyboardInterrupt
        return see_it_start(client, arguments, made)
    except KeyboardInterrupt:
        tell_interrupted(client, made)
        return INTERRUPTED


def _context(client: Client, arguments: Arguments) -> Context | None:
    dockerfile = arguments.value("dockerfile")
    if dockerfile is None:
        return None
    from odcctl.reservations.build_context import check_builds, pack  # for these alone

    # First: errors in the folder do not matter if the server builds no images.
    check_builds(client)
    return pack(dockerfile)


def _task(arguments: Arguments) -> Task | None:
    """The command to run in it. Its modules are loaded only if there is one."""
    if arguments.words:
        from odcctl.reservations.remote_run import task_of

        return task_of(arguments)
    for option in ("send", "no-fetch", "keep-alive", "timeout"):
        if arguments.flag(option):
            arguments.command.wrong(f"--{option} is of a command: give that, after --")
    return None


class ReserveCommand(HoursCommand):
    """The words after -- are a command with its own options."""

    def parse(self, argv: Sequence[str]) -> Arguments:
        cut = argv.index("--") if "--" in argv else len(argv)
        arguments = super().parse(argv[:cut])
        arguments.words = list(argv[cut + 1 :])
        if cut < len(argv) and not arguments.words:
            self.wrong("after -- stands the command")
        return arguments


COMMAND = ReserveCommand(
    name="reserve",
    summary="Reserve a dev server for some hours, and wait until it is active",
    usage="reserve [-t TYPE] [-g N] [-h HOURS] [OPTIONS] [-- COMMAND [ARGUMENTS]]",
    notes=(
        "On a terminal what is missing of type, GPUs and hours is asked; without one, or with "
        "--no-interactive, --json or --output quiet, nothing is: 1 GPU of the default type for 8 "
        "hours. Ctrl-C leaves the reservation as it is, and says how to look at it and how to "
        "cancel it. Exits 0 when it is active, 1 when it failed. -h is hours here: help is --help. "
        "With a command behind -- it runs on the "
        "first node when that is active, in /workspace/run, where what --send names is put first "
        "and fetched from at the end; the reservation is cancelled then, and after Ctrl-C, too. "
        "The exit code is the command's; 124 when the time of --timeout was over."
    ),
    options=(
        Option("gpu-type", "t", "TYPE", "the GPU type: h100, l4, cpu-x86 as odcctl avail has them"),
        Option("gpus", "g", "N", "GPUs in all: up to a node's, or whole nodes; 0 of a CPU type"),
        Option("hours", "h", "HOURS", "how long: 0.0833 (5 minutes) to 24, as 0.5"),
        Option("name", "n", "NAME", "a name; one is made up when left out"),
        Option("distributed", "d", None, "more than one node is what I want"),
        Option("disk", None, "NAME", "the named disk that is the home folder; none: no disk"),
        Option("no-persist", None, None, "a home folder that ends with the reservation"),
        Option("ignore-no-persist", None, None, "when the disk is in use: wait, and do not ask"),
        Option("recreate-env", None, None, "recreate the shell's start files on the disk"),
        Option("jupyter", None, None, "start Jupyter Lab in it"),
        Option("dockerimage", None, "REF", "run this image"),
        Option(
            "dockerfile", None, "PATH",
            "run the image that this Dockerfile and its folder make; a .dockerignore holds",
        ),
        Option("rebuild", None, None, "build it again, also if it was built before"),
        Option("preserve-entrypoint", None, None, "keep the image's own ENTRYPOINT and CMD"),
        Option(
            "node-label", "l", "KEY=VALUE", "on nodes with this label; may be repeated"
        ),
        Option("github-user", None, "NAME", "whose SSH keys enter it, instead of mine"),
        Option("account", None, "NAME", "the account it is charged to"),
        Option("qos", None, "NAME", "the QOS it runs under"),
        Option("partition", None, "NAME", "the partition it runs in"),
        Option("booking", None, "NAME", "inside this booking of nodes only"),
        Option("verbose", "v", None, "print the request, and every step"),
        Option("no-interactive", None, None, "ask nothing"),
        Option("test-only", None, None, "say when it would start, and reserve nothing"),
        Option("no-wait", None, None, "do not wait until it is active"),
        Option("send", None, "DIR", "for a command: send this folder, at most 1 GiB, all of it"),
        Option("no-fetch", None, None, "do not fetch what is new in that folder"),
        Option("keep-alive", None, None, "do not cancel the reservation after the command"),
        Option("timeout", None, "TIME", "of waiting and the command; default 24:00:00"),
        Option("trace", None, None, "at the end, how long each phase took"),
    ),
    example="odcctl reserve\nodcctl reserve -t h100 -g 2 -h 4 --name debug\n"
    "odcctl reserve -t h100 -g 1 -h 2 --send . -- python train.py --epochs 3",
    run=run,
    what="nothing reserved",
)  # fmt: skip
