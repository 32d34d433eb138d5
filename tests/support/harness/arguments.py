"""What `odcd up` and `odcd serve` read from their command line."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from odcd.__main__ import DONE, main
from odcd.commands import serve, up
from odcd.settings import Arguments


def read_arguments(argv: Sequence[str]) -> Arguments:
    """The arguments that the command would start a daemon with."""
    read: list[Arguments] = []

    def run(args: Arguments) -> int:
        read.append(args)
        return DONE

    with patch.object(up, "run", run), patch.object(serve, "run", run):
        assert main(argv) == DONE
    return read[0]
