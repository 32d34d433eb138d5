"""Shared by `account`, `qos`, `user` and `disk`: actions, and how an answer is printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odcctl.exits import DONE
from odcctl.http.client import Client, Reply
from odcctl.options import Arguments
from odcctl.text import render

Act = Callable[[Arguments, Sequence[str]], int]


def act(
    arguments: Arguments, acts: Mapping[str, tuple[Act, Sequence[str], tuple[int, int]]]
) -> int:
    """Run what the first word names. acts: the function, the options it takes, and how many words
    may follow."""
    action, *words = arguments.words
    if action not in acts:
        arguments.command.wrong(f'"{action}" is not {", ".join(acts)}')
    run, options, (least, most) = acts[action]
    if not least <= len(words) <= most:
        counts = {(0, 0): "no name", (1, 1): "one name", (2, 2): "two names"}
        count = counts.get((least, most), "one name, or none")
        arguments.command.wrong(f"{action} takes {count}")
    for option in arguments.command.options:
        if arguments.flag(option.long) and option.long not in options:
            arguments.command.wrong(f"{action} takes no --{option.long}")
    return run(arguments, words)


def put_list(
    arguments: Arguments, reply: Reply, rows: Sequence[Mapping[str, Any]], key: str,
    header: Sequence[str], row: Callable[[Mapping[str, Any]], Sequence[str]],
) -> int:  # fmt: skip
    """rows: of the answer. key: what names one of them."""
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put("".join(f"{one[key]}\n" for one in rows))
    else:
        head = () if arguments.flag("no-header") else header
        cells = [[render.clean(cell) for cell in row(one)] for one in rows]
        render.put(render.table(head, cells, render.terminal_width()))
    return DONE


def tell(arguments: Arguments, reply: Reply, name: str, said: str) -> int:
    if arguments.form == "json":
        render.put(reply.text.rstrip("\n") + "\n")
    elif arguments.form == "quiet":
        render.put(f"{name}\n")
    else:
        render.put(f"{said}\n")
    return DONE


def qos_text(terms: Mapping[str, Any]) -> str:
    """The QOS of an account or of a user in one; the default has a star."""
    default, allowed = terms["default_qos"], terms["qos"]
    if allowed is None:
        return f"{default}*" if default else ""
    return ",".join(f"{name}*" if name == default else name for name in allowed)


def some(arguments: Arguments, terms: dict[str, Any]) -> dict[str, Any]:
    if not terms:
        arguments.command.wrong("say what to change")
    return terms


def client(arguments: Arguments) -> Client:
    return Client.of(arguments)
