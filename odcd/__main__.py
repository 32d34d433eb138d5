"""odcd: run the command that was called; turn its failure into a message and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from odcctl.cli.plain import call_app
from odcctl.cli.usage import locate, message_of
from odcd.cli.app import new_root
from odcd.errors import BadRequest, OdcError
from odcd.records.fields import shown

DONE, REFUSED, USAGE, INTERRUPTED = 0, 1, 2, 130
COMPLETE = "_ODCD_COMPLETE"
"""Set by the shell's completion script: what Click is to do."""


def main(argv: Sequence[str] | None = None) -> int:
    root, instruction = new_root(), os.environ.get(COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(root, {}, "odcd", COMPLETE, instruction)
    try:
        return call_app(root, "odcd", list(sys.argv[1:] if argv is None else argv))
    except click.UsageError as error:
        tell(BadRequest(*locate(message_of(error), error.ctx, "odcd")))
        return USAGE
    except BadRequest as error:
        tell(error)
        return USAGE
    except OdcError as error:
        tell(error)
        return REFUSED
    except BrokenPipeError:
        # The reader of our output has gone, so there is nothing left to print.
        sys.stdout = None
        return DONE
    except OSError as error:
        tell(
            OdcError(
                f"{error.filename or 'a file'}: {error.strerror or error}",
                "Check the disk's free space and the owner of the folder.",
            )
        )
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED


def tell(error: OdcError) -> None:
    print(f"odcd: {shown(error.message)}", file=sys.stderr)
    for line in (error.hint or "").split("\n"):
        if line:
            print(f"  {shown(line)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
