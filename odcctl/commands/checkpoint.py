"""odcctl checkpoint: say that a running job has written a checkpoint."""

from __future__ import annotations

import os

from odcctl.changes import tell
from odcctl.http.client import Client, quote
from odcctl.options import Arguments, Command
from odcctl.text.jobs import check_selector


def run(arguments: Arguments) -> int:
    selector = arguments.words[0] if arguments.words else os.environ.get("ODC_JOB_ID")
    if not selector:
        arguments.command.wrong("which job? Outside of a job its ID is needed")
    client = Client.of(arguments)
    answer = client.post(f"/v1/jobs/{quote(check_selector(selector))}/checkpoint", {}).json()
    return tell(answer, arguments.form, "not checkpointed")


COMMAND = Command(
    name="checkpoint",
    summary="Say that a running job has written a checkpoint",
    usage="checkpoint [ID]",
    words=(0, 1),
    takes_jobs=True,
    notes=(
        "Inside a job, without an ID: this job. Preemption ends first whose end loses least, and "
        "what a job did before its last checkpoint is not lost."
    ),
    example="odcctl checkpoint",
    run=run,
    what="nothing checkpointed",
)
