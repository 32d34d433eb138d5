"""One call of odcctl: its daemon, its output format, and how it reports errors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from odcctl.cli import usage
from odcctl.exits import DONE, Failure, WrongUsage
from odcctl.http.address import find_server
from odcctl.http.client import Client, Reply
from odcctl.text import render
from odcctl.text.complaints import describe, problem_of, problem_text

if TYPE_CHECKING:
    from odcctl.text.tables import Narrow, Rows


class Call:
    """The object of every Typer context. The common options set its attributes."""

    def __init__(self) -> None:
        self.server: str | None = None
        self.json = False
        self.output: str | None = None
        self.columns: str | None = None
        self.header = True
        self.failing: str | None = None
        """The meaning of a refusal, as in "job not submitted"."""
        self._context: click.Context | None = None
        self._client: Client | None = None

    @classmethod
    def of(cls, context: click.Context, failing: str | None = None) -> Call:
        """The call of a command. failing: the thing that did not happen if the daemon refuses."""
        call = context.ensure_object(cls)
        call._context, call.failing = context, failing
        return call

    @property
    def form(self) -> str:
        """table, json, quiet or csv."""
        return "json" if self.json else self.output or "table"

    @property
    def verb(self) -> str:
        """The words that name the command: queue, account create."""
        path = self._context.command_path if self._context else "odcctl"
        return path.removeprefix("odcctl").strip()

    def client(self) -> Client:
        if self._client is None:
            self._client = self.new_client()
        return self._client

    def new_client(self) -> Client:
        """For a thread of its own."""
        return Client(*find_server(self.server))

    def wrong(self, message: str) -> NoReturn:
        raise wrong_usage(message, self._context)

    def may_prompt(self) -> bool:
        """Whether questions are allowed: input and output are a terminal, and no program reads
        the output."""
        return self.form == "table" and sys.stdin.isatty() and sys.stdout.isatty()

    def put_reply(self, reply: Reply) -> None:
        """Print the JSON that the API returned."""
        render.put(reply.text.rstrip("\n") + "\n")

    def put_ids(self, ids: Iterable[object]) -> None:
        render.put("".join(f"{one}\n" for one in ids))

    def put_table(
        self, header: Sequence[str], rows: Rows, narrow: Narrow | None = None, *, cut: bool = True
    ) -> None:
        """Print a table or CSV: the columns of --format, without a header after --no-header.

        narrow: how it fits a narrow terminal. cut: false: long lines wrap.
        """
        from odcctl.text.tables import csv_text

        head, rows = self.choose_columns(header, rows, narrow)
        if self.form == "csv":
            render.put(csv_text(head, rows))
        else:
            render.put(render.table(head, rows, render.terminal_width() if cut else None))

    def choose_columns(
        self, header: Sequence[str], rows: Rows, narrow: Narrow | None = None
    ) -> tuple[Sequence[str], Rows]:
        """Return the columns of --format, or those that fit; and no header after --no-header."""
        from odcctl.text.tables import fit, select

        if narrow is not None and self.columns is None and self.form == "table":
            header, rows = fit(header, rows, render.terminal_width(), narrow)
        try:
            header, rows = select(header, rows, self.columns)
        except ValueError as error:
            self.wrong(str(error))
        return header if self.header else (), rows

    def watch_table(
        self,
        fetch: Callable[[], tuple[Sequence[str], Rows]],
        look_s: float | None = None,
        narrow: Narrow | None = None,
    ) -> int:
        """Show the table as it changes, until Ctrl-C. look_s: fetch at least that often."""
        from odcctl import live_table

        if self.form != "table":
            self.wrong("--watch only shows a table; for a stream of JSON, use odcctl events")
        return live_table.watch(
            self.client(),
            f"odcctl {self.verb} --watch",
            lambda: self.choose_columns(*fetch(), narrow),
            look_s or live_table.LOOK_S,
        )

    def put_list(
        self, reply: Reply, ids: Iterable[object], header: Sequence[str], rows: Rows
    ) -> int:
        """Print a list in the requested format."""
        if self.form == "json":
            self.put_reply(reply)
        elif self.form == "quiet":
            self.put_ids(ids)
        else:
            self.put_table(header, rows)
        return DONE

    def put_outcome(self, reply: Reply, name: str, text: str) -> int:
        """Print the outcome as a sentence, as the object's name, or as the API's answer."""
        if self.form == "json":
            self.put_reply(reply)
        else:
            render.put(f"{name}\n" if self.form == "quiet" else f"{text}\n")
        return DONE

    def complain(self, failure: Failure, what: str | None = None) -> None:
        """Report a failure on standard error: as lines, or with --json as a problem object.

        what: the thing that did not happen, as in "job not submitted".
        """
        if self.form == "json":
            render.note(problem_text(problem_of(failure)))
        else:
            render.note(describe(failure, what))

    def exclude(self, **options: Any) -> None:
        """Refuse the call if more than one of these options was given."""
        given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
        if len(given) > 1:
            self.wrong(f"{given[0]} and {given[1]} cannot be used together")


def wrong_usage(message: str, context: click.Context | None) -> WrongUsage:
    return WrongUsage(*usage.locate(message, context, "odcctl"))


def explain(error: click.UsageError) -> WrongUsage:
    """Return Click's error as a message of odcctl."""
    return wrong_usage(usage.message_of(error), error.ctx)
