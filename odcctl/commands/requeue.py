"""odcctl requeue: stop running jobs and put them back into the queue."""

from __future__ import annotations

from odcctl.changes import tell
from odcctl.http.client import Client
from odcctl.options import Arguments, Command, Option
from odcctl.text.jobs import check_selectors


def run(arguments: Arguments) -> int:
    body = {"ids": check_selectors(arguments.words), "hold": arguments.flag("hold")}
    answer = Client.of(arguments).post("/v1/jobs/requeue", body).json()
    return tell(answer, arguments.form, "not requeued")


COMMAND = Command(
    name="requeue",
    summary="Stop running jobs and put them back into the queue",
    usage="requeue ID... [--hold]",
    words=(1, None),
    takes_jobs=True,
    options=(Option("hold", None, None, "and hold them there"),),
    example="odcctl requeue 7 --hold",
    run=run,
    what="nothing requeued",
)
