"""srun's words for steps that are refused and for other errors, and the output of its tasks and
their terminal."""

from __future__ import annotations

from collections.abc import Mapping

from odcd.api.slurm.remote import Remote
from odcd.api.slurm.step_output import StepOutput
from odcd.errors import OdcError
from odcd.records.step import Placement, StepRefused
from odcd.slurm.commands.srun import MAX_TASKS, StepCall
from odcd.slurm.commands.usage import Usage, fail
from odcd.slurm.lists import is_number

WORDS = {
    "processors": "More processors requested than permitted",
    "gpus": "Invalid generic resource (gres) specification",
    "memory": "Memory required by task is not available",
    "node_list": "Requested node configuration is not available",
    "ended": "Job/step already completing or completed",
    "tasks": f"a step has at most {MAX_TASKS} tasks",
    "limit": "Step limit reached for this job",
}
NO_TERMINAL = (
    "srun --pty is not available on Kubernetes. For a shell on GPUs, reserve a dev server: odcctl "
    "reserve"
)
WINDOW = ("SLURM_PTY_WIN_ROW", "SLURM_PTY_WIN_COL")
"""Slurm's variables for the size of the window; the client sets them."""
MAX_SIDE = 10_000


def refused_step(job_id: int, refused: StepRefused, call: StepCall) -> Usage:
    if refused.why == "nodes":
        return fail("srun", f"Only allocated {refused.allocated} nodes asked for "
                            f"{call.wants['nodes']}")  # fmt: skip
    return fail("srun", f"Unable to create step for job {job_id}: {WORDS[refused.why]}")


def explained(name: str, error: OdcError) -> str:
    hint = f"\n{name}: error:   {error.hint}" if error.hint else ""
    return f"{name}: error: {error.message}{hint}\n"


def output_of(
    remote: Remote, placement: Placement, call: StepCall, *, has_marks: bool
) -> StepOutput:
    label = call.label and not call.pty
    try:
        return StepOutput(
            placement.task_count, label=label, position=remote.request.token, has_marks=has_marks
        )
    except ValueError:
        raise Usage("srun: error: the token of the connection is not valid\n") from None


def window_of(
    environment: Mapping[str, str], call: StepCall
) -> tuple[Mapping[str, str], tuple[int, int] | None]:
    """The variables for the tasks, and rows and columns of the client's terminal if they are
    known."""
    if not call.pty:
        others = {name: value for name, value in environment.items() if name not in WINDOW}
        return others, None
    sides = [environment.get(name, "") for name in WINDOW]
    if not all(is_number(side, 5) and 0 < int(side) <= MAX_SIDE for side in sides):
        return environment, None
    return environment, (int(sides[0]), int(sides[1]))
