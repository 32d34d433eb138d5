"""odcctl shares: shares, used time and fair-share factors of accounts and users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.cli.params import Accounts, joined
from odcctl.exits import DONE
from odcctl.listing import refuse_unknown
from odcctl.text import render

HEADER = (
    "ACCOUNT", "USER", "SHARES", "NORM", "USED GPU-H", "EFFECTIVE", "LEVEL FS", "FAIRSHARE",
)  # fmt: skip

app = new_app()


@app.command(cls=Listing, epilog="odcctl shares --account physics")
def shares(
    ctx: typer.Context,
    user: Annotated[
        list[str] | None,
        typer.Option(
            "--user", "-u", metavar="NAMES", help="only these users",
            autocompletion=complete.users,
        ),
    ] = None,
    account: Accounts = None,
) -> int:  # fmt: skip
    """Show shares, used time and fair-share factors of accounts and users.

    NORM is the part of the siblings' shares, and EFFECTIVE the part of their used time. LEVEL
    FS is NORM divided by EFFECTIVE. The higher value comes first, with everything below it
    (Fair Tree).
    """
    call = Call.of(ctx)
    client = call.client()
    reply = client.get("/v1/shares")
    answer: dict[str, Any] = reply.json()
    if call.form == "json":
        call.put_reply(reply)
        return DONE
    users = set((joined(user) or "").split(",")) - {""}
    accounts = set((joined(account) or "").split(",")) - {""}
    refuse_unknown("account", accounts, (row["account"] for row in answer["shares"]))
    for name in sorted(users.difference(row["user"] for row in answer["shares"])):
        # The daemon rejects an unknown name.
        client.get("/v1/jobs", {"user": name, "limit": 1, "fields": "id"})
    rows = [
        row
        for row in answer["shares"]
        if (not users or row["user"] in users) and (not accounts or row["account"] in accounts)
    ]
    names = (row["user"] for row in rows if row["user"])
    return call.put_list(reply, names, HEADER, [_row(row) for row in rows])


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    level, fair = row["level_fs"], row["fairshare"]
    return (
        "  " * row["depth"] + row["account"], render.clean(row["user"] or ""),
        str(row["raw_shares"]), f"{row['norm_shares']:.6f}", f"{row['used_s'] / 3600:.1f}",
        f"{row['effective_usage']:.6f}", "inf" if level is None else f"{level:.6f}",
        "" if fair is None else f"{fair:.6f}",
    )  # fmt: skip
