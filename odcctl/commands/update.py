"""odcctl update: change pending and running jobs."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from odcctl.changes import print_outcomes
from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import JobIds, Partitions, duration, joined
from odcctl.http.client import quote
from odcctl.text.jobs import check_selectors

EXAMPLE = (
    "odcctl update 7 --time 2-00:00:00\nodcctl update 9 --time +30\n"
    "odcctl update 8 --throttle 4 --nice 100"
)

Time = Annotated[
    str | None,
    typer.Option(
        "--time", "-t", metavar="TIME", parser=duration,
        help="time limit: 30 (minutes), 4h, 1:30:00, 1-0 or UNLIMITED; +30 or -1h changes it by "
        "that much",
    ),
]  # fmt: skip
Nice = Annotated[
    int | None,
    typer.Option(
        "--nice", metavar="N",
        help="nice value: jobs with lower values start first; only operators may go below 0",
    ),
]  # fmt: skip
Account = Annotated[
    str | None,
    typer.Option(
        "--account", "-A", metavar="NAME", help="the account to charge",
        autocompletion=complete.accounts,
    ),
]  # fmt: skip
Qos = Annotated[
    str | None,
    typer.Option(
        "--qos", "-q", metavar="NAME", help="the QOS to use",
        autocompletion=complete.qos,
    ),
]  # fmt: skip
Name = Annotated[
    str | None, typer.Option("--name", "-n", metavar="NAME", help="its name")
]  # fmt: skip
Comment = Annotated[
    str | None, typer.Option("--comment", metavar="TEXT", help="comment; '' for none")
]  # fmt: skip
Dependency = Annotated[
    str | None,
    typer.Option(
        "--dependency", "-d", metavar="LIST",
        help="jobs to wait for, as for sbatch; '' for none",
    ),
]  # fmt: skip
Throttle = Annotated[
    int | None,
    typer.Option(
        "--throttle", metavar="N", help="how many tasks of an array run at once; 0 for all"
    ),
]  # fmt: skip
Begin = Annotated[
    str | None,
    typer.Option(
        "--begin", "-b", metavar="MOMENT",
        help="do not start before: now+1hour, 16:00, 2026-01-20T12:34:00",
    ),
]  # fmt: skip
Booking = Annotated[
    str | None,
    typer.Option(
        "--reservation", metavar="NAME", help="run inside this booking; '' for none",
        autocompletion=complete.bookings,
    ),
]  # fmt: skip
Deadline = Annotated[
    str | None,
    typer.Option("--deadline", metavar="MOMENT", help="cancel it if it cannot end by then"),
]  # fmt: skip


app = new_app()


@app.command(cls=Verb, epilog=EXAMPLE)
def update(
    ctx: typer.Context,
    ids: JobIds,
    time: Time = None,
    nice: Nice = None,
    partition: Partitions = None,
    account: Account = None,
    qos: Qos = None,
    name: Name = None,
    comment: Comment = None,
    dependency: Dependency = None,
    throttle: Throttle = None,
    begin: Begin = None,
    booking: Booking = None,
    deadline: Deadline = None,
) -> int:  # fmt: skip
    """Change pending or running jobs."""
    call = Call.of(ctx, failing="nothing changed")
    selectors = check_selectors(ids)
    # The texts are sent unchanged: the daemon parses sbatch's forms.
    changes: dict[str, Any] = {
        "time_limit": time, "nice": nice, "name": name, "account": account, "qos": qos,
        "begin": begin, "deadline": deadline,
        "partitions": (joined(partition) or "").split(",") if joined(partition) else None,
    }  # fmt: skip
    changes = {field: value for field, value in changes.items() if value is not None}
    # Null removes a value.
    removable = {"comment": comment, "dependency": dependency, "booking": booking,
                 "array_throttle": throttle}  # fmt: skip
    changes |= {field: value or None for field, value in removable.items() if value is not None}
    if not changes:
        call.wrong("name at least one setting to change")
    if changes.keys() & {"begin", "deadline"} and os.environ.get("TZ"):
        changes["time_zone"] = os.environ["TZ"]
    client = call.client()
    outcomes: list[dict[str, Any]] = []
    for selector in selectors:
        answer = client.patch(f"/v1/jobs/{quote(selector)}", changes).json()
        outcomes += answer["jobs"]
    return print_outcomes({"jobs": outcomes}, call.form, "not changed")
