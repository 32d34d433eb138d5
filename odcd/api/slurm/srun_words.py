"""srun's words for steps that are refused and for other errors, and the output of its tasks."""

from __future__ import annotations

from odcd.api.slurm.remote import Remote
from odcd.api.slurm.step_output import StepOutput
from odcd.errors import OdcError
from odcd.records.step import Placement, StepRefused
from odcd.slurm.commands.srun import MAX_TASKS, StepCall
from odcd.slurm.commands.usage import Usage, fail

WORDS = {
    "processors": "More processors requested than permitted",
    "gpus": "Invalid generic resource (gres) specification",
    "memory": "Memory required by task is not available",
    "node_list": "Requested node configuration is not available",
    "ended": "Job/step already completing or completed",
    "tasks": f"a step has at most {MAX_TASKS} tasks",
    "limit": "Step limit reached for this job",
}


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
