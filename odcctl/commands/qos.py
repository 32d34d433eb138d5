"""odcctl qos list | show | create | edit | delete: sets of limits that jobs run under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.admin_actions import act, client, put_list, some, tell
from odcctl.exits import DONE
from odcctl.http.client import quote
from odcctl.options import Arguments, Command, Option
from odcctl.text import render
from odcctl.text.limit_args import LIMIT, limits, names, on_off, text_of, text_or_none

HEADER = ("QOS", "PRIORITY", "PREEMPTS", "FACTOR", "FOR", "LIMITS")
TERMS = (
    "description", "priority", "restricted", "deny-on-limit", "usage-factor", "preempts",
    "preempt-mode", "exempt", "grace", "idle-warn", "idle-release", "limit",
)  # fmt: skip
TIMES = ("exempt", "grace", "idle-warn", "idle-release")


def run(arguments: Arguments) -> int:
    return act(
        arguments,
        {
            "list": (_list, ("no-header",), (0, 0)),
            "show": (_show, (), (1, 1)),
            "create": (_create, TERMS, (1, 1)),
            "edit": (_edit, TERMS, (1, 1)),
            "delete": (_delete, (), (1, 1)),
        },
    )


def _list(arguments: Arguments, _: Sequence[str]) -> int:
    reply = client(arguments).get("/v1/qos")
    return put_list(arguments, reply, reply.json()["qos"], "name", HEADER, _row)


def _row(qos: Mapping[str, Any]) -> Sequence[str]:
    return (
        qos["name"], str(qos["priority"]), ",".join(qos["preempts"]) or "-",
        f"{qos['usage_factor']:g}", "who names it" if qos["restricted"] else "all",
        text_of(qos["limits"]) or "-",
    )  # fmt: skip


def _show(arguments: Arguments, words: Sequence[str]) -> int:
    reply = client(arguments).get(f"/v1/qos/{quote(words[0])}")
    if arguments.form != "table":
        return tell(arguments, reply, words[0], "")
    qos: dict[str, Any] = reply.json()
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
        ("above them", f"a job that is so by itself is {above}" if qos["limits"] else ""),
    ]
    block = [(key, render.clean(value)) for key, value in pairs]
    render.put(render.block(f"QOS {qos['name']}", block))
    return DONE


def _preempted(qos: Mapping[str, Any]) -> str:
    words = ["requeued" if qos["preempt_mode"] == "requeue" else "cancelled"]
    if qos["exempt_s"]:
        words.append(f"not before they ran {render.duration(qos['exempt_s'])}")
    if qos["grace_s"]:
        words.append(f"{render.duration(qos['grace_s'])} after a signal")
    return "its jobs are " + ", ".join(words)


def _idle(qos: Mapping[str, Any]) -> str:
    if not qos["idle_warn_s"]:
        return ""
    told = f"users of idle reservations are notified after {render.duration(qos['idle_warn_s'])}"
    if not qos["idle_release_s"]:
        return told
    return f"{told}, and end after {render.duration(qos['idle_release_s'])}"


def _create(arguments: Arguments, words: Sequence[str]) -> int:
    body = {"name": words[0], **_terms(arguments)}
    reply = client(arguments).post_once("/v1/qos", body)
    return tell(arguments, reply, words[0], f"QOS {words[0]} made")


def _edit(arguments: Arguments, words: Sequence[str]) -> int:
    terms = some(arguments, _terms(arguments))
    reply = client(arguments).patch(f"/v1/qos/{quote(words[0])}", terms)
    return tell(arguments, reply, words[0], f"QOS {words[0]} changed")


def _delete(arguments: Arguments, words: Sequence[str]) -> int:
    reply = client(arguments).delete(f"/v1/qos/{quote(words[0])}")
    return tell(arguments, reply, words[0], f"QOS {words[0]} deleted")


def _terms(arguments: Arguments) -> dict[str, Any]:
    """The options as the API takes them; the daemon reads the times."""
    terms: dict[str, Any] = {
        option.replace("-", "_"): arguments.value(option)
        for option in TIMES
        if arguments.flag(option)
    }
    if arguments.flag("description"):
        terms["description"] = text_or_none(arguments, "description")
    if arguments.flag("priority"):
        terms["priority"] = arguments.number("priority")
    if arguments.flag("usage-factor"):
        text = arguments.value("usage-factor") or ""
        try:
            terms["usage_factor"] = float(text)
        except ValueError:
            arguments.command.wrong(f'--usage-factor takes a number, not "{text}"')
    if arguments.flag("preempts"):
        terms["preempts"] = names(arguments, "preempts") or []
    if arguments.flag("preempt-mode"):
        terms["preempt_mode"] = arguments.value("preempt-mode")
    for option in ("restricted", "deny-on-limit"):
        if arguments.flag(option):
            terms[option.replace("-", "_")] = on_off(arguments, option)
    if arguments.flag("limit"):
        terms["limits"] = limits(arguments)
    return terms


COMMAND = Command(
    name="qos",
    summary="Show QOS, make, change and delete them: priority, limits, preemption",
    usage="qos list | show NAME | create NAME [OPTIONS] | edit NAME OPTIONS | delete NAME",
    words=(1, None),
    notes=(
        "A job runs under one: submit --qos NAME. Operators change them. Times are as of submit "
        "--time: 30 is half an hour, 0:30 half a minute."
    ),
    options=(
        Option("description", None, "TEXT", "a text kept with it"),
        Option("priority", None, "N", "against other QOS, 0 and up"),
        Option("restricted", None, "on|off", "only for accounts and users that name it"),
        Option("usage-factor", None, "X", "used time counts so many times"),
        LIMIT,
        Option(
            "deny-on-limit", None, "on|off",
            "refuse a job above a limit by itself (on), or let it wait",
        ),
        Option("preempts", None, "NAMES", "QOS whose jobs its own may end; none"),
        Option("preempt-mode", None, "MODE", "its own, preempted: requeue or cancel"),
        Option("exempt", None, "TIME", "its jobs run so long before they are preempted"),
        Option("grace", None, "TIME", "from the signal to the kill of a preempted job"),
        Option("idle-warn", None, "TIME", "notify users of idle reservations after it; 0: never"),
        Option("idle-release", None, "TIME", "end idle reservations after it; 0: never"),
        Option("no-header", None, None, "list: leave the header line out"),
    ),
    example="odcctl qos create urgent --priority 100 --restricted on --preempts normal\n"
    "odcctl qos edit normal --limit user.gpus=16 --limit job.wall=2-00:00:00",
    run=run,
)  # fmt: skip
