"""odcctl submit: hand a batch job to the daemon, which parses sbatch's options."""

from __future__ import annotations

from odcctl.commands._submitting import SubmitCommand, submit_words, tell_submitted
from odcctl.exits import DONE, job_exit_code
from odcctl.follow import Patience, wait_for_end
from odcctl.options import Arguments


def run(arguments: Arguments) -> int:
    client, answer = submit_words(arguments)
    if "test_only" in answer:
        return DONE
    tell_submitted(arguments, answer)
    if not answer.get("wait"):
        return DONE
    return job_exit_code(wait_for_end(client, str(answer["id"]), Patience()))


COMMAND = SubmitCommand(
    name="submit",
    summary="Submit a batch job",
    usage="submit [OPTIONS] SCRIPT [ARGUMENTS] | --wrap COMMAND | -- COMMAND...",
    notes=(
        "SCRIPT is a file with a #! line, looked for here and, without a slash, on PATH; - or "
        "nothing is standard input. Its #SBATCH and #ODC lines hold options too; the command "
        "line wins over SBATCH_* variables, and those over the lines. Prints: Submitted batch "
        "job N."
    ),
    example=(
        "odcctl submit --gpus 2 --time 4:00:00 train.sh --epochs 3\n"
        "odcctl submit --array 0-9%2 --wrap 'python sweep.py $SLURM_ARRAY_TASK_ID'"
    ),
    run=run,
    what="job not submitted",
)
