"""odcctl shares: what accounts and users have of shares, have used, and how that ranks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl.exits import DONE
from odcctl.http.client import Client
from odcctl.listing import refuse_unknown
from odcctl.options import Arguments, Command, Option
from odcctl.text import render

HEADER = (
    "ACCOUNT", "USER", "SHARES", "NORM", "USED GPU-H", "EFFECTIVE", "LEVEL FS", "FAIRSHARE",
)  # fmt: skip


def run(arguments: Arguments) -> int:
    reply = Client.of(arguments).get("/v1/shares")
    answer: dict[str, Any] = reply.json()
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
        return DONE
    users = set((arguments.joined("user") or "").split(",")) - {""}
    accounts = set((arguments.joined("account") or "").split(",")) - {""}
    refuse_unknown("account", accounts, (row["account"] for row in answer["shares"]))
    for user in sorted(users.difference(row["user"] for row in answer["shares"])):
        # The daemon rejects an unknown name.
        Client.of(arguments).get("/v1/jobs", {"user": user, "limit": 1, "fields": "id"})
    rows = [
        row
        for row in answer["shares"]
        if (not users or row["user"] in users) and (not accounts or row["account"] in accounts)
    ]
    if arguments.form == "quiet":
        render.put("".join(f"{row['user']}\n" for row in rows if row["user"]))
        return DONE
    head = () if arguments.flag("no-header") else HEADER
    render.put(render.table(head, [_row(row) for row in rows], render.terminal_width()))
    return DONE


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    level, fair = row["level_fs"], row["fairshare"]
    return (
        "  " * row["depth"] + row["account"], render.clean(row["user"] or ""),
        str(row["raw_shares"]), f"{row['norm_shares']:.6f}", f"{row['used_s'] / 3600:.1f}",
        f"{row['effective_usage']:.6f}", "inf" if level is None else f"{level:.6f}",
        "" if fair is None else f"{fair:.6f}",
    )  # fmt: skip


COMMAND = Command(
    name="shares",
    summary="Show shares, used time and the fair-share factor of accounts and users",
    usage="shares [OPTIONS]",
    notes=(
        "NORM and EFFECTIVE are parts of what the siblings have, and have used, together; LEVEL FS "
        "is the one over the other. The higher one goes first, with all below it (Fair Tree)."
    ),
    options=(
        Option("user", "u", "NAMES", "only these users"),
        Option("account", "A", "NAMES", "only these accounts"),
        Option("no-header", None, None, "leave the header line out"),
    ),
    example="odcctl shares --account physics",
    run=run,
)
