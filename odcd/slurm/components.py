"""The components of a heterogeneous job: the options of each, from the words between separators.

The options of one component also apply to those behind it, if Slurm lets them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from odcd.errors import BadRequest
from odcd.records.job import MAX_COMPONENTS
from odcd.slurm.argv import MAX_COMPONENT_WORDS, CommandLine, parse_argv
from odcd.slurm.complaints import Complaints
from odcd.slurm.option import Given

SEPARATOR = ":"
MAX_OPTIONS = 2_000
MAX_CHARS = 1_000_000
MAX_NAMES = 50_000
PASSED_ON = frozenset({
    "account", "acctg-freq", "begin", "booking", "chdir", "comment", "container-image", "deadline",
    "dependency", "distribution", "error", "exclude", "export", "get-user-env", "hold",
    "ignore-pbs", "input", "job-name", "nice", "no-kill", "no-requeue", "output", "parsable",
    "priority", "profile", "propagate", "qos", "quiet", "requeue", "reservation", "signal",
    "test-only", "time", "verbose", "wait", "wait-all-nodes", "wckey",
})  # fmt: skip
"""Options of one component that apply to those behind it, too."""


def split_line(argv: Sequence[str], complaints: Complaints) -> list[CommandLine]:
    """The command line of each component; the operands follow the options of the last one. Raises
    BadRequest."""
    lines: list[CommandLine] = []
    start = 0
    while True:
        line = parse_argv(argv[start:], complaints=complaints)
        lines.append(line)
        if line.after_dashes or line.operands[:1] != (SEPARATOR,):
            return lines
        if len(argv) > MAX_COMPONENT_WORDS:
            raise BadRequest(
                f"a heterogeneous job has at most {MAX_COMPONENT_WORDS} words",
                "Put the arguments into the script, or submit several jobs.",
            )
        start = len(argv) - len(line.operands) + 1
        check_count(len(lines) + 1, sum(len(one.options) for one in lines))


def check_count(count: int, options: int = 0) -> None:
    """options: of all components together. Raises BadRequest."""
    if options > MAX_OPTIONS:
        raise BadRequest(
            f"the components have more than {MAX_OPTIONS} options together",
            "Give each option once.",
        )
    if count > MAX_COMPONENTS:
        raise BadRequest(
            f"a heterogeneous job has at most {MAX_COMPONENTS} components",
            "Submit several jobs.",
        )


class Room:
    """A limit on the options of all components together: a short request may apply its options
    to each of 128 components."""

    def __init__(self) -> None:
        self._chars = MAX_CHARS
        self._names = MAX_NAMES

    def take_options(self, options: Iterable[Given]) -> None:
        """Raises BadRequest."""
        self._chars -= sum(len(one.text or "") + 1 for one in options)
        if self._chars < 0:
            raise BadRequest(
                f"the options of all components have more than {MAX_CHARS} characters together",
                "Options that apply to every component count for each: shorten them, or submit "
                "several jobs.",
            )

    def take_names(self, *lists: Sequence[str] | None) -> None:
        """lists: of nodes. Raises BadRequest."""
        self._names -= sum(len(one or ()) for one in lists)
        if self._names < 0:
            raise BadRequest(
                f"the components name more than {MAX_NAMES} nodes together",
                "Use --constraint or --partition, or submit several jobs.",
            )


def passed_on(groups: Sequence[Iterable[Given]], count: int) -> list[list[Given]]:
    """For each component, the options of one source that those before it pass on to it."""
    last: dict[str, Given] = {}
    passed: list[list[Given]] = []
    for number in range(count):
        passed.append(list(last.values()))
        for one in groups[number] if number < len(groups) else ():
            if one.option.long in PASSED_ON:
                last[one.option.long] = one
    return passed
