"""odcctl: find the verb, run it, turn its failure into a message and an exit code.

Verbs are imported when they are called: `odcctl queue` pays for nothing that `odcctl attach` needs.
"""

from __future__ import annotations

import getopt
import io
import os
import sys
from collections.abc import Sequence

from odcctl import __version__, exits
from odcctl.commands import GROUPS, load
from odcctl.exits import Failure, WrongUsage
from odcctl.options import COMMON, OUTPUT, Command, option_lines
from odcctl.text.complaints import describe

EXITS = """\
Exit codes: 0 done, 1 refused, 2 wrong usage, 3 daemon not reached, 130 interrupted. `wait`, `run`
and `submit --wait` give the job's own code: 128+n for signal n, 4 when it ended without one."""


def main() -> int:
    _mend_streams()
    try:
        code = dispatch(sys.argv[1:])
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except OSError as error:
        # Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            return exits.BROKEN_PIPE
        print(f"odcctl: {error.strerror or error}", file=sys.stderr)
        return exits.REFUSED


def _mend_streams() -> None:
    """A caller may have closed our streams, or chosen an encoding that cannot write every name."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            while os.open(os.devnull, os.O_RDWR) < number:
                pass
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def dispatch(argv: Sequence[str]) -> int:
    command: Command | None = None
    reads = False
    try:
        common, verb, rest = split(argv)
        if verb == "help":
            verb, rest, common = (rest[0] if rest else None), ["--help"], ["--help"]
        if verb is None:
            return _without_verb(common)
        command = load(verb)
        if OUTPUT not in command.common and any(o.startswith("--output=") for o in common):
            command.wrong("before it, --output has no meaning; --json has, and --parsable after it")
        arguments = command.parse([*common, *rest])
        if arguments.flag("help"):
            print(command.help())
            return exits.DONE
        reads = arguments.words[:1] in (["show"], ["list"], ["list-content"], ["strays"])
        return command.run(arguments)
    except Failure as failure:
        refused = failure.exit_code == exits.REFUSED and not reads
        what = command.what if command and refused else None
        print(describe(failure, what), file=sys.stderr)
        return failure.exit_code


def split(argv: Sequence[str]) -> tuple[list[str], str | None, list[str]]:
    """The common options before the verb, the verb, and the rest."""
    longs = [o.long + ("=" if o.value else "") for o in COMMON] + ["version"]
    try:
        pairs, rest = getopt.getopt(list(argv), "hV", longs)
    except getopt.GetoptError as error:
        raise WrongUsage(str(error.msg), "See: odcctl --help") from None
    # -h before a verb is help, also of a verb whose own -h is hours.
    longer = {"-h": "--help", "-V": "--version"}
    names = [f"{name}={value}" if value else longer.get(name, name) for name, value in pairs]
    return names, (rest[0] if rest else None), rest[1:]


def overview() -> str:
    parts = [
        "Usage: odcctl [--server ADDRESS] [--json] COMMAND [ARGUMENTS]",
        "Submit jobs to odcd, look at the queue, and change what waits and runs in it.",
    ]
    for group, verbs in GROUPS.items():
        lines = [
            f"  {verb:<11} {load(verb).summary[0].lower()}{load(verb).summary[1:]}"
            for verb in verbs
        ]
        parts.append(f"{group}:\n" + "\n".join(lines))
    parts.append("Options of every command:\n" + option_lines(Command.common))
    parts.append("Help for one command: odcctl COMMAND --help")
    parts.append(EXITS)
    parts.append("Example:\n  odcctl submit --gpus 1 --wrap 'python train.py'\n  odcctl queue --me")
    return "\n\n".join(parts)


def _without_verb(options: Sequence[str]) -> int:
    if "--version" in options:
        print(f"odcctl {__version__}")
        return exits.DONE
    if "--help" in options:
        print(overview())
        return exits.DONE
    print(overview(), file=sys.stderr)
    return exits.USAGE


if __name__ == "__main__":
    sys.exit(main())
