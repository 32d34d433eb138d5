"""srun in a heterogeneous job: which components a step runs in, and what it reads for each."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence

from odcd.records.job import MAX_COMPONENTS
from odcd.slurm.commands.getopt import Arguments
from odcd.slurm.lists import is_number
from odcd.slurm.usage import Usage, fail

PASSED_ON = frozenset({
    "chdir", "error", "export", "input", "job", "kill", "label", "mpi", "name", "output", "overlap",
    "quiet", "time", "unbuffered", "wait", "alloc:account", "alloc:begin", "alloc:comment",
    "alloc:deadline", "alloc:dependency", "alloc:exclude", "alloc:nice", "alloc:qos",
    "alloc:reservation",
})  # fmt: skip
"""Options of one part that apply to the parts behind it, too."""
OF_A_GROUP = (
    "SLURM_NTASKS", "SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_TASK", "SLURM_NTASKS_PER_NODE",
    "SLURM_GPUS_PER_TASK",
)  # fmt: skip
"""Variables that describe the first component; each has one with _HET_GROUP_N for every other."""


def step_groups(parts: Sequence[Arguments]) -> Iterator[tuple[int, Arguments]]:
    """The components, ascending, with the arguments for each. A part without a command has that of
    the next one. Raises Usage."""
    if not parts[-1].operands:
        raise Usage("srun: fatal: No command given to execute.\n")
    found: dict[int, Arguments] = {}
    for number, part in enumerate(parts):
        operands = next(one.operands for one in parts[number:] if one.operands)
        passed = [
            given for one in parts[:number] for given in one.given if given[0].key in PASSED_ON
        ]  # fmt: skip
        text = part.last("groups")
        for group in (number,) if text is None else _numbers(text):
            if group in found:
                raise fail("srun", f"het-group {group} is given twice")
            found[group] = Arguments(given=[*passed, *part.given], operands=operands)
    yield from sorted(found.items())


def of_group(environment: Mapping[str, str], group: int) -> Mapping[str, str]:
    """The variables as they describe a component of the job."""
    if group == 0 or "SLURM_HET_SIZE" not in environment:
        return environment
    # An empty variable counts as absent.
    return ChainMap(
        {name: environment.get(f"{name}_HET_GROUP_{group}", "") for name in OF_A_GROUP},
        environment,  # pyright: ignore[reportArgumentType]: it is not changed
    )


def _numbers(text: str) -> list[int]:
    """2, 0,4 or 1,3-5."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        last = last or first
        if not (is_number(first) and is_number(last) and int(first) <= int(last) < MAX_COMPONENTS):
            raise fail("srun", f"Invalid --het-group specification: {text[:60]}")
        numbers.extend(range(int(first), int(last) + 1))
    return numbers
