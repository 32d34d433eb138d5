"""Finds and loads the kubeconfig."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

from odcd.clock import SystemClock
from odcd.errors import BadRequest
from odcd.executor.kubernetes.renewal import Renewal

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration


TOKEN_OF_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def _kubeconfig(given: Path | None) -> Path | None:
    """The kubeconfig to use; None: this is a pod of the cluster, with its own credentials."""
    if given is None and TOKEN_OF_POD.exists():
        return None
    named = given or Path(os.environ.get("KUBECONFIG") or "~/.kube/config").expanduser()
    if not named.is_file():
        raise BadRequest(
            f"the kubeconfig {named} does not exist",
            "Name one with --kubeconfig FILE; inside a pod none is needed.",
        )
    return named


async def load_configuration(kubeconfig: Path | None, context: str | None) -> Configuration:
    from kubernetes_asyncio import config
    from kubernetes_asyncio.client import Configuration

    configuration = Configuration()
    named = _kubeconfig(kubeconfig)
    if named is None:
        config.load_incluster_config(client_configuration=configuration)
        return configuration
    try:
        loader = await config.load_kube_config(
            str(named), context, configuration, persist_config=False
        )
        configuration.refresh_api_key_hook = Renewal(loader, SystemClock())
    except PermissionError:
        who = pwd.getpwuid(os.geteuid()).pw_name
        raise BadRequest(
            f"the kubeconfig {named} cannot be read by {who}, the account of odcd",
            f"chown {who} {named}, or give odcd a copy.",
        ) from None
    except Exception as error:  # the parsers raise many types for an invalid file
        raise BadRequest(
            f"the kubeconfig {named} cannot be used: {describe_error(error)}",
            "`kubectl --kubeconfig FILE version` shows whether a file is right.",
        ) from error
    if not str(configuration.host).startswith(("http://", "https://")):
        raise BadRequest(
            f'the kubeconfig {named} names no server: "{configuration.host}"',
            "Its cluster needs a line `server: https://…`.",
        )
    return configuration


def describe_error(error: BaseException) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error}"
    return " ".join(str(error).split())[:300] or type(error).__name__
