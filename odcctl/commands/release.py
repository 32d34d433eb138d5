"""odcctl release: let held jobs start again."""

from __future__ import annotations

from odcctl.changes import tell
from odcctl.http.client import Client
from odcctl.options import Arguments, Command
from odcctl.text.jobs import check_selectors


def run(arguments: Arguments) -> int:
    body = {"ids": check_selectors(arguments.words)}
    answer = Client.of(arguments).post("/v1/jobs/release", body).json()
    return tell(answer, arguments.form, "not released")


COMMAND = Command(
    name="release",
    summary="Let held jobs start again",
    usage="release ID...",
    words=(1, None),
    takes_jobs=True,
    example="odcctl release 7",
    run=run,
    what="nothing released",
)
