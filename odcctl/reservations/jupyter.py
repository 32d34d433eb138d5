"""Jupyter Lab of a reservation: its state, and the link that opens it here."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from odcctl.exits import DONE, Failure
from odcctl.http.client import Client
from odcctl.text import render

PORT = 8888
LOOK_S = 0.5
PATIENCE_S = 90.0
TOKEN_FILE = "/etc/odc/jupyter_token"


def until_settled(client: Client, one: dict[str, Any]) -> dict[str, Any]:
    """The reservation once its Jupyter Lab has started, ended or failed, or PATIENCE_S are over."""
    until = time.monotonic() + PATIENCE_S
    while one.get("jupyter") in ("starting", "ending") and time.monotonic() < until:
        time.sleep(LOOK_S)
        one = client.get(f"/v1/reservations/{one['id']}").json()
    return one


def failure(one: Mapping[str, Any]) -> Failure | None:
    """Why Jupyter Lab cannot be opened; None if it runs."""
    number, state = one["id"], one.get("jupyter")
    if state == "running":
        return None
    again = f"Try again: odcctl edit {number} --enable-jupyter"
    if state == "failed":
        why = render.clean(one.get("jupyter_error") or "the reason is unknown")
        return Failure(f"Jupyter Lab of reservation {number} failed: {why}", again)
    if state is None:
        return Failure(
            f"reservation {number} has no Jupyter Lab",
            f"Its owner can start it: odcctl edit {number} --enable-jupyter",
        )
    return Failure(f"Jupyter Lab of reservation {number} is still {state}", again)


def open_here(client: Client, one: dict[str, Any], port: int | None) -> int:
    """Forward a port of this machine to it until Ctrl-C, and print the link."""
    from odcctl.ssh.forward import HOST, listen, serve

    one = until_settled(client, one)
    if why := failure(one):
        raise why
    number = int(one["id"])
    with listen(port, PORT) as listener:
        at = f"http://{HOST}:{listener.getsockname()[1]}/lab"
        url = one.get("jupyter_url")
        if url:
            render.put(f"{at}?{render.clean(urlsplit(url).query)}\n")
        else:
            render.put(f"{at}\n")
            render.note(f"odcctl: to read its token: ssh odc-{number} cat {TOKEN_FILE}")
        # A program that reads this waits for it, and nothing follows.
        sys.stdout.flush()
        render.note(
            f"odcctl: this is Jupyter Lab of reservation {number}, until "
            f"{render.when(one.get('expires_at'))}; Ctrl-C stops the forwarding, and Jupyter "
            "continues"
        )
        with suppress(KeyboardInterrupt):
            serve(client, f"/v1/reservations/{number}/jupyter", listener)
    return DONE
