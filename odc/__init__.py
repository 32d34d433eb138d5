"""The Python client of odc: submit jobs and functions, wait for them, and read the queue.

    from odc import Client

    job = Client().submit(["python", "train.py"], gpus="h100:2", time="4:00:00")
    print(job.wait().state)

docs/reference/python-client.md is the guide. The package speaks HTTP to odcd, with the address
and the key that odcctl would use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odc import models as models
    from odc.async_client import AsyncClient as AsyncClient
    from odc.async_client import AsyncJob as AsyncJob
    from odc.client import Client as Client
    from odc.client import Job as Job
    from odc.errors import CallFailed as CallFailed
    from odc.errors import FolderNotShared as FolderNotShared
    from odc.errors import Forbidden as Forbidden
    from odc.errors import JobFailed as JobFailed
    from odc.errors import NotFound as NotFound
    from odc.errors import NotPicklable as NotPicklable
    from odc.errors import OdcError as OdcError
    from odc.errors import Refused as Refused
    from odc.errors import Unauthenticated as Unauthenticated
    from odc.errors import Unreachable as Unreachable
    from odc.errors import WrongArgument as WrongArgument
    from odc.errors import WrongSettings as WrongSettings
    from odc.executor import JobExecutor as JobExecutor
    from odc.executor import JobFuture as JobFuture
    from odc.models import JobSpec as JobSpec

_HOME = {
    "AsyncClient": "async_client", "AsyncJob": "async_client", "Client": "client",
    "Job": "client", "JobExecutor": "executor", "JobFuture": "executor", "JobSpec": "models",
    **dict.fromkeys(
        (
            "CallFailed", "FolderNotShared", "Forbidden", "JobFailed", "NotFound", "NotPicklable",
            "OdcError", "Refused", "Unauthenticated", "Unreachable", "WrongArgument",
            "WrongSettings",
        ),
        "errors",
    ),
}  # fmt: skip
"""The module of each public name: imported when it is first used."""
__all__ = ["models", *_HOME]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name == "models":
        return importlib.import_module("odc.models")
    if name == "__version__":
        return importlib.import_module("odcctl").__version__
    if name not in _HOME:
        raise AttributeError(f"module 'odc' has no attribute {name!r}")
    return getattr(importlib.import_module(f"odc.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
