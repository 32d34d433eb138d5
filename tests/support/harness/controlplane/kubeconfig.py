"""Files with a cluster's address and a client's identity."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml


def write_kubeconfig(
    path: Path,
    server: str,
    ca: bytes,
    *,
    token: str = "",
    certificate: tuple[bytes, bytes] | None = None,
    namespace: str = "default",
) -> Path:
    """One cluster, one user, one context; the user by token or by certificate and key."""
    authority = base64.b64encode(ca).decode()
    cluster: dict[str, Any] = {"server": server, "certificate-authority-data": authority}
    user: dict[str, str] = {"token": token} if token else {}
    if certificate is not None:
        user["client-certificate-data"] = base64.b64encode(certificate[0]).decode()
        user["client-key-data"] = base64.b64encode(certificate[1]).decode()
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "test", "cluster": cluster}],
                "users": [{"name": "test", "user": user}],
                "contexts": [
                    {
                        "name": "test",
                        "context": {"cluster": "test", "user": "test", "namespace": namespace},
                    }
                ],
                "current-context": "test",
            }
        )
    )
    path.chmod(0o600)
    return path
