"""odcctl disk list | create | delete | rename | list-content | clone | unlock: homes that stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.admin_actions import act, put_list, tell
from odcctl.exits import DONE, Failure
from odcctl.http.client import Client, Params, Reply, quote, target
from odcctl.options import Arguments, Command, Option
from odcctl.reservations.disks import NAME, NAME_RULE, NONE, PATH, make_disk, size, state
from odcctl.text import render
from odcctl.text.prompts import agree, on_terminal

HEADER = ("NAME", "USED/SIZE", "STATE", "SNAPSHOTS", "CREATED", "LAST USED")
STRAYS = ("ID", "KIND", "USER", "DISK", "CREATED", "FIRST SEEN")
WATCH_S = 2.0
OWNER = ("user",)


def run(arguments: Arguments) -> int:
    return act(
        arguments,
        {
            "list": (_list, ("user", "watch", "no-header"), (0, 0)),
            "create": (_create, ("size",), (1, 1)),
            "delete": (_delete, (*OWNER, "yes"), (1, 1)),
            "rename": (_rename, OWNER, (2, 2)),
            "list-content": (_content, OWNER, (1, 1)),
            "clone": (_clone, (*OWNER, "new-user"), (2, 2)),
            "unlock": (_unlock, OWNER, (1, 1)),
            "strays": (_strays, ("no-header",), (0, 0)),
        },
    )


def _list(arguments: Arguments, _: Sequence[str]) -> int:
    client, params = Client.of(arguments), _whose(arguments)
    users = arguments.flag("user")
    header = ("USER", *HEADER) if users else HEADER
    if arguments.flag("watch"):
        from odcctl.live_table import watch

        if arguments.form != "table":
            arguments.command.wrong("--watch shows a table; ask again and again for JSON")

        def fetch() -> tuple[Sequence[str], Sequence[Sequence[str]]]:
            reply = client.get(PATH, params)
            return header, [_row(disk, reply.now_s, users) for disk in reply.json()["disks"]]

        return watch(client, "odcctl disk list --watch", fetch, WATCH_S)
    reply = client.get(PATH, params)
    disks: list[dict[str, Any]] = reply.json()["disks"]
    put_list(
        arguments, reply, disks, "name", header, lambda disk: _row(disk, reply.now_s, users)
    )  # fmt: skip
    if arguments.form == "table":
        if not disks and reply.json()["default_gib"] is None:
            render.note("odcctl: this daemon has no disks; `odcctl disk create NAME` says why")
        for disk in disks:
            if disk["trouble"]:
                render.note(f"odcctl: disk {disk['name']}: {render.clean(disk['trouble'])}")
    return DONE


def _row(disk: Mapping[str, Any], now_s: float, users: bool) -> tuple[str, ...]:
    last = disk["last_used_at"]
    cells = (
        disk["name"], size(disk), state(disk), str(disk["snapshot_count"]),
        render.clock(disk["created_at"], now_s), render.clock(last, now_s) if last else "-",
    )  # fmt: skip
    return (render.clean(disk["user"]), *cells) if users else cells


def _create(arguments: Arguments, words: Sequence[str]) -> int:
    name = _new_name(arguments, words[0])
    made = make_disk(Client.of(arguments), name, arguments.number("size"))
    if arguments.form == "json":
        render.put_json(made)
    elif arguments.form == "quiet":
        render.put(f"{name}\n")
    else:
        render.put(f"disk {name} made: {made['size_gib']} GiB\n")
    return DONE


def _delete(arguments: Arguments, words: Sequence[str]) -> int:
    client = Client.of(arguments)
    if not arguments.flag("yes"):
        if not on_terminal(arguments):
            raise Failure(
                "deleting a disk needs a confirmation, and this is no terminal",
                f"odcctl disk delete {words[0]} --yes",
            )
        disk = client.get(_path(words[0]), _whose(arguments)).json()
        count = disk["snapshot_count"]
        what = f" with its {render.counted(count, 'snapshot')}" if count else ""
        kept = "; they are kept for 30 days" if count else ""
        if not agree(f"Delete disk {disk['name']}{what}{kept}?"):
            raise Failure("not agreed to")
    reply = client.delete(target(_path(words[0]), _whose(arguments)))
    count, until = reply.json()["snapshot_count"], render.when(reply.json()["purge_at"])
    kept = f": its {render.counted(count, 'snapshot')} will be kept until {until}" if count else ""
    return tell(arguments, reply, words[0], f"disk {words[0]} deleted{kept}")


def _rename(arguments: Arguments, words: Sequence[str]) -> int:
    name, new_name = words[0], _new_name(arguments, words[1])
    reply = _post(arguments, name, "rename", {"new_name": new_name})
    return tell(arguments, reply, new_name, f"disk {name} is {new_name} now")


def _content(arguments: Arguments, words: Sequence[str]) -> int:
    reply = Client.of(arguments).get(_path(words[0], "content"), _whose(arguments))
    if arguments.form == "json":
        return tell(arguments, reply, words[0], "")
    told: dict[str, Any] = reply.json()
    if told["snapshot_id"] is None:
        render.note(f"odcctl: disk {words[0]} has no snapshot yet: nothing was saved on it")
        return DONE
    used = told["used_bytes"]
    much = f", {used / 2**30:.1f} GiB used" if used is not None else ""
    render.note(f"odcctl: disk {words[0]} as it was saved {render.when(told['at'])}{much}")
    if told["contents"] is None:
        render.put("not available\n")
        render.note(
            "odcctl: its files could not be listed before it was saved; they are there all the same"
        )
        return DONE
    lines = told["contents"].splitlines()
    render.put("".join(f"{render.clean(line)}\n" for line in lines))
    return DONE


def _clone(arguments: Arguments, words: Sequence[str]) -> int:
    name, new_name = words[0], _new_name(arguments, words[1])
    body = {"new_name": new_name}
    if arguments.flag("new-user"):
        body["new_user"] = arguments.value("new-user") or ""
    reply = _post(arguments, name, "clone", body)
    owner = render.clean(reply.json()["user"])
    said = f"disk {new_name} of {owner} made: it begins as {name} was last saved"
    return tell(arguments, reply, new_name, said)


def _unlock(arguments: Arguments, words: Sequence[str]) -> int:
    reply = _post(arguments, words[0], "unlock", None)
    at = reply.json()["last_snapshot_at"]
    goes_on = f"as it was saved {render.when(at)}" if at else "empty, for it was never saved"
    return tell(arguments, reply, words[0], f"disk {words[0]} can be used again: {goes_on}")


def _strays(arguments: Arguments, _: Sequence[str]) -> int:
    reply = Client.of(arguments).get("/v1/disk-strays")

    def row(stray: Mapping[str, Any]) -> tuple[str, ...]:
        created = stray["tags"].get("created_at", "-")
        return (
            stray["cloud_id"], stray["kind"], stray["user"] or "-", stray["disk"] or "-", created,
            render.when(stray["first_at"]),
        )  # fmt: skip

    return put_list(arguments, reply, reply.json()["strays"], "cloud_id", STRAYS, row)


def _post(arguments: Arguments, name: str, verb: str, body: object) -> Reply:
    return Client.of(arguments).post(target(_path(name, verb), _whose(arguments)), body)


def _new_name(arguments: Arguments, name: str) -> str:
    if not NAME.fullmatch(name) or name == NONE:
        arguments.command.wrong(f'{NAME_RULE}, not "{name}"')
    return name


def _path(name: str, verb: str | None = None) -> str:
    return f"{PATH}/{quote(name)}" + (f"/{verb}" if verb else "")


def _whose(arguments: Arguments) -> Params:
    return {"user": arguments.value("user")}


COMMAND = Command(
    name="disk",
    summary="Manage disks, the homes of dev servers: list, create, delete, rename, list-content",
    usage="disk list|strays | create|delete|list-content|unlock NAME | rename|clone NAME NEW",
    words=(1, None),
    notes=(
        "reserve --disk NAME makes it /home/dev, and what is written there is saved in a snapshot "
        "when the reservation ends. One reservation has it at a time; others wait. A deleted one "
        "is kept for 30 days; list-content shows what was saved. Operators act on those of "
        "others (--user), clone, unlock one that was in trouble, which goes on from its newest "
        "snapshot, and see strays: what the cloud has in odc's name and no disk knows."
    ),
    options=(
        Option("size", None, "GIB", "create: how large; what the daemon is set to when left out"),
        Option("yes", "y", None, "delete: do not ask"),
        Option("watch", None, None, "list: keep showing it, every 2 seconds; Ctrl-C ends it"),
        Option("user", "u", "NAME", "this user's (operators); list: all for everybody's"),
        Option("new-user", None, "NAME", "clone: whose it is to be; the same user's otherwise"),
        Option("no-header", None, None, "list: leave the header line out"),
    ),
    example="odcctl disk create main\nodcctl reserve -t h100 -g 1 -h 8 --disk main\n"
    "odcctl disk list-content main",
    run=run,
    what="nothing done",
)
