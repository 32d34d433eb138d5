"""odcctl diag: the state of the daemon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.exits import DONE
from odcctl.text import render

app = new_app()


@app.command(cls=Verb, epilog="odcctl diag")
def diag(ctx: typer.Context) -> int:
    """Show the state of the daemon: counts, the last pass, the leader."""
    call = Call.of(ctx)
    if call.form == "quiet":
        call.wrong("this command prints no ids, so it has no quiet output")
    reply = call.client().get("/v1/cluster")
    if call.form == "json":
        call.put_reply(reply)
    elif render.terminal_width() is None:
        render.put(describe(reply.json()))
    else:
        show(reply.json())
    return DONE


def show(value: Mapping[str, Any]) -> None:
    """Print the blocks as panels, as many side by side as fit."""
    from rich.columns import Columns
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    panels: list[Panel] = []
    for block in describe(value).split("\n\n"):
        title, _, body = block.strip("\n").partition("\n")
        lines = [line.removeprefix("  ") for line in body.splitlines()]
        panels.append(Panel(Text("\n".join(lines)), title=title, title_align="left"))
    Console().print(Columns(panels))


def describe(value: Mapping[str, Any]) -> str:
    """Any nested object as titled blocks: the daemon decides their content."""
    plain = [(_label(key), _text(key, item)) for key, item in value.items() if not _nested(item)]
    blocks = [render.block("daemon", plain)] if plain else []
    for key, item in value.items():
        if isinstance(item, Mapping):
            pairs = [(_label(name), _text(name, one)) for name, one in item.items()]
            blocks.append(render.block(_label(key), pairs))
        elif _nested(item):
            rows = [[_text(name, one) for name, one in row.items()] for row in item]
            header = [_label(name).upper() for name in item[0]]
            table = render.table(header, rows)
            blocks.append(
                _label(key) + "\n" + "".join(f"  {line}\n" for line in table.splitlines())
            )
    return "\n".join(blocks)


def _nested(item: object) -> bool:
    if isinstance(item, Mapping):
        return True
    return isinstance(item, list) and bool(item) and isinstance(item[0], Mapping)


def _label(key: str) -> str:
    for unit in ("_at", "_s", "_ms"):
        key = key.removesuffix(unit)
    return key.replace("_", " ")


def _text(key: str, value: object) -> str:
    if value is None:
        return "-"
    if key == "at" or key.endswith("_at"):
        return render.when(str(value))
    if key.endswith("_ms"):
        return f"{value} ms"
    if key.endswith("_s") and isinstance(value, int | float):
        return render.duration(value) if value >= 0 else f"-{render.duration(-value)}"
    if isinstance(value, Mapping):
        return ", ".join(f"{_label(name)} {_text(name, one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
