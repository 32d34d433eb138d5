"""odcctl disk: permanent homes of dev servers: list, create, delete, rename, clone, unlock,
import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Actions, Listing, Verb, new_app
from odcctl.exits import DONE, Failure
from odcctl.http.client import Params, Reply, quote, target
from odcctl.reservations import disk_imports
from odcctl.reservations.disks import NAME, NAME_RULE, NONE, PATH, make_disk, size, state
from odcctl.text import render
from odcctl.text.prompts import agree

HEADER = ("NAME", "USED/SIZE", "STATE", "SNAPSHOTS", "CREATED", "LAST USED")
STRAYS = ("ID", "KIND", "USER", "DISK", "CREATED", "FIRST SEEN")
WATCH_S = 2.0
FAILING = "disks not changed"

app = new_app(
    Actions,
    "Manage disks, the home folders of dev servers: list, create, delete, rename, list-content.\n\n"
    "`reserve --disk NAME` mounts a disk as /home/dev. odc saves it in a snapshot when "
    "the reservation ends. One reservation uses it at a time; others wait. A deleted disk is kept "
    "for 30 days. list-content shows the saved files. Operators manage disks of other users "
    "(--user), "
    "clone disks, unlock a disk in trouble (it continues from its newest snapshot), import disks "
    "of gpu-dev, and list strays: volumes and snapshots with odc's tags that belong to no disk.",
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="the disk", autocompletion=complete.disks)
]
NewName = Annotated[str, typer.Argument(metavar="NEW", help="the name of the new disk")]
User = Annotated[
    str | None,
    typer.Option(
        "--user", "-u", metavar="NAME", help="disks of this user (operators)",
        autocompletion=complete.users,
    ),
]  # fmt: skip


@app.command("list", cls=Listing, epilog="odcctl disk list")
def list_disks(
    ctx: typer.Context,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", "-u", metavar="NAME",
            help="disks of this user (operators); all: of all users",
            autocompletion=complete.users,
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="update the table every 2 seconds; Ctrl-C stops")
    ] = False,
) -> int:  # fmt: skip
    """List disks: their use, their state and their snapshots."""
    call = Call.of(ctx)
    client, params = call.client(), {"user": user}
    header = HEADER if user is None else ("USER", *HEADER)

    def rows(reply: Reply) -> Sequence[Sequence[str]]:
        disks = reply.json()["disks"]
        return [_row(disk, reply.now_s, users=user is not None) for disk in disks]

    if watch:
        return call.watch_table(lambda: (header, rows(client.get(PATH, params))), WATCH_S)
    reply = client.get(PATH, params)
    disks: list[dict[str, Any]] = reply.json()["disks"]
    call.put_list(reply, (disk["name"] for disk in disks), header, rows(reply))
    if call.form == "table":
        if not disks and reply.json()["default_gib"] is None:
            render.note("odcctl: this daemon has no disks; `odcctl disk create NAME` explains why")
        for disk in disks:
            if disk["trouble"]:
                render.note(f"odcctl: disk {disk['name']}: {render.clean(disk['trouble'])}")
    return DONE


def _row(disk: Mapping[str, Any], now_s: float, *, users: bool) -> tuple[str, ...]:
    last = disk["last_used_at"]
    cells = (
        disk["name"], size(disk), state(disk), str(disk["snapshot_count"]),
        render.clock(disk["created_at"], now_s), render.clock(last, now_s) if last else "-",
    )  # fmt: skip
    return tuple(render.clean(cell) for cell in ((disk["user"], *cells) if users else cells))


@app.command(cls=Verb, epilog="odcctl disk create main\nodcctl reserve -t h100 -g 1 --disk main")
def create(
    ctx: typer.Context,
    name: NewName,
    gib: Annotated[
        int | None,
        typer.Option("--size", metavar="GIB", help="the size; default: the daemon's setting"),
    ] = None,
) -> int:
    """Create a disk."""
    call = Call.of(ctx, failing=FAILING)
    _check_name(call, name)
    made = make_disk(call.client(), name, gib)
    if call.form == "json":
        render.put_json(made)
    elif call.form == "quiet":
        render.put(f"{name}\n")
    else:
        render.put(f"disk {name} created: {made['size_gib']} GiB\n")
    return DONE


@app.command(cls=Verb, epilog="odcctl disk delete main")
def delete(
    ctx: typer.Context,
    name: Name,
    user: User = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
) -> int:
    """Delete a disk; its snapshots are kept for 30 days."""
    call = Call.of(ctx, failing=FAILING)
    client = call.client()
    if not yes:
        if not call.may_prompt():
            raise Failure(
                "deleting a disk requires confirmation, and standard input is not a terminal",
                f"odcctl disk delete {name} --yes",
            )
        disk = client.get(_path(name), {"user": user}).json()
        count = disk["snapshot_count"]
        what = f" with its {render.counted(count, 'snapshot')}" if count else ""
        kept = "; they are kept for 30 days" if count else ""
        if not agree(f"Delete disk {disk['name']}{what}{kept}?"):
            raise Failure("you did not confirm")
    reply = client.delete(target(_path(name), {"user": user}))
    count, until = reply.json()["snapshot_count"], render.when(reply.json()["purge_at"])
    kept = f": its {render.counted(count, 'snapshot')} will be kept until {until}" if count else ""
    return call.put_outcome(reply, name, f"disk {name} deleted{kept}")


@app.command(cls=Verb, epilog="odcctl disk rename main old")
def rename(ctx: typer.Context, name: Name, new_name: NewName, user: User = None) -> int:
    """Rename a disk."""
    call = Call.of(ctx, failing=FAILING)
    _check_name(call, new_name)
    reply = _post(call, name, "rename", {"new_name": new_name}, {"user": user})
    return call.put_outcome(reply, new_name, f"disk {name} renamed to {new_name}")


@app.command("list-content", cls=Verb, epilog="odcctl disk list-content main")
def list_content(ctx: typer.Context, name: Name, user: User = None) -> int:
    """Show the saved files of a disk."""
    call = Call.of(ctx)
    reply = call.client().get(_path(name, "content"), {"user": user})
    if call.form == "json":
        return call.put_outcome(reply, name, "")
    saved: dict[str, Any] = reply.json()
    if saved["snapshot_id"] is None:
        render.note(f"odcctl: disk {name} has no snapshot yet: nothing has been saved")
        return DONE
    used = saved["used_bytes"]
    much = f", {used / 2**30:.1f} GiB used" if used is not None else ""
    render.note(f"odcctl: disk {name} as it was saved {render.when(saved['at'])}{much}")
    if saved["contents"] is None:
        render.put("not available\n")
        render.note(
            "odcctl: odc could not list its files before it saved the disk; the files themselves "
            "are saved"
        )
        return DONE
    lines = saved["contents"].splitlines()
    render.put("".join(f"{render.clean(line)}\n" for line in lines))
    return DONE


@app.command(cls=Verb, epilog="odcctl disk clone main copy --user ann --new-user bob")
def clone(
    ctx: typer.Context,
    name: Name,
    new_name: NewName,
    user: User = None,
    new_user: Annotated[
        str | None,
        typer.Option(
            "--new-user", metavar="NAME", help="the owner of the new disk; default: the same user",
            autocompletion=complete.users,
        ),
    ] = None,
) -> int:  # fmt: skip
    """Create a disk from the newest snapshot of another one."""
    call = Call.of(ctx, failing=FAILING)
    _check_name(call, new_name)
    body = {"new_name": new_name, **({} if new_user is None else {"new_user": new_user})}
    reply = _post(call, name, "clone", body, {"user": user})
    owner = render.clean(reply.json()["user"])
    outcome = f"disk {new_name} of {owner} created from the newest snapshot of {name}"
    return call.put_outcome(reply, new_name, outcome)


@app.command(cls=Verb, epilog="odcctl disk unlock main --user ann")
def unlock(ctx: typer.Context, name: Name, user: User = None) -> int:
    """Make a disk in trouble usable again."""
    call = Call.of(ctx, failing=FAILING)
    reply = _post(call, name, "unlock", None, {"user": user})
    at = reply.json()["last_snapshot_at"]
    goes_on = (
        f"its files are from {render.when(at)}" if at else "it is empty, because it was never saved"
    )
    return call.put_outcome(reply, name, f"disk {name} can be used again: {goes_on}")


@app.command(
    "import",
    cls=Listing,
    epilog="odcctl disk import\nodcctl disk import --user ann@example.com=ann --apply",
)
def import_disks(
    ctx: typer.Context,
    owners: Annotated[
        list[str] | None,
        typer.Option("--user", "-u", metavar="GPUDEV=NAME",
                     help="the owner here of a gpu-dev user's disks; default: the same name"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="GPUDEV", help="only the disks of this gpu-dev user"),
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="import them; without it, only list them")
    ] = False,
    user_tag: Annotated[
        str, typer.Option("--user-tag", metavar="TAG", help="gpu-dev's tag with the user")
    ] = "gpu-dev-user",
    disk_tag: Annotated[
        str, typer.Option("--disk-tag", metavar="TAG", help="gpu-dev's tag with the disk's name")
    ] = "disk_name",
    kind_tag: Annotated[
        str, typer.Option("--kind-tag", metavar="TAG", help="the tag of gpu-dev's own snapshots")
    ] = "SnapshotType",
) -> int:  # fmt: skip
    """Import the disks of gpu-dev, which it keeps in the same AWS account (operators)."""
    call = Call.of(ctx, failing="disks not imported")
    try:
        body: dict[str, Any] = {"apply": apply, "owners": disk_imports.read_owners(owners or ())}
    except ValueError as error:
        call.wrong(str(error))
    body["tags"] = {"user": user_tag, "disk": disk_tag, "kind": kind_tag}
    if only:
        body["users"] = only
    reply = disk_imports.run_import(call.client(), body)
    found = reply.json()
    rows = [disk_imports.row(disk, reply.now_s) for disk in found["disks"]]
    names = (disk["name"] or "-" for disk in found["disks"] if disk["outcome"] != "skipped")
    call.put_list(reply, names, disk_imports.HEADER, rows)
    if call.form == "table":
        for line in disk_imports.notes(found):
            render.note(f"odcctl: {line}")
    return DONE


@app.command(cls=Listing, epilog="odcctl disk strays")
def strays(ctx: typer.Context) -> int:
    """List volumes and snapshots with odc's tags that belong to no disk."""
    call = Call.of(ctx)
    reply = call.client().get("/v1/disk-strays")
    found: list[dict[str, Any]] = reply.json()["strays"]
    rows = [[render.clean(cell) for cell in _stray(stray)] for stray in found]
    return call.put_list(reply, (stray["cloud_id"] for stray in found), STRAYS, rows)


def _stray(stray: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        stray["cloud_id"], stray["kind"], stray["user"] or "-", stray["disk"] or "-",
        stray["tags"].get("created_at", "-"), render.when(stray["first_at"]),
    )  # fmt: skip


def _post(call: Call, name: str, verb: str, body: object, params: Params) -> Reply:
    return call.client().post(target(_path(name, verb), params), body)


def _check_name(call: Call, name: str) -> None:
    if not NAME.fullmatch(name) or name == NONE:
        call.wrong(f'{NAME_RULE}, not "{name}"')


def _path(name: str, verb: str | None = None) -> str:
    return f"{PATH}/{quote(name)}" + (f"/{verb}" if verb else "")
