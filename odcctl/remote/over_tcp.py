"""The same program over TCP: with odcctl's client, its configuration and its API key."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from odcctl.exits import Failure, Refused, Unreachable
from odcctl.http.address import find_server
from odcctl.http.client import Client
from odcctl.http.wire import LostAnswer
from odcctl.remote import interactive
from odcctl.remote.exchange import AWAY, Lost, Trouble
from odcctl.remote.program import INTERACTIVE, converse
from odcctl.remote.upstream import TOO_MANY


def main(name: str) -> int:
    try:
        server = find_server(None)
        client = Client(server.addresses, server.token)

        def send(body: bytes, key: str) -> Iterator[bytes]:
            headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
            try:
                yield from client.stream("POST", f"/v1/slurm/{name}", body=body, headers=headers)
            except LostAnswer as error:
                raise Lost(f"{AWAY}: {error}") from None
            except Unreachable as error:
                raise Trouble(f"{AWAY}: {error.message}") from None
            except Refused as error:
                text = "\n  ".join(filter(None, (error.message, error.hint)))
                # Only the daemon that leads runs steps, and the next request may reach it.
                again = error.status >= 500 and name in INTERACTIVE
                raise (Lost if again else Trouble)(text) from None

        def post(path: str, body: bytes) -> bytes:
            # A client of its own: another thread may be waiting for an answer.
            try:
                client = Client(server.addresses, server.token)
                return client.post(path, json.loads(body)).body
            except (LostAnswer, Unreachable) as error:
                raise Lost(f"{AWAY}: {error}") from None
            except Refused as error:
                again = error.status >= 500 or error.status == TOO_MANY
                raise (Lost if again else Trouble)(error.message) from None

        if name in INTERACTIVE:
            return interactive.converse(name, sys.argv[1:], send, post)
        return converse(name, sys.argv[1:], send)
    except Failure as failure:
        sys.stderr.write(f"{name}: error: {failure.message}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
