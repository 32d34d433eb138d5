"""The daemon's command line: `odcd COMMAND …`. Each command is a module of odcd.commands."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence

from odcd import __version__, commands
from odcd.errors import BadRequest, OdcError, shown

DONE, REFUSED, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    if "dsn" in args and args.dsn is None and not args.home:
        args.dsn = os.environ.get("ODC_DSN") or None
    try:
        return args.run(args)
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


def parser() -> argparse.ArgumentParser:
    """Each module of odcd.commands defines add(subparsers), which sets the default `run`
    function."""
    root = argparse.ArgumentParser(
        prog="odcd",
        description="The daemon of odc, a GPU scheduler. People use odcctl.",
        epilog="Example: odcd up --node n1=h100:8 --detach",
    )
    root.add_argument("--version", action="version", version=f"odcd {__version__}")
    subparsers = root.add_subparsers(metavar="COMMAND", required=True)
    for module in pkgutil.iter_modules(commands.__path__):
        if module.name.startswith("_"):
            continue
        importlib.import_module(f"odcd.commands.{module.name}").add(subparsers)
    return root


def tell(error: OdcError) -> None:
    print(f"odcd: {shown(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"  {shown(error.hint)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
