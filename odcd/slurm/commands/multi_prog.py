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
MAX_WORDS = 200_000
"""The words of all these commands. Lines without %t and %o have one for all of their tasks."""
MAX_FILE_CHARACTERS = 512 * 1024
MAX_LINES = 20_000
"""Of the files. All other requests wait while they are read: a line or ten characters take some
microseconds."""


class Budget:
    """Limits the commands and files of one call, for all of its components together."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._file_room = MAX_FILE_CHARACTERS
        self._lines = MAX_LINES
        self._room = MAX_CHARACTERS
        self._words: int | None = None

    def lines(self, path: str) -> list[str]:
        """The lines of a file. Raises Usage, and what read raises."""
        text = self._read(path)
        self._file_room -= len(text)
        lines = text.splitlines() if self._file_room >= 0 else []
        self._lines -= len(lines)
        if self._file_room < 0 or self._lines < 0:
            raise fail("srun", "the files of --multi-prog are too long: together, for all "
                       f"components, more than {MAX_FILE_CHARACTERS} characters or {MAX_LINES} "
                       "lines")  # fmt: skip
        return lines

    def take(self, program: Sequence[str]) -> tuple[str, ...]:
        """A command that is kept. The first one may have any number of words. Raises Usage."""
        self._room -= sum(len(word) + 1 for word in program)
        self._words = MAX_WORDS if self._words is None else self._words - len(program)
        if self._room < 0 or self._words < 0:
            raise fail("srun", "the commands of the tasks are too long: together they have more "
                       f"than {MAX_CHARACTERS} characters or {MAX_WORDS} words")  # fmt: skip
        return tuple(program)


def parse_multi_prog(
    budget: Budget, path: str, tasks: int | None, arguments: Sequence[str]
) -> tuple[tuple[tuple[str, ...], ...], tuple[int, ...]]:
    """tasks: how many there are; None: as many as the file names. Returns the programs, and the
    one of each task. Raises Usage, and what the file's reader raises."""
    known = _read(budget.lines(path))
    if tasks is None:
        named = [task for ranks, _ in known if ranks is not None for task in ranks]
        tasks = max(named, default=0) + 1
    programs: list[tuple[str, ...]] = []
    found: dict[int, int] = {}
    for ranks, words in known:
        if len(found) >= tasks:
            break
        chosen = [t for t in range(tasks) if t not in found] if ranks is None else ranks
        own = any("%t" in word or "%o" in word for word in words)
        same: int | None = None
        for offset, task in enumerate(chosen):
            if task in found or task >= tasks:
                continue
            if own:
                its = [w.replace("%t", str(task)).replace("%o", str(offset)) for w in words]
                programs.append(budget.take([*its, *arguments]))
            elif same is None:
                same = len(programs)
                programs.append(budget.take([*words, *arguments]))
            found[task] = len(programs) - 1 if own or same is None else same
    missing = [task for task in range(tasks) if task not in found]
    if missing:
        raise Usage(f"srun: error: Configuration file has no program for task id {missing[0]}\n")
    return tuple(programs), tuple(found[task] for task in range(tasks))


def _read(lines: Sequence[str]) -> list[tuple[list[int] | None, list[str]]]:
    """The tasks (None: the rest) and the words of each line. Raises Usage."""
    known: list[tuple[list[int] | None, list[str]]] = []
    room = MAX_RANKS
    for number, line in enumerate(lines, 1):
        if (one := _line(number, line)) is not None:
            known.append(one)
            room -= len(one[0] or ())
            if room < 0:
                raise fail("srun", f"the lines of the file name more than {MAX_RANKS} tasks")
    return known


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
