"""odcctl qos list | show | create | edit | delete: sets of limits that jobs run under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Listing, Verb, new_app
from odcctl.cli.params import Limits, OnOff, duration, is_on, limits_of, names_of
from odcctl.exits import DONE
from odcctl.http.client import quote
from odcctl.text import render
from odcctl.text.limit_args import text_of

HEADER = ("QOS", "PRIORITY", "PREEMPTS", "FACTOR", "FOR", "LIMITS")
CREATE = "odcctl qos create urgent --priority 100 --restricted on --preempts normal"
EDIT = "odcctl qos edit normal --limit user.gpus=16 --limit job.wall=2-00:00:00"

app = new_app(
    Actions,
    "Manage QOS: their priority, limits and preemption.\n\n"
    "A job uses one: submit --qos NAME. Only operators can change them. Times are as for submit "
    "--time: 30 is 30 minutes, 0:30 is 30 seconds, 4h is four hours.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="the QOS", autocompletion=complete.qos)]

Description = Annotated[
    str | None, typer.Option("--description", metavar="TEXT", help="a description")
]  # fmt: skip
Priority = Annotated[
    int | None,
    typer.Option(
        "--priority", metavar="N", help="its priority compared with other QOS, 0 or more"
    )
]  # fmt: skip
Restricted = Annotated[
    OnOff | None,
    typer.Option(
        "--restricted", metavar="on|off",
        help="allow it only to accounts and users that name it",
    ),
]  # fmt: skip
UsageFactor = Annotated[
    float | None,
    typer.Option("--usage-factor", metavar="X", help="the factor by which used time counts"),
]  # fmt: skip
DenyOnLimit = Annotated[
    OnOff | None,
    typer.Option(
        "--deny-on-limit", metavar="on|off",
        help="refuse a job that exceeds a limit by itself (on), or let it wait (off)",
    ),
]  # fmt: skip
Preempts = Annotated[
    list[str] | None,
    typer.Option(
        "--preempts", metavar="NAMES", help="QOS whose jobs its jobs may preempt; or none",
        autocompletion=complete.qos,
    ),
]  # fmt: skip
PreemptMode = Annotated[
    str | None,
    typer.Option(
        "--preempt-mode", metavar="MODE",
        help="what happens to its jobs when they are preempted: requeue or cancel",
        autocompletion=lambda: ["requeue", "cancel"],
    ),
]  # fmt: skip
Exempt = Annotated[
    str | None,
    typer.Option(
        "--exempt", metavar="TIME", parser=duration,
        help="the minimum run time of its jobs before they are preempted",
    ),
]  # fmt: skip
Grace = Annotated[
    str | None,
    typer.Option(
        "--grace", metavar="TIME", parser=duration,
        help="the time from the signal to the kill of a preempted job",
    ),
]  # fmt: skip
IdleWarn = Annotated[
    str | None,
    typer.Option(
        "--idle-warn", metavar="TIME", parser=duration,
        help="notify the users of reservations idle for this long; 0: never",
    ),
]  # fmt: skip
IdleRelease = Annotated[
    str | None,
    typer.Option(
        "--idle-release", metavar="TIME", parser=duration,
        help="end reservations idle for this long; 0: never",
    ),
]  # fmt: skip


@app.command("list", cls=Listing, epilog="odcctl qos list")
def list_qos(ctx: typer.Context) -> int:
    """List the QOS."""
    call = Call.of(ctx)
    reply = call.client().get("/v1/qos")
    found: list[dict[str, Any]] = reply.json()["qos"]
    return call.put_list(reply, (one["name"] for one in found), HEADER, [_row(q) for q in found])


def _row(qos: Mapping[str, Any]) -> Sequence[str]:
    cells = (
        qos["name"], str(qos["priority"]), ",".join(qos["preempts"]) or "-",
        f"{qos['usage_factor']:g}", "by name" if qos["restricted"] else "all",
        text_of(qos["limits"]) or "-",
    )  # fmt: skip
    return [render.clean(cell) for cell in cells]


@app.command(cls=Verb, epilog="odcctl qos show normal")
def show(ctx: typer.Context, name: Name) -> int:
    """Show all details of a QOS."""
    call = Call.of(ctx)
    reply = call.client().get(f"/v1/qos/{quote(name)}")
    if call.form != "table":
        return call.put_outcome(reply, name, "")
    render.put(describe(reply.json()))
    return DONE


def describe(qos: Mapping[str, Any]) -> str:
    above = "refused" if qos["deny_on_limit"] else "kept until the limit changes"
    pairs = [
        ("description", qos["description"] or ""),
        ("priority", str(qos["priority"])),
        ("for", "accounts and users that name it" if qos["restricted"] else "all"),
        ("usage factor", f"{qos['usage_factor']:g}"),
        ("preempts", ", ".join(qos["preempts"])),
        ("preempted", _preempted(qos)),
        ("idle", _idle(qos)),
        ("limits", text_of(qos["limits"])),
        ("above them", f"a job that exceeds a limit by itself is {above}" if qos["limits"] else ""),
    ]
    return render.block(f"QOS {qos['name']}", [(key, render.clean(text)) for key, text in pairs])


@app.command("create", cls=Verb, epilog=CREATE, help="Create a QOS.")
@app.command("edit", cls=Verb, epilog=EDIT, help="Change a QOS.")
def create_or_edit(
    ctx: typer.Context,
    name: Name,
    description: Description = None,
    priority: Priority = None,
    restricted: Restricted = None,
    usage_factor: UsageFactor = None,
    limit: Limits = None,
    deny_on_limit: DenyOnLimit = None,
    preempts: Preempts = None,
    preempt_mode: PreemptMode = None,
    exempt: Exempt = None,
    grace: Grace = None,
    idle_warn: IdleWarn = None,
    idle_release: IdleRelease = None,
) -> int:  # fmt: skip
    call = Call.of(ctx)
    given = {
        "description": description, "priority": priority, "restricted": is_on(restricted),
        "usage_factor": usage_factor, "deny_on_limit": is_on(deny_on_limit),
        "preempt_mode": preempt_mode, "exempt": exempt, "grace": grace, "idle_warn": idle_warn,
        "idle_release": idle_release,
    }  # fmt: skip
    terms: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    if description == "":
        terms["description"] = None
    if preempts is not None:
        terms["preempts"] = names_of(preempts) or []
    if limit is not None:
        terms["limits"] = limits_of(call, limit)
    if ctx.info_name == "create":
        reply = call.client().post_once("/v1/qos", {"name": name, **terms})
        return call.put_outcome(reply, name, f"QOS {name} created")
    if not terms:
        call.wrong("name at least one setting to change")
    reply = call.client().patch(f"/v1/qos/{quote(name)}", terms)
    return call.put_outcome(reply, name, f"QOS {name} changed")


@app.command(cls=Verb, epilog="odcctl qos delete urgent")
def delete(ctx: typer.Context, name: Name) -> int:
    """Delete a QOS."""
    call = Call.of(ctx)
    reply = call.client().delete(f"/v1/qos/{quote(name)}")
    return call.put_outcome(reply, name, f"QOS {name} deleted")


def _preempted(qos: Mapping[str, Any]) -> str:
    parts = ["requeued" if qos["preempt_mode"] == "requeue" else "cancelled"]
    if qos["exempt_s"]:
        parts.append(f"not before they have run {render.duration(qos['exempt_s'])}")
    if qos["grace_s"]:
        parts.append(f"{render.duration(qos['grace_s'])} after a signal")
    return "its jobs are " + ", ".join(parts)


def _idle(qos: Mapping[str, Any]) -> str:
    if not qos["idle_warn_s"]:
        return ""
    text = f"users of idle reservations are notified after {render.duration(qos['idle_warn_s'])}"
    if not qos["idle_release_s"]:
        return text
    return f"{text}; the reservations end after {render.duration(qos['idle_release_s'])}"
