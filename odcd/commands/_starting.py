"""The work of `odcd up`: start the daemon, here or detached, and say what runs."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from odcd import logs
from odcd.api.page import page_url
from odcd.configuration.effective import configured
from odcd.errors import OdcError
from odcd.executor.other_hosts import find_other_hosts, warning
from odcd.home.account import service_account
from odcd.home.folder import prepare_home
from odcd.home.lock import holder
from odcd.home.postgres_watch import WatchedPostgres
from odcd.records.fields import shown
from odcd.settings import ROOT_SOCKET, Arguments, Settings, default_home

log = logging.getLogger(__name__)


def start(args: Arguments) -> int:
    from odcd import daemon

    found = configured(args.config, args.home, os.environ)
    settings = found.read(args)
    if found.warning:
        print(shown(f"odcd: warning: {found.warning}"), file=sys.stderr)
    if not settings.detached:
        logs.configure(settings.log_format)
        daemon.run(look_around(settings), lambda s, p, a: print(_welcome(s, p, a), flush=True))
        return 0
    prepare_home(settings.home, service_account())
    _refuse_second(settings)
    return _detach(settings)


def look_around(settings: Settings) -> Settings:
    """The settings with the declared nodes that are other machines; logs a warning about them."""
    others = find_other_hosts(node.name for node in settings.nodes)
    if others:
        log.error("nodes.other_hosts", extra={"nodes": ",".join(others), "why": warning(others)})
    return replace(settings, other_hosts=others)


def _refuse_second(settings: Settings) -> None:
    pid = holder(settings.lock)
    if pid is not None:
        raise OdcError(
            f"odcd already runs in {settings.home}: process {pid}",
            "Stop it with `odcd down`, or choose another home with --home.",
        )


def _detach(settings: Settings) -> int:
    """Fork the daemon, and return when it is ready or has given up."""
    from odcd import daemon

    reading, writing = os.pipe()
    sys.stdout.flush()
    if os.fork():
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as answers:
            word, _, text = answers.read().partition("\n")
        ready = word == "ready"
        text = text or f"odcd: the daemon ended immediately; see {settings.log_file}"
        print(shown(text), file=sys.stdout if ready else sys.stderr)
        return 0 if ready else 1
    os.close(reading)
    os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    with os.fdopen(writing, "w", encoding="utf-8") as parent:

        def answer(word: str, text: str) -> None:
            # The caller may be gone: that is no reason to end.
            with suppress(BrokenPipeError):
                if not parent.closed:
                    parent.write(f"{word}\n{text}")
                    parent.close()

        try:
            logs.configure(settings.log_format, settings.log_file, service_account())
            settings = look_around(settings)
            daemon.run(settings, lambda s, p, a: answer("ready", _welcome(s, p, a)))
        except (OdcError, OSError) as error:
            hint = f"\n  {error.hint}" if isinstance(error, OdcError) and error.hint else ""
            answer("failed", f"odcd: {error}{hint}")
            return 1
    return 0


def _welcome(
    settings: Settings, postgres: WatchedPostgres | None, addresses: Sequence[tuple[str, int]]
) -> str:
    nodes = [f"{node.name} ({node.gpus} x {node.gpu_type}, declared)" for node in settings.nodes]
    if settings.self_node:
        nodes.append("this machine")
    # Not default_home(): root's daemon is another account by now.
    usual = settings.socket == ROOT_SOCKET or settings.home == default_home()
    where = "" if usual else f"ODC_HOME={settings.home} "
    database = f"PostgreSQL {postgres.version}" if postgres else "an external PostgreSQL"
    lines = [
        f"odcd is ready: process {os.getpid()}, {database}, home {settings.home}",
        f"  nodes   {', '.join(nodes)}",
        f"  submit  {where}odcctl submit script.sh",
        f"  stop    {where}odcd down",
    ]
    tls = settings.front.tls_cert is not None
    if settings.listen:
        host, port = settings.listen
        scheme = "https" if tls else "http"
        lines.insert(2, f"  listen  {scheme}://{host}:{port} (tokens: odcd token)")
    if addresses:
        lines.insert(2, f"  page    {page_url(*addresses[0], tls=tls)}  ({where}odcctl page)")
    elif settings.listen_first:
        first, last = settings.listen_first[0][1], settings.listen_first[-1][1]
        lines.insert(2, f"  page    none: 127.0.0.1 has no free port from {first} to {last}")
    if settings.other_hosts:
        lines.append(f"WARNING: {warning(settings.other_hosts)}")
    return "\n".join(lines)
