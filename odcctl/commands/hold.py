"""odcctl hold: keep pending jobs from starting."""

from __future__ import annotations

from odcctl.changes import tell
from odcctl.http.client import Client
from odcctl.options import Arguments, Command
from odcctl.text.jobs import check_selectors


def run(arguments: Arguments) -> int:
    body = {"ids": check_selectors(arguments.words)}
    return tell(Client.of(arguments).post("/v1/jobs/hold", body).json(), arguments.form, "not held")


COMMAND = Command(
    name="hold",
    summary="Keep pending jobs from starting",
    usage="hold ID...",
    words=(1, None),
    takes_jobs=True,
    example="odcctl hold 7 8_[1-4]",
    run=run,
    what="nothing held",
)
