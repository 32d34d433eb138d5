"""odcctl submit: send a batch job to the daemon, which parses sbatch's options."""

from __future__ import annotations

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import new_app
from odcctl.commands._submitting import SubmitVerb, print_submitted, submit_argv
from odcctl.exits import DONE, job_exit_code
from odcctl.follow import Patience, wait_for_end

EXAMPLE = (
    "odcctl submit --gpus 2 --time 4:00:00 train.sh --epochs 3\n"
    "odcctl submit --array 0-9%2 --wrap 'python sweep.py $SLURM_ARRAY_TASK_ID'"
)

app = new_app()


@app.command(cls=SubmitVerb, epilog=EXAMPLE)
def submit(ctx: typer.Context) -> int:
    """Submit a batch job.

    SCRIPT is a file with a #! line. A name without a slash is searched for here and on PATH.
    Without SCRIPT, or with -, the script is read from standard input. --wrap COMMAND or --
    COMMAND... runs a command instead. #SBATCH and #ODC lines of the script can contain options.
    The command line overrides SBATCH_* variables, which override those lines. Prints: Submitted
    batch job N.
    """
    call = Call.of(ctx, failing="job not submitted")
    client, answer = submit_argv(call, "submit", ctx.args)
    if "test_only" in answer:
        return DONE
    print_submitted(call, answer)
    if not answer.get("wait"):
        return DONE
    return job_exit_code(wait_for_end(client, str(answer["id"]), Patience()))
