"""The submitter's environment: SBATCH_* variables as options, and the variables that --export
passes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from odcd.errors import BadRequest
from odcd.slurm.option import Given, Option

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(
    r"""(?P<name>(?:[A-Za-z_][A-Za-z0-9_]*=)?+)(?:(?P<quoted>'[^']*'|"[^"]*")|(?!['"]))(?P<rest>[^,]*)"""
)
_YES = frozenset({"1", "y", "yes", "true"})

# The variables that an executor sets for a job. A job submitted from inside a job must not inherit
# them: with an old SLURM_ARRAY_TASK_ID it would appear to be an element of that array.
_OF_A_JOB = re.compile(
    r"(?:SLURM|ODC)_(?:JOB|ARRAY|STEP|TASK|HET|MEM_PER|CPUS|GPUS|NTASKS|TASKS|RESTART|TRES|SUBMIT)"
    r"|SLURM_(?:NODEID|NODELIST|NNODES|NODE_ALIASES|NPROCS|PROCID|LOCALID|GTIDS|GPU_|THREADS_PER_CORE"
    r"|PRIO_PROCESS|EXPORT_ENV|GET_USER_ENV|LAUNCH_NODE_IPADDR|SRUN_COMM|DISTRIBUTION|TOPOLOGY_ADDR)"
    r"|SLURMD_|SRUN_CPUS_PER_TASK"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """The value of --export. base: ALL, NONE or NIL of the submitter's variables; names: variables
    that are passed in addition; values: variables that are set. text: the original text, for
    SLURM_EXPORT_ENV."""

    base: str = "ALL"
    names: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    text: str | None = None


EXPORT_ALL = Export()


def parse_export(text: str) -> Export:
    """ALL, NONE, NIL, or a list of NAME and NAME=VALUE; a value with a comma must be quoted.

    A list without ALL passes no other variables, as in sbatch.
    """
    if not text.strip():
        raise BadRequest("the value is empty", "Accepted: ALL, NONE, NIL or a list of variables.")
    base: str | None = None
    names: list[str] = []
    values: list[tuple[str, str]] = []
    for part in _split(text):
        name, equals, value = part.partition("=")
        if not equals and name.upper() in ("ALL", "NONE", "NIL"):
            if base is not None and base != name.upper():
                raise BadRequest(
                    f"{base} and {name.upper()} cannot be used together", "Use only one of them."
                )
            base = name.upper()
        elif not _NAME.fullmatch(name):
            raise BadRequest(
                f'"{part[:60]}" is not a variable',
                "Accepted: ALL, NONE, NIL, NAME and NAME=VALUE, separated by commas; "
                "put a value with a comma in quotes inside quotes: --export=\"NAME='a,b'\".",
            )
        elif equals:
            values.append((name, value))
        else:
            names.append(name)
    if base in ("NONE", "NIL") and (names or values):
        raise BadRequest(
            f"{base} and a list of variables cannot be used together",
            "A list without ALL already excludes all other variables.",
        )
    return Export(base=base or "NONE", names=tuple(names), values=tuple(values), text=text)


def _split(text: str) -> list[str]:
    """The parts between commas outside quotes, without the quotes. A quote opens at the start of a
    part or of its value."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        found = _PART.match(text, at)
        if found is None:
            raise BadRequest(
                f'the quote in "{text[at : at + 60]}" is not closed',
                "End the value with the same quote.",
            )
        quoted = found["quoted"]
        parts.append(found["name"] + (quoted[1:-1] if quoted else "") + found["rest"])
        at = found.end() + 1
    return [part for part in parts if part]


def exported(environment: Mapping[str, str], export: Export) -> dict[str, str]:
    """The job's environment. NONE and NIL keep SLURM_* variables that do not describe a job. The
    executor then adds the variables of a login (HOME, PATH, …)."""
    job = {
        name: value
        for name, value in environment.items()
        if (export.base == "ALL" or name.startswith("SLURM_")) and not _OF_A_JOB.match(name)
    }
    job |= {name: environment[name] for name in export.names if name in environment}
    job |= dict(export.values)
    if export.text is not None:
        job["SLURM_EXPORT_ENV"] = export.text
    return job


def exported_to_step(environment: Mapping[str, str], export: Export) -> dict[str, str]:
    """The environment of a step's tasks, without the variables of the step. Unlike a job, a step
    keeps all variables that describe its job."""
    step = {
        name: value
        for name, value in environment.items()
        if export.base == "ALL" or name.startswith(("SLURM_", "ODC_", "SPANK_"))
    }
    step |= {name: environment[name] for name in export.names if name in environment}
    step |= dict(export.values)
    if export.text is not None:
        step["SLURM_EXPORT_ENV"] = export.text
    return step


def variable_options(environment: Mapping[str, str], options: tuple[Option, ...]) -> list[Given]:
    """The options that SBATCH_* variables set; an empty variable counts as not set."""
    given: list[Given] = []
    for option in options:
        for variable in option.variables:
            if text := environment.get(variable):
                is_yes = option.argument == "optional" and text.lower() in _YES
                bare = option.argument == "none" or is_yes
                given.append(
                    Given(option=option, text=None if bare else text, where=f"{variable}, ")
                )
                break
    return given
