"""sbatch's usage errors and refusals, in Slurm's words. odc's own explanation follows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from odcd.errors import OdcError, SubmitRejected
from odcd.slurm.commands.getopt import Flag, parse_components
from odcd.slurm.sbatch_options import OPTIONS as ALL
from odcd.slurm.usage import USAGE_CODE, Usage

NAME = "sbatch"
OPTIONS = (
    Flag("help", "help", "h"),
    Flag("usage", "usage"),
    Flag("version", "version", "V"),
    *(
        Flag(option.long, option.long, option.short or "", option.argument)
        for option in ALL
        if option.long not in ("help", "usage", "version")
    ),
)
FAILED = f"{NAME}: error: Batch job submission failed: "
FAILURES: Mapping[str, str] = {
    NAME: FAILED,
    "salloc": "salloc: error: Job submit/allocate failed: ",
    "srun": "srun: error: Unable to allocate resources: ",
}
LIMIT = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
REFUSALS: Mapping[str, str] = {
    "OD001": "Invalid partition name specified",
    "OD002": "Invalid account or account/partition combination specified",
    "OD004": "Invalid qos specification",
    "OD005": "Invalid generic resource (gres) specification",
    "OD006": "Job dependency problem",
    "OD007": "Invalid node name specified",
    "OD008": "Requested node configuration is not available",
    "OD009": LIMIT,
    "OD011": "Job dependency problem",
    "OD012": "Required partition not available (inactive or drain)",
    "OD013": "Access/permission denied",
    "OD018": "Requested reservation is invalid",
    "OD025": "Invalid license specification",
    "OD026": "Invalid account or account/partition combination specified",
}
UNSPECIFIED = "Unspecified error"
"""Slurm's words after the message of a job_submit plugin."""
NOT_A_SCRIPT = (
    f"{NAME}: error: This does not look like a batch script.  The first\n"
    f"{NAME}: error: line must start with #! followed by the path to an interpreter.\n"
    f"{NAME}: error: For instance: #!/bin/sh\n"
)
DOS = (
    f"{NAME}: error: Batch script contains DOS line breaks (\\r\\n)\n"
    f"{NAME}: error: instead of expected UNIX line breaks (\\n).\n"
)
_OPTION = re.compile(r"(?:[0-9]+ errors: )?(?:.*, )?--([a-z-]+): ")
_COUNTS = frozenset({
    "ntasks", "cpus-per-task", "ntasks-per-node", "ntasks-per-core", "ntasks-per-socket",
    "ntasks-per-gpu", "mincpus", "sockets-per-node", "cores-per-socket", "threads-per-core",
})  # fmt: skip
"""Slurm complains about these counts in other words, with exit code 1."""
_VALUE = re.compile(r'[^"]*"([^"]*)"')
_BACKWARDS = re.compile(r'[^"]*"([0-9]+)-([0-9]+)" ends before it begins')
TIME_LIMIT = "Requested time limit is invalid (missing or exceeds some limit)"
ARRAY = "Invalid job array specification"
GRES = "Invalid generic resource (gres) specification"
SUBMITTED: Mapping[str, str] = {"array": ARRAY, "dependency": "Job dependency problem"}


def check_words(argv: list[str]) -> None:
    """Raises Usage for options that sbatch does not know, in getopt's words."""
    parse_components(NAME, OPTIONS, argv, code=USAGE_CODE, commands=False)


def unparsed(error: OdcError, name: str = NAME) -> Usage:
    """A command line, variable or directive that cannot be read. name: sbatch, salloc or srun."""
    failed = FAILURES[name]
    found = _OPTION.match(error.message)
    detail = explanation(error, name)
    if found is None:
        return Usage(f"{name}: error: {error.message}\n{_hint(error, name)}", code=USAGE_CODE)
    option, value = found[1], _VALUE.match(error.message[found.end() :])
    if option in SUBMITTED:
        # Slurm notices these when it submits.
        return Usage(f"{failed}{SUBMITTED[option]}\n{detail}")
    if option in _COUNTS and value is not None:
        words = f'Invalid numeric value "{value[1]}" for --{option}.'
        return Usage(f"{name}: error: {words}\n{detail}")
    if option.startswith(("gres", "gpus")):
        return Usage(f"{name}: error: {GRES}\n{detail}")
    if option == "nodes" and (ends := _BACKWARDS.match(error.message[found.end() :])):
        words = f"Maximum node count {ends[2]} is less than minimum node count {ends[1]}"
        return Usage(f"{name}: error: {words}\n{detail}", code=USAGE_CODE)
    if option == "nodes" and value is not None and value[1] == "0":
        return Usage(f"{failed}Node count specification invalid\n{detail}")
    return Usage(f"{name}: error: Invalid --{found[1]} specification\n{detail}", code=USAGE_CODE)


def refused(error: OdcError, name: str = NAME) -> Usage:
    """A job that the scheduler rejects."""
    failed = FAILURES[name]
    if isinstance(error, SubmitRejected):
        text = messages([error.text], f"{name}: error")
        return Usage(f"{text}{failed}{UNSPECIFIED}\n")
    words = REFUSALS.get(error.code)
    if error.code == "OD009" and "time limit" in error.message:
        words = TIME_LIMIT
    if words is None and "array cannot be heterogeneous" in error.message:
        words = ARRAY
    if error.code == "OD017" and "array" in error.message:
        words = ARRAY
    if words is None:
        return Usage(f"{failed}{error.message}\n{_hint(error, name)}")
    before = ""
    if error.code == "OD001" and (named := re.search('"([^"]*)"', error.message)):
        before = f"{name}: error: invalid partition specified: {named[1]}\n"
    return Usage(f"{before}{failed}{words}\n{explanation(error, name)}")


def messages(texts: Iterable[str], name: str = NAME) -> str:
    """The texts of the site's submit filter, as Slurm prints them."""
    return "".join(f"{name}: {line}\n" for text in texts for line in text.splitlines())


def bad_script(script: str) -> str | None:
    """Slurm's words for a file that is not a batch script; None: it is one."""
    if not script:
        return f"{NAME}: error: Batch script is empty!\n"
    if not script.strip():
        return f"{NAME}: error: Batch script contains only whitespace!\n"
    if not script.startswith("#!"):
        return NOT_A_SCRIPT
    return DOS if "\r\n" in script else None


def explanation(error: OdcError, name: str) -> str:
    return f"{name}: error: odc: {error.message}\n{_hint(error, name)}"


def _hint(error: OdcError, name: str) -> str:
    return f"{name}: error: odc: {error.hint}\n" if error.hint else ""
