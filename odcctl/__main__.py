"""odcctl: run the command that was called; turn its failure into a message and an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from odcctl import exits
from odcctl.cli.app import new_root
from odcctl.cli.call import Call, explain
from odcctl.cli.plain import call_app
from odcctl.exits import Failure

COMPLETE = "_ODCCTL_COMPLETE"
"""Set by the shell's completion script: the instruction for Click."""


def main() -> int:
    _repair_streams()
    try:
        code = dispatch(sys.argv[1:])
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except OSError as error:
        # Otherwise Python reports the same error again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            return exits.BROKEN_PIPE
        print(f"odcctl: {error.strerror or error}", file=sys.stderr)
        return exits.REFUSED


def _repair_streams() -> None:
    """Replace closed streams; print characters that the encoding lacks as "?"."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            while os.open(os.devnull, os.O_RDWR) < number:
                pass
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def dispatch(argv: Sequence[str]) -> int:
    call, root = Call(), new_root()
    instruction = os.environ.get(COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(root, {"obj": call}, "odcctl", COMPLETE, instruction)
    try:
        return call_app(root, "odcctl", list(argv), call)
    except click.UsageError as error:
        failure: Failure = explain(error)
    except Failure as error:
        failure = error
    # A usage error may have been raised before --json was parsed.
    call.json = call.form == "json" or "--json" in argv
    call.complain(failure, call.failing if failure.exit_code == exits.REFUSED else None)
    return failure.exit_code


if __name__ == "__main__":
    sys.exit(main())
