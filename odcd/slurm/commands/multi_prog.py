"""srun --multi-prog: a file that gives each task its program.

Each line has the tasks (`0-3,5`, or `*` for the rest), the program and its arguments. There, %t is
the task's number and %o its position within the line's tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odcd.slurm.commands.usage import Usage, fail
from odcd.slurm.lists import is_number
from odcd.slurm.shell_words import split_shell_words

Read = Callable[[str], str]
MAX_TASKS = 10_000
MAX_RANKS = 100_000
"""The tasks of all lines together; a task may be in several lines, and the first one counts."""
MAX_CHARACTERS = 8 * 1024 * 1024
"""The commands of all tasks together."""


def parse_multi_prog(
    text: str, tasks: int | None, arguments: Sequence[str]
) -> tuple[tuple[tuple[str, ...], ...], tuple[int, ...]]:
    """tasks: how many there are; None: as many as the file names. Returns the programs, and the
    one of each task. Raises Usage."""
    known: list[tuple[list[int] | None, list[str]]] = []
    room_for_ranks = MAX_RANKS
    for number, line in enumerate(text.splitlines(), 1):
        if (one := _line(number, line)) is not None:
            known.append(one)
            room_for_ranks -= len(one[0] or ())
            if room_for_ranks < 0:
                raise fail("srun", f"the lines of the file name more than {MAX_RANKS} tasks")
    if tasks is None:
        named = [task for ranks, _ in known if ranks is not None for task in ranks]
        tasks = max(named, default=0) + 1
    programs: list[tuple[str, ...]] = []
    room = MAX_CHARACTERS
    found: dict[int, int] = {}
    for ranks, words in known:
        if len(found) >= tasks:
            break
        chosen = [t for t in range(tasks) if t not in found] if ranks is None else ranks
        for offset, task in enumerate(chosen):
            if task in found or task >= tasks:
                continue
            room -= sum(len(word) + 1 for word in (*words, *arguments))
            if room < 0:
                raise fail("srun", "the commands of the tasks are too long: together they have "
                                   f"more than {MAX_CHARACTERS} characters")  # fmt: skip
            found[task] = len(programs)
            programs.append(
                tuple(w.replace("%t", str(task)).replace("%o", str(offset)) for w in words)
                + tuple(arguments)
            )
    missing = [task for task in range(tasks) if task not in found]
    if missing:
        raise Usage(f"srun: error: Configuration file has no program for task id {missing[0]}\n")
    return tuple(programs), tuple(found[task] for task in range(tasks))


def _line(number: int, line: str) -> tuple[list[int] | None, list[str]] | None:
    """The tasks (None: the rest) and the words of a line; None: a comment, or an empty line."""
    try:
        words = split_shell_words(line, comments=True)
    except ValueError as error:
        raise Usage(f"srun: error: Configuration file, line {number}: {error}\n") from None
    if not words:
        return None
    if len(words) < 2:
        raise Usage(f"srun: error: Configuration file, line {number}: no program is given\n")
    if words[0] == "*":
        return None, words[1:]
    ranks: list[int] = []
    for part in words[0].split(","):
        first, _, last = part.partition("-")
        last = last or first
        numbers = is_number(first) and is_number(last)
        if not (numbers and int(first) <= int(last) < MAX_TASKS):
            raise Usage(
                f'srun: error: Configuration file, line {number}: "{part[:40]}" is not a range '
                "of tasks\n"
            )
        ranks.extend(range(int(first), int(last) + 1))
        if len(ranks) > MAX_TASKS:
            raise Usage(f"srun: error: Configuration file, line {number}: too many tasks\n")
    return ranks, words[1:]
